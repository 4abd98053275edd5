// The renaming of a name that a code action invented.
import * as vscode from 'vscode'

/** The place of the name, as the server gives it. */
interface NewName {
  uri: string
  position: { line: number; character: number }
}

/** Registers the command that code actions of the server run after their edit. */
export function registerNaming(): vscode.Disposable {
  return vscode.commands.registerCommand('_consort.rename', ({ uri, position }: NewName) =>
    vscode.commands.executeCommand('editor.action.rename', [vscode.Uri.parse(uri), new vscode.Position(position.line, position.character)]),
  )
}
