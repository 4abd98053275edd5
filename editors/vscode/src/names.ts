// Commands on the name at the cursor: its references by kind, and its page in a manual.
import * as vscode from 'vscode'
import { toRange } from './convert.js'
import { lispEditor } from './evaluate.js'
import { label } from './format.js'
import type { ManualPage, References } from './lsp_ext.js'
import { complain, withUnmovedFocus, type Server } from './server.js'
import { named } from './views.js'

/** The names of the kinds of references. */
const WORDS: Record<string, string> = {
  calls: 'Calls',
  macroexpands: 'Macro Calls',
  sets: 'Settings',
  binds: 'Bindings',
  references: 'Reads',
  specializes: 'Methods That Specialize on It',
  mentions: 'Other Mentions',
}

/** Asks for a kind of references to the name at the cursor, and shows them. */
export async function referencesByKind(server: Server): Promise<void> {
  const editor = lispEditor()
  if (editor === undefined) return
  const { document, selection } = editor
  const position = { line: selection.active.line, character: selection.active.character }
  try {
    const { name, kinds, references } = await withUnmovedFocus(server.run<References>('references', { uri: document.uri.toString(), position }))
    const counted = kinds.map((kind) => ({ kind, found: references.filter((one) => one.kind === kind) })).filter(({ found }) => found.length > 0)
    if (counted.length === 0) {
      void vscode.window.showInformationMessage(`Consort: nothing refers to ${label(name)}.`)
      return
    }
    const items = counted.map(({ kind, found }) => ({ label: WORDS[kind] ?? kind, description: String(found.length), found }))
    const all = { label: 'All', description: String(references.length), found: references }
    const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick([...items, all], { title: `References to ${label(name)}`, placeHolder: 'Kind of reference' })
    if (chosen === undefined) return
    const locations = chosen.found.map((one) => new vscode.Location(vscode.Uri.parse(one.uri), toRange(one.range)))
    await vscode.commands.executeCommand('editor.action.showReferences', document.uri, selection.active, locations)
  } catch (error) {
    complain(error)
  }
}

/** Opens the manual's page about the name at the cursor. */
export async function openManual(server: Server): Promise<void> {
  const argument = await placeOrName()
  if (argument === undefined) return
  try {
    const { url } = await server.run<ManualPage>('hyperspec', argument)
    await vscode.env.openExternal(vscode.Uri.parse(url, true))
  } catch (error) {
    complain(error)
  }
}

/**
 * The cursor's position in Lisp, which may be at no word: at a format directive or reader macro.
 */
async function placeOrName(): Promise<object | undefined> {
  const editor = vscode.window.activeTextEditor
  if (editor === undefined || !/^(commonlisp|lisp)$/.test(editor.document.languageId)) return named('Look up in the HyperSpec')
  const { line, character } = editor.selection.active
  return { uri: editor.document.uri.toString(), position: { line, character } }
}
