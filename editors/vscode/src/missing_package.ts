// Code in a package that the image does not have yet: buttons that load or evaluate its definition.
import * as vscode from 'vscode'
import { label, plain } from './format.js'
import { workspaceSystems } from './trees.js'

const WHOLE = 'Evaluate the Whole File'

/**
 * Shows the reason, and offers to load the system of the package's name, or the only one that is
 * defined beside the file or above it; or to evaluate the file. True if the system was loaded.
 */
export async function offerPackage(error: Error, document: vscode.TextDocument, name: string | undefined): Promise<boolean> {
  const near = (await workspaceSystems()).filter(({ uri }) => document.uri.path.startsWith(uri.path.replace(/[^/]*$/, '')))
  const system = near.find((one) => one.name.toUpperCase() === name?.toUpperCase()) ?? (near.length === 1 ? near[0] : undefined)
  const load = system === undefined ? undefined : `Load ${label(system.name)}`
  // An error would stay on the screen after the system was loaded in another way.
  const choice = await vscode.window.showWarningMessage(`Consort: ${plain(error.message)}`, ...(load === undefined ? [] : [load]), WHOLE)
  if (choice === WHOLE) {
    await vscode.window.showTextDocument(document)
    await vscode.commands.executeCommand('consort.editor.evalBuffer')
  } else if (choice !== undefined) return (await vscode.commands.executeCommand<boolean>('consort.editor.loadSystem', system)) === true
  return false
}
