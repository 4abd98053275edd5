// Lines that running code reads: an input box asks the person for each, one after another.
import * as vscode from 'vscode'
import { label } from './format.js'
import type { InputLine, InputWanted } from './lsp_ext.js'

/**
 * The question before, answered or withdrawn: a second box would close the first, which would be
 * end of file.
 */
let before: Promise<unknown> = Promise.resolve()

export function askInBox(wanted: InputWanted, token: vscode.CancellationToken): Promise<InputLine> {
  const answer = before.then(async (): Promise<InputLine> => {
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
  before = answer.catch(() => undefined)
  return answer
}
