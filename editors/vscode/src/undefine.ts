// Removes definitions of a name from the image, after a question that names them.
import * as vscode from 'vscode'
import { label } from './format.js'
import type { ReloadReport, Removable } from './lsp_ext.js'
import { withUnmovedFocus, type Server } from './server.js'
import { runReload } from './undo.js'

const REMOVE = 'Remove'

/**
 * Asks which definitions of the name at a place to remove, and for confirmation; then removes them.
 */
export async function undefine(server: Server, place: object): Promise<void> {
  const found = await withUnmovedFocus(server.ask<Removable>('removable', place))
  const items = found.parts.map((part) => ({ label: label(part.text), detail: part.lost ?? '', part }))
  const chosen = await vscode.window.showQuickPick(items, { title: `Remove from the Image: ${label(found.name)}`, canPickMany: true })
  if (chosen === undefined || chosen.length === 0) return
  const lost = chosen.flatMap(({ part }) => (part.lost == null ? [] : [`${label(part.text)}: ${part.lost}.`]))
  const detail = [...chosen.map(({ label }) => label), '', ...lost, 'The file is not changed. Undo the Last Reload puts back what can be.'].join('\n')
  const answer = await vscode.window.showWarningMessage('Remove these from the image?', { modal: true, detail }, REMOVE)
  if (answer !== REMOVE) return
  const parts = chosen.map(({ part }) => part.key)
  const argument = { name: found.name, parts, ...(found.method == null ? {} : { method: found.method }) }
  const report = await runReload<ReloadReport>(server, 'undefine', argument)
  const gone = report.gone.length === 0 ? 'Nothing was removed' : `Removed: ${report.gone.map((one) => label(String(one))).join(', ')}`
  vscode.window.setStatusBarMessage(`$(check) ${gone}`, 5000)
}
