// The start of a session of VS Code's debugger.
import * as vscode from 'vscode'
import type { Server } from './server.js'

/** Starts a debug session in the server's folder. No file needs to be saved for one. */
export async function startDebugging(server: Server, configuration: vscode.DebugConfiguration): Promise<void> {
  const folder = server.folder && vscode.workspace.getWorkspaceFolder(server.folder)
  await vscode.debug.startDebugging(folder, configuration, { suppressSaveBeforeStart: true })
}
