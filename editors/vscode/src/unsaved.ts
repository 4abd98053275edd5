// Lisp files with unsaved changes: a system is loaded and tested as its files are saved.
import * as vscode from 'vscode'
import { label } from './format.js'
import { isLisp } from './server.js'

const unsaved = (): vscode.TextDocument[] => vscode.workspace.textDocuments.filter((one) => one.isDirty && one.uri.scheme === 'file' && isLisp(one))

/** Saves all Lisp files with unsaved changes. */
export async function saveFiles(): Promise<void> {
  await Promise.all(unsaved().map((document) => document.save()))
}

/** The sentence that names the files whose unsaved changes are not tested; undefined for none. */
export function notTested(): string | undefined {
  const files = unsaved().map(({ uri }) => label(vscode.workspace.asRelativePath(uri)))
  return files.length === 0 ? undefined : `Files are tested as saved, without the unsaved changes in ${files.join(', ')}.`
}
