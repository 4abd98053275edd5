// Moving a definition to another file of its package.
import * as vscode from 'vscode'
import { label } from './format.js'
import type { Moved, MoveDestinations } from './lsp_ext.js'
import { withUnmovedFocus, type Server } from './server.js'

/** Asks for the file to which the definition at a place goes, and moves it. */
export async function moveDefinition(server: Server, document: vscode.TextDocument, place: object): Promise<void> {
  const { version } = document
  const found = await withUnmovedFocus(server.ask<MoveDestinations>('moveDestinations', place))
  const items = found.files.map((file) => ({ label: label(file.path), file }))
  const chosen = await vscode.window.showQuickPick(items, { title: `Move ${label(found.name)} to Another File`, placeHolder: 'A file of its package' })
  if (chosen === undefined) return
  if (document.version !== version) throw new Error('the definition was not moved: the text has changed meanwhile.')
  const moved = await server.ask<Moved>('moveDefinition', { ...place, target: chosen.file.uri })
  if (!moved.applied) throw new Error('the definition was not moved.')
  const done = `Moved ${label(moved.name)} to ${chosen.label}.`
  if (moved.note == null) vscode.window.setStatusBarMessage(`$(check) ${done}`, 5000)
  else void vscode.window.showInformationMessage(`Consort: ${done} ${label(moved.note)}`)
}
