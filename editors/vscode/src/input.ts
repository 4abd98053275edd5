// Input boxes for the lines of standard input that running code reads.
import * as vscode from 'vscode'
import { label } from './format.js'
import type { InputLine, InputWanted } from './lsp_ext.js'

/**
 * Resolves when the previous input box is closed. Boxes are shown one after another: a second one
 * would close the first, which would then answer with end of file.
 */
let previous: Promise<unknown> = Promise.resolve()

/**
 * Asks the person for a line in an input box. Resolves to the line without its newline, or to null:
 * end of file, if the box was dismissed or `token` cancelled.
 */
export function askInBox(wanted: InputWanted, token: vscode.CancellationToken): Promise<InputLine> {
  const answer = previous.then(async (): Promise<InputLine> => {
    if (token.isCancellationRequested) return null
    const options: vscode.InputBoxOptions = {
      title: 'Lisp reads a line',
      prompt: wanted.prompt.trim() === '' ? 'Standard input of the code that runs' : label(wanted.prompt),
      placeHolder: 'Enter gives the line, Escape is end of file',
      ignoreFocusOut: true,
    }
    const text = await vscode.window.showInputBox(options, token)
    return text === undefined ? null : { text }
  })
  previous = answer.catch(() => undefined)
  return answer
}
