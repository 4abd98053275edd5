// The extension: its features, their commands, and the files and settings that it watches.
import * as vscode from 'vscode'
import { registerMcpServer } from './agents.js'
import { EditorContext } from './editor_context.js'
import { registerEvaluationCommands } from './evaluation_commands.js'
import { Features, type Register } from './features.js'
import { registerInspectionCommands } from './inspection_commands.js'
import { registerLoadingCommands } from './loading_commands.js'
import { registerNameCommands } from './name_commands.js'
import { registerNaming } from './naming.js'
import { showNewProject } from './new_project.js'
import { complain, type Server } from './server.js'
import { registerState } from './state.js'
import { registerTestCommands } from './test_commands.js'
import { registerTracingCommands } from './tracing_commands.js'
import { registerWindowCommands } from './window_commands.js'

export function activate(context: vscode.ExtensionContext): { server: Server } {
  const begun = performance.now()
  const features = new Features(context)
  const { server, log } = features
  features.register()
  context.subscriptions.push(registerState(server, () => features.tests.isRunning))
  registerMcpServer(context, server)
  registerCommands(features)
  context.subscriptions.push(new EditorContext(server), registerNaming(), ...followWorkspace(features))
  void showNewProject(context.globalState).catch(complain)
  // Activation does not wait for Lisp.
  void server.start()
  log.info(`activated in ${(performance.now() - begun).toFixed(0)} ms`)
  return { server }
}

function registerCommands(features: Features): void {
  const command: Register = (name, run) => {
    features.context.subscriptions.push(vscode.commands.registerCommand(`consort.editor.${name}`, run))
  }
  registerEvaluationCommands(features, command)
  registerLoadingCommands(features, command)
  registerNameCommands(features, command)
  registerInspectionCommands(features, command)
  registerTracingCommands(features, command)
  registerTestCommands(features, command)
  registerWindowCommands(features, command)
}

/** Follows the system definitions and the settings of the server. */
function followWorkspace({ server, systems }: Features): vscode.Disposable[] {
  const watcher = vscode.workspace.createFileSystemWatcher('**/*.asd')
  return [
    watcher,
    watcher.onDidCreate(() => systems.refresh()),
    watcher.onDidDelete(() => systems.refresh()),
    watcher.onDidChange(() => systems.refresh()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('consort.server')) void server.start()
    }),
  ]
}
