// The MCP server's configuration for agents: registered with VS Code, or copied for other clients.
import * as vscode from 'vscode'
import { configurations } from './configurations.js'
import { findBinary } from './binary.js'
import type { Server } from './server.js'

/**
 * Registers the MCP server with VS Code. Editors built on an older VS Code have no such registry.
 */
export function registerMcpServer(context: vscode.ExtensionContext, server: Server): void {
  if (typeof vscode.lm?.registerMcpServerDefinitionProvider !== 'function') return
  const changed = new vscode.EventEmitter<void>()
  let known = server.found?.path
  context.subscriptions.push(
    changed,
    server.onChange(() => {
      if (server.found?.path === known) return
      known = server.found?.path
      changed.fire()
    }),
    vscode.lm.registerMcpServerDefinitionProvider('consort', {
      onDidChangeMcpServerDefinitions: changed.event,
      provideMcpServerDefinitions: () => {
        const found = binary(context, server)
        if (found === undefined) return []
        const folder = server.folder
        const args = folder === undefined ? ['mcp'] : ['mcp', '--workspace', folder.fsPath]
        const definition = new vscode.McpStdioServerDefinition('Consort (Common Lisp)', found, args, {}, (context.extension.packageJSON as { version: string }).version)
        if (folder !== undefined) definition.cwd = folder
        return [definition]
      },
    }),
  )
}

function binary(context: vscode.ExtensionContext, server: Server): string | undefined {
  const setting = vscode.workspace.getConfiguration('consort').get<string>('server.path', '')
  return server.found?.path ?? findBinary(setting, server.folder?.fsPath, context.extensionPath, process.env)?.path
}

export async function copyConfiguration(context: vscode.ExtensionContext, server: Server): Promise<void> {
  const all = configurations(binary(context, server) ?? 'consort', server.folder?.fsPath)
  const items = all.map((one) => ({ label: one.client, detail: one.where, text: one.text }))
  const chosen = await vscode.window.showQuickPick(items, { title: 'Set Up an Agent', placeHolder: 'Whose configuration is copied?' })
  if (chosen === undefined) return
  await vscode.env.clipboard.writeText(chosen.text)
  void vscode.window.showInformationMessage(`Copied for ${chosen.label}. ${chosen.detail.startsWith('.') ? `Paste it into ${chosen.detail}.` : `${chosen.detail}.`}`)
}
