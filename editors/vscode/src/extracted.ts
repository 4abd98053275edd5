// The name of what was extracted: VS Code's box to rename it opens at its use.
import * as vscode from 'vscode'

/** A replacement in a text, by offsets. */
export interface Replacement {
  start: number
  end: number
  text: string
}

/** The kind of the server's actions that extract something. */
const EXTRACT = 'refactor.extract'
/** A definition, or the first binding of a form that binds. */
const DEFINED = /\((?:def[\w-]*\s+|(?:let\*?|flet|labels|macrolet|symbol-macrolet)\s+\(\()([^\s()"';]+)/
/** A binding that is added to others. */
const BOUND = /^\(([^\s()"';]+)\s/

/**
 * The offset of the new name in the text with the replacements: at its use in the place of what was
 * selected, else at its definition; undefined when there is no new name.
 */
export function extractedAt(replacements: readonly Replacement[], selected: number): number | undefined {
  const sorted = [...replacements].sort((a, b) => a.start - b.start)
  const name = sorted.map(({ start, end, text }) => DEFINED.exec(text)?.[1] ?? (start === end ? BOUND.exec(text)?.[1] : undefined)).find((one) => one !== undefined)
  if (name === undefined) return undefined
  const places: { at: number; isUse: boolean }[] = []
  let shift = 0
  for (const { start, end, text } of sorted) {
    for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1))
      if (isWhole(text, at, name)) places.push({ at: start + shift + at, isUse: start < end && start <= selected && selected <= end })
    shift += text.length - (end - start)
  }
  return (places.find(({ isUse }) => isUse) ?? places[0])?.at
}

/** True if the name at an offset is no part of a longer one. */
function isWhole(text: string, at: number, name: string): boolean {
  return ![text[at - 1], text[at + name.length]].some((c) => c !== undefined && /[^\s()"';`,]/.test(c)) || text.slice(at - 2, at) === "#'"
}

/** The ranges of the actions that were offered, for when one of them is chosen. */
const offered = new WeakMap<vscode.CodeAction, { document: vscode.TextDocument; selected: vscode.Position }>()

/** Remembers where actions that extract something were offered. */
export function rememberExtractions(actions: readonly (vscode.Command | vscode.CodeAction)[] | null | undefined, document: vscode.TextDocument, range: vscode.Range): void {
  for (const action of actions ?? []) if ('kind' in action && action.kind?.value.startsWith(EXTRACT) === true) offered.set(action, { document, selected: range.start })
}

/** The chosen action with the command that opens the box for the new name afterwards. */
export function renamesAfterwards(chosen: vscode.CodeAction, action: vscode.CodeAction | null | undefined): vscode.CodeAction | null | undefined {
  const place = offered.get(chosen)
  const edits = place && action?.edit?.get(place.document.uri)
  if (place === undefined || action == null || edits === undefined || action.command !== undefined) return action
  const { document, selected } = place
  const text = document.getText()
  const replacements = edits.map(({ range, newText }) => ({ start: document.offsetAt(range.start), end: document.offsetAt(range.end), text: newText }))
  const at = extractedAt(replacements, document.offsetAt(selected))
  if (at === undefined) return action
  const changed = [...replacements].sort((a, b) => b.start - a.start).reduce((now, { start, end, text }) => now.slice(0, start) + text + now.slice(end), text)
  const lines = changed.slice(0, at).split(/\r\n|\r|\n/)
  // VS Code's command takes one argument.
  const where = [document.uri, new vscode.Position(lines.length - 1, lines.at(-1)?.length ?? 0)]
  action.command = { title: 'Rename', command: 'editor.action.rename', arguments: [where] }
  return action
}
