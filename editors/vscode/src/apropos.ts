// Symbols of the image by a part of their names.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import type { Documents } from './documents.js'
import { label } from './format.js'
import type { Apropos } from './lsp_ext.js'
import { complain, withUnmovedFocus, type Server } from './server.js'
import { tell } from './views.js'

const MOST = 500

/** Asks for a part of a name, and describes the symbol that is chosen of those that have it. */
export async function apropos(server: Server, documents: Documents): Promise<void> {
  const pattern = (await askText({ title: 'Apropos', prompt: 'A part of a name, in any case' }))?.trim()
  if (pattern === undefined || pattern === '') return
  try {
    const { total, symbols } = await withUnmovedFocus(server.run<Apropos>('apropos', { pattern, limit: MOST }))
    if (symbols.length === 0) {
      void vscode.window.showInformationMessage(`Consort: no symbol that names something has ${label(pattern)} in its name.`)
      return
    }
    const items = symbols.map((one) => ({ label: label(one.name), description: label(one.kind), detail: label([one.lambda_list, one.summary].filter((part) => part !== undefined).join('  ')), name: one.name }))
    const count = total > symbols.length ? `${symbols.length} of ${total}` : `${total}`
    const chosen = await vscode.window.showQuickPick(items, { title: `Symbols with ${label(pattern)} (${count})`, matchOnDetail: true, placeHolder: 'One to describe' })
    if (chosen !== undefined) await tell(server, documents, 'describe', chosen.name)
  } catch (error) {
    complain(error)
  }
}
