// Code in a package that the image does not have yet: buttons that load or evaluate its definition.
import * as vscode from 'vscode'
import { label, plain } from './format.js'
import { definesPackage } from './reader.js'
import { workspaceSystems } from './trees.js'

const WHOLE = 'Evaluate the Whole File'

/** The name of a file's system, if a diagnostic says that it is not loaded. */
function unloadedSystem(document: vscode.TextDocument): string | undefined {
  const told = vscode.languages.getDiagnostics(document.uri).find(({ code }) => (typeof code === 'object' ? code.value : code) === 'system-not-loaded')
  // The language client's diagnostics have the server's data.
  const { data } = (told ?? {}) as { data?: { system?: unknown } }
  return typeof data?.system === 'string' ? data.system : undefined
}

/**
 * Shows the reason, and offers to load the file's system, that of the package's name, or the only
 * one that is defined beside the file or above it; or to evaluate the file, if it defines the
 * package. True if the system was loaded.
 */
export async function offerPackage(error: Error, document: vscode.TextDocument, name: string | undefined): Promise<boolean> {
  const near = (await workspaceSystems()).filter(({ uri }) => document.uri.path.startsWith(uri.path.replace(/[^/]*$/, '')))
  const called = (wanted: string | undefined) => near.find((one) => one.name.toUpperCase() === wanted?.toUpperCase())
  const system = called(unloadedSystem(document)) ?? called(name) ?? (near.length === 1 ? near[0] : undefined)
  const load = system === undefined ? undefined : `Load ${label(system.name)}`
  // Evaluating a file that does not define the package would fail in the same way.
  const buttons = [...(load === undefined ? [] : [load]), ...(name !== undefined && definesPackage(document.getText(), name) ? [WHOLE] : [])]
  // An error would stay on the screen after the system was loaded in another way.
  const choice = await vscode.window.showWarningMessage(`Consort: ${plain(error.message)}`, ...buttons)
  if (choice === WHOLE) {
    await vscode.window.showTextDocument(document)
    await vscode.commands.executeCommand('consort.editor.evalBuffer')
  } else if (choice !== undefined) return (await vscode.commands.executeCommand<boolean>('consort.editor.loadSystem', system)) === true
  return false
}
