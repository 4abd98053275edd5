// Moving a definition to another file of its package.
import * as vscode from 'vscode'
import { label } from './format.js'
import type { Moved, MoveDestinations } from './lsp_ext.js'
import { topLevelFormAt } from './reader.js'
import { SELECTOR, withUnmovedFocus, type Server } from './server.js'

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

/** The action that moves a definition, at its first line, in VS Code's menu of refactorings. */
export function offerMoving(server: Server): vscode.Disposable {
  const kind = vscode.CodeActionKind.RefactorMove
  return vscode.languages.registerCodeActionsProvider(SELECTOR, {
    provideCodeActions: (document, range, { triggerKind }) => {
      // A light bulb for each line of each definition would say nothing.
      if (triggerKind !== vscode.CodeActionTriggerKind.Invoke || !server.can('moveDefinition')) return []
      const text = document.getText()
      const form = topLevelFormAt(text, document.offsetAt(range.start))
      if (form === undefined || !/^\(\s*[^\s()"';]*def/i.test(text.slice(form.start, form.end)) || document.positionAt(form.start).line !== range.start.line) return []
      const action = new vscode.CodeAction('Move to another file…', kind)
      action.command = { title: action.title, command: 'consort.editor.moveDefinition' }
      return [action]
    },
  }, { providedCodeActionKinds: [kind] })
}
