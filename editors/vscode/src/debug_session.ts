// The start of a session of VS Code's debugger.
import * as vscode from 'vscode'
import type { Server } from './server.js'

/**
 * Starts a debug session in the server's folder, without saving files. Resolves to true if it has
 * begun.
 */
export async function startDebugging(server: Server, configuration: vscode.DebugConfiguration): Promise<boolean> {
  const folder = server.folder && vscode.workspace.getWorkspaceFolder(server.folder)
  return vscode.debug.startDebugging(folder, configuration, { suppressSaveBeforeStart: true })
}
