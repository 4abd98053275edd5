// What the extension offers, wired together.
import * as vscode from 'vscode'
import { copyConfiguration, registerMcpServer } from './agents.js'
import { Approvals } from './approval.js'
import { Documents } from './documents.js'
import { Evaluator, rangeOf, type What } from './evaluate.js'
import type { ImageState, Name, Status } from './lsp_ext.js'
import { Profiles } from './profile.js'
import { Repl } from './repl.js'
import { Results } from './results.js'
import { complain, isLisp, Server } from './server.js'
import { goToSymbol } from './source.js'
import { showMenu, StatusBar } from './status.js'
import { ACTIONS, structure } from './structure.js'
import { Tests } from './testing.js'
import { chooseSystem, ImageTree, loadSystem, LogTree, SystemsTree, type System } from './trees.js'
import { Expansions, tell, textOf } from './views.js'

export function activate(context: vscode.ExtensionContext): { server: Server } {
  const log = vscode.window.createOutputChannel('Consort', { log: true })
  const output = vscode.window.createOutputChannel('Lisp Output', 'commonlisp')
  const server = new Server(context, log)
  const results = new Results()
  const documents = new Documents()
  const evaluator = new Evaluator(server, results, output)
  const repl = new Repl(server, context.workspaceState)
  const expansions = new Expansions(server, documents)
  const profiles = new Profiles(server, context.extensionUri)
  const systems = new SystemsTree()
  const image = new ImageTree(server)
  const logTree = new LogTree(server)
  context.subscriptions.push(
    log, output, server, results, documents, repl, profiles, systems, image, logTree,
    new StatusBar(server),
    new Approvals(server, documents),
    new Tests(server),
    vscode.window.registerTreeDataProvider('consort.systems', systems),
    vscode.window.registerTreeDataProvider('consort.image', image),
    vscode.window.registerTreeDataProvider('consort.log', logTree),
  )
  registerMcpServer(context, server)

  const command = (name: string, run: (...args: never[]) => unknown): void => {
    context.subscriptions.push(vscode.commands.registerCommand(`consort.editor.${name}`, run))
  }
  /** A command that only asks the server and says what came of it. */
  const request = (name: string, ask: Name, argument: () => Promise<object | undefined> | object, done: string): void =>
    command(name, async () => {
      try {
        const what = await argument()
        if (what === undefined) return
        const answer = await server.run<unknown>(ask, what)
        vscode.window.setStatusBarMessage(`$(check) ${done}`, 4000)
        const report = typeof answer === 'object' && answer !== null && 'text' in answer ? textOf(answer) : undefined
        if (report !== undefined) await documents.open(`report/${ask}.txt`, report, { language: 'plaintext' })
      } catch (error) {
        complain(error)
      }
    })
  const evaluate = (name: string, what: What): void => command(name, () => evaluator.evaluate(what))
  const here = (): object | undefined => {
    const editor = vscode.window.activeTextEditor
    if (editor === undefined || !isLisp(editor.document)) return undefined
    const { line, character } = editor.selection.active
    return { uri: editor.document.uri.toString(), position: { line, character } }
  }

  evaluate('evalForm', 'form')
  evaluate('evalTopLevelForm', 'top-level')
  evaluate('evalSelection', 'region')
  evaluate('evalBuffer', 'buffer')
  command('evalToComment', () => evaluator.evaluateToComment())
  command('loadFile', () => evaluator.loadFile())
  command('clearResults', () => results.clear())
  command('copyResult', async () => {
    if (results.lastValue !== undefined) await vscode.env.clipboard.writeText(results.lastValue)
    vscode.window.setStatusBarMessage(results.lastValue === undefined ? 'Nothing was evaluated yet' : 'Copied', 2000)
  })
  command('copyText', (text: string) => vscode.env.clipboard.writeText(text))
  command('openResult', (text?: string) => {
    const shown = typeof text === 'string' ? text : results.lastText
    return shown === undefined ? undefined : documents.open('result/result.lisp', `${shown}\n`)
  })
  command('interrupt', async () => {
    try {
      const { interrupted } = await server.ask<{ interrupted: number }>('interrupt', {})
      vscode.window.setStatusBarMessage(interrupted === 0 ? 'Nothing was running' : 'Interrupted', 3000)
    } catch (error) {
      complain(error)
    }
  })
  command('restart', async () => {
    try {
      const options = { location: vscode.ProgressLocation.Window, title: 'Restarting Lisp' }
      await vscode.window.withProgress(options, () => server.ask<ImageState>('restartImage', {}))
      results.clear()
    } catch (error) {
      complain(error)
    }
  })
  command('restartServer', () => server.start())
  command('showLog', () => log.show(true))
  command('showOutput', () => output.show(true))
  command('menu', () => showMenu(server))
  command('walkthrough', () => vscode.commands.executeCommand('workbench.action.openWalkthrough', `${context.extension.id}#consort.start`, false))
  command('doctor', () => inTerminal('Consort Doctor', server, 'doctor'))
  command('status', async () => {
    try {
      await documents.open('status/status.json', JSON.stringify(await server.ask<Status>('status'), null, 2), { language: 'json' })
    } catch (error) {
      complain(error)
    }
  })

  command('repl', () => repl.show())
  command('sendToRepl', () => {
    const editor = vscode.window.activeTextEditor
    if (editor === undefined || !isLisp(editor.document)) return
    const range = rangeOf(editor, editor.selection.isEmpty ? 'top-level' : 'region')
    if (range !== undefined) repl.send(editor.document.getText(range))
  })

  command('loadSystem', (system?: System) => loadSystem(server, systems, system, output))
  command('reloadSystem', async (system?: System) => {
    const name = system?.name ?? (await chooseSystem('Reload a system'))
    if (name !== undefined) await server.run('reloadSystem', { system: name }).then(() => vscode.window.setStatusBarMessage(`$(check) ${name} is reloaded`, 4000), complain)
  })
  request('undoReload', 'undoReload', () => ({}), 'The last reload is undone')
  request('compileForm', 'compileForm', () => here() ?? Promise.resolve(undefined), 'Compiled')
  request('compileFile', 'compileFile', () => here() ?? Promise.resolve(undefined), 'Compiled')
  request('trace', 'trace', () => symbol('Trace a function'), 'Traced')
  request('untrace', 'untrace', () => symbol('Untrace a function'), 'No longer traced')
  request('runTestAtPoint', 'runTestAtPoint', () => here() ?? Promise.resolve(undefined), 'The test ran')

  command('macroexpand', () => expansions.expand('one'))
  command('macroexpandFull', () => expansions.expand('full'))
  command('expandFurther', () => expansions.further())
  command('expandBack', () => expansions.back())
  command('expandInPlace', () => expansions.inPlace())
  command('describe', () => tell(server, documents, 'describe'))
  command('disassemble', () => tell(server, documents, 'disassemble'))
  command('profile', () => profiles.profileForm())
  command('goToDefinition', async () => {
    const asked = await symbol('Go to a definition')
    if (asked !== undefined) await goToSymbol(server, asked.symbol).catch(complain)
  })
  for (const action of Object.keys(ACTIONS) as (keyof typeof ACTIONS)[]) command(`structure.${action}`, () => structure(server, action))
  command('copyAgentConfiguration', () => copyConfiguration(context, server))
  command('refresh', () => {
    systems.refresh()
    image.refresh()
    logTree.refresh()
  })

  // What the person looks at, for their agent. Not at each keystroke.
  let contextTimer: NodeJS.Timeout | undefined
  const tellContext = (): void => {
    clearTimeout(contextTimer)
    contextTimer = setTimeout(() => {
      const editor = vscode.window.activeTextEditor
      const visible = editor?.visibleRanges[0]
      if (editor === undefined || visible === undefined || !isLisp(editor.document) || !server.can('editorContext')) return
      const selection = { start: editor.selection.start, end: editor.selection.end }
      const visibleRange = { start: visible.start, end: visible.end }
      void server.ask('editorContext', { uri: editor.document.uri.toString(), selection, visibleRange }).catch(() => undefined)
    }, 300)
  }
  const watcher = vscode.workspace.createFileSystemWatcher('**/*.asd')
  context.subscriptions.push(
    { dispose: () => clearTimeout(contextTimer) },
    vscode.window.onDidChangeActiveTextEditor(tellContext),
    vscode.window.onDidChangeTextEditorSelection(tellContext),
    watcher,
    watcher.onDidCreate(() => systems.refresh()),
    watcher.onDidDelete(() => systems.refresh()),
    watcher.onDidChange(() => systems.refresh()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('consort.server')) void server.start()
    }),
  )
  // Activation does not wait for Lisp.
  void server.start()
  return { server }
}

async function symbol(title: string): Promise<{ symbol: string; uri?: string } | undefined> {
  const editor = vscode.window.activeTextEditor
  const range = editor?.document.getWordRangeAtPosition(editor.selection.active)
  const value = editor !== undefined && range !== undefined ? editor.document.getText(range) : ''
  const name = value !== '' ? value : await vscode.window.showInputBox({ title, prompt: 'A symbol, such as my-package:my-function' })
  if (name === undefined || name === '') return undefined
  return editor !== undefined && isLisp(editor.document) ? { symbol: name, uri: editor.document.uri.toString() } : { symbol: name }
}

function inTerminal(name: string, server: Server, argument: string): void {
  if (server.found === undefined) {
    void vscode.commands.executeCommand('consort.editor.walkthrough')
    return
  }
  const options: vscode.TerminalOptions = { name, ...(server.folder === undefined ? {} : { cwd: server.folder }) }
  const terminal = vscode.window.createTerminal(options)
  terminal.show(true)
  terminal.sendText(`'${server.found.path.replaceAll("'", "'\\''")}' ${argument}`)
}
