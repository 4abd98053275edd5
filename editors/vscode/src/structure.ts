// Structural editing: the server computes the edits, on its own scanner; they are applied here, and
// the cursor is moved.
import * as vscode from 'vscode'
import { plainRange, toRange } from './convert.js'
import { lispEditor } from './evaluate.js'
import type { Structure } from './lsp_ext.js'
import { isPlain } from './plain.js'
import { complain, type Server } from './server.js'

/** The actions of `consort.structure`, with their titles in the palette. */
export const ACTIONS = {
  slurpForward: 'Slurp the Next Form',
  slurpBackward: 'Slurp the Previous Form',
  barfForward: 'Barf the Last Form',
  barfBackward: 'Barf the First Form',
  raise: 'Raise the Form',
  wrap: 'Wrap the Form in Parentheses',
  splice: 'Splice the List into Its Parent',
  dragForward: 'Drag the Form Forward',
  dragBackward: 'Drag the Form Backward',
  transpose: 'Transpose Forms',
  killSexp: 'Kill the Form',
  killLine: 'Kill to the End of the Line or the List',
  deleteForward: 'Delete the Next Character, Strictly',
  deleteBackward: 'Delete the Previous Character, Strictly',
  split: 'Split the List or String',
  join: 'Join the Lists or Strings',
  convolute: 'Convolute the Lists',
  select: 'Select the Form, Then the Next Larger',
  selectContract: 'Select the Next Smaller Form',
  moveForward: 'Go after the Next Form',
  moveBackward: 'Go before the Previous Form',
  moveUp: 'Go before the List',
  moveDown: 'Go into the Next List',
} as const

/** The corresponding commands of VS Code, for deletions that cannot unbalance anything. */
const PLAIN = { deleteForward: 'deleteRight', deleteBackward: 'deleteLeft' } as const

/** Repeated keys come faster than answers: each waits for the one before. */
let before: Promise<void> = Promise.resolve()

/** Deletes a character or the selection; lists, strings and comments stay intact. */
export function deleteStrictly(server: Server, action: keyof typeof PLAIN): Promise<void> {
  const editor = lispEditor()
  if (editor === undefined) return before
  before = before.catch(complain).then(async () => {
    if (vscode.window.activeTextEditor !== editor) return
    const plain = editor.selections.every((selection) => {
      if (!selection.isEmpty) return false
      const { text } = editor.document.lineAt(selection.active.line)
      const at = action === 'deleteForward' ? selection.active.character : selection.active.character - 1
      return isPlain(text, at)
    })
    if (plain) await vscode.commands.executeCommand(PLAIN[action])
    else await structure(server, action)
  })
  return before
}

export async function structure(server: Server, action: keyof typeof ACTIONS): Promise<void> {
  const editor = lispEditor()
  if (editor === undefined) return
  const { document: { version }, selection } = editor
  try {
    const argument = { uri: editor.document.uri.toString(), selection: plainRange(selection), action }
    const answer = await server.ask<Structure>('structure', argument)
    if (editor.document.version !== version) return
    const stayed = editor.selection.isEqual(selection)
    // If the text has changed meanwhile, it is not edited, and the new position does not hold.
    const isDone = answer.edits.length === 0 ||
      (await editor.edit((edit) => answer.edits.forEach(({ range, newText }) => edit.replace(toRange(range), newText))))
    if (isDone && answer.selection != null && stayed) {
      const range = toRange(answer.selection)
      editor.selection = new vscode.Selection(range.start, range.end)
      editor.revealRange(range)
    }
  } catch (error) {
    complain(error)
  }
}
