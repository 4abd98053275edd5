// Documents and editors of a test, and places in them.
import { Document, Editor, Selection, window, workspace } from './vscode.js'

export const cursor = (line: number, character: number): Selection => new Selection(line, character, line, character)
export const range = (line: number, from: number, to: number): object => ({ start: { line, character: from }, end: { line, character: to } })

/** The editor of a text, the only one, with the cursor behind its first character. */
export function open(text: string, path = '/a.lisp'): { document: Document; editor: Editor } {
  const document = new Document(path, text)
  const editor = new Editor(document, cursor(0, 1))
  workspace.textDocuments = [document]
  window.visibleTextEditors = [editor]
  window.activeTextEditor = editor
  return { document, editor }
}
