// A document to try code in: Lisp in no file. VS Code keeps it while the window is closed and asks
// before its tab is.
import * as vscode from 'vscode'
import { currentPackage } from './status.js'

const FIRST = ';;; Scratch: code to try, in no file.'

/** Shows the scratch document; makes one, in the package of the file that the person comes from. */
export async function scratch(): Promise<void> {
  const open = vscode.workspace.textDocuments.find((one) => one.uri.scheme === 'untitled' && one.lineAt(0).text === FIRST)
  if (open !== undefined) {
    await vscode.window.showTextDocument(open)
    return
  }
  const name = currentPackage() ?? 'COMMON-LISP-USER'
  const designator = /^[A-Z0-9.+*/-]+$/.test(name) ? `#:${name.toLowerCase()}` : `"${name.replace(/[\\"]/g, '\\$&')}"`
  const content = `${FIRST}\n(in-package ${designator})\n\n`
  const document = await vscode.workspace.openTextDocument({ language: 'commonlisp', content })
  const editor = await vscode.window.showTextDocument(document)
  const end = document.lineAt(document.lineCount - 1).range.end
  editor.selection = new vscode.Selection(end, end)
}
