// The command that makes a new project, and opens it.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { mainFile, projectFiles, wrongName } from './project.js'
import { complain } from './server.js'

/** The key of the file that is shown once the project's window is there. */
const SHOWN = 'consort.newProject'

/**
 * Asks for a name and a place, makes the project there, and opens it: in this window when it has no
 * folder, in another one otherwise.
 */
export async function newProject(memory: vscode.Memento, given?: { name: string; parent: vscode.Uri }): Promise<void> {
  const name = given?.name ?? (await askText({ title: 'New Project', prompt: 'Its name', placeHolder: 'my-project', validateInput: wrongName }))
  if (name === undefined) return
  const open = vscode.workspace.workspaceFolders?.[0]?.uri
  // Beside the project that is open, not in it.
  const beside = open === undefined ? {} : { defaultUri: vscode.Uri.joinPath(open, '..') }
  const options = { title: `Where shall ${name} be made?`, openLabel: 'Make It Here', canSelectFolders: true, canSelectFiles: false, ...beside }
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
  await memory.update(SHOWN, vscode.Uri.joinPath(directory, mainFile(name)).toString())
  await vscode.commands.executeCommand('vscode.openFolder', directory, { forceNewWindow: vscode.workspace.workspaceFolders !== undefined })
}

/** Shows, in the window of a project that was just made, the file that a person begins with. */
export async function showNewProject(memory: vscode.Memento): Promise<void> {
  const shown = memory.get<string>(SHOWN)
  if (shown === undefined) return
  const file = vscode.Uri.parse(shown)
  const folder = vscode.workspace.getWorkspaceFolder(file)
  if (folder?.uri.toString() !== vscode.Uri.joinPath(file, '..').toString()) return
  await memory.update(SHOWN, undefined)
  const document = await vscode.workspace.openTextDocument(file)
  // The end of the last form, which is an example to evaluate.
  const last = document.positionAt(document.getText().trimEnd().length)
  await vscode.window.showTextDocument(document, { preview: false, selection: new vscode.Range(last, last) })
}

const exists = (uri: vscode.Uri): Promise<boolean> => Promise.resolve(vscode.workspace.fs.stat(uri)).then(() => true, () => false)
