// The command that makes a new project, and opens it.
import * as vscode from 'vscode'
import { projectFiles, wrongName } from './project.js'
import { complain } from './server.js'

/**
 * Ask for a name and a place, make the project there, and open it: in this window when it has no
 * folder, in another one otherwise.
 */
export async function newProject(given?: { name: string; parent: vscode.Uri }): Promise<void> {
  const name = given?.name ?? (await vscode.window.showInputBox({ title: 'New Project', prompt: 'Its name', placeHolder: 'my-project', validateInput: wrongName }))
  if (name === undefined) return
  const options = { title: `Where shall ${name} be made?`, openLabel: 'Make It Here', canSelectFolders: true, canSelectFiles: false }
  const parent = given?.parent ?? (await vscode.window.showOpenDialog(options))?.[0]
  if (parent === undefined) return
  const directory = vscode.Uri.joinPath(parent, name)
  try {
    if (await exists(directory)) throw new Error(`${directory.fsPath} is there already; nothing was changed. Choose another name or place.`)
    for (const [file, text] of Object.entries(projectFiles(name))) await vscode.workspace.fs.writeFile(vscode.Uri.joinPath(directory, file), new TextEncoder().encode(text))
  } catch (error) {
    complain(error)
    return
  }
  await vscode.commands.executeCommand('vscode.openFolder', directory, { forceNewWindow: vscode.workspace.workspaceFolders !== undefined })
}

const exists = (uri: vscode.Uri): Promise<boolean> => Promise.resolve(vscode.workspace.fs.stat(uri)).then(() => true, () => false)
