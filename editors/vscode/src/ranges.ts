// The new place of a range after the text around it changed.
import type { Position, Range } from './lsp_ext.js'

export interface Change {
  range: Range
  text: string
}

const notAfter = (a: Position, b: Position): boolean => a.line < b.line || (a.line === b.line && a.character <= b.character)

function shift(position: Position, change: Change): Position {
  const lines = change.text.split('\n')
  const last = (lines.at(-1) ?? '').length
  const added = lines.length - 1 - (change.range.end.line - change.range.start.line)
  if (position.line > change.range.end.line) return { line: position.line + added, character: position.character }
  const from = lines.length === 1 ? change.range.start.character + last : last
  return { line: position.line + added, character: from + position.character - change.range.end.character }
}

/** The range after the change; undefined when the change touches it. */
export function rangeAfter(range: Range, change: Change): Range | undefined {
  if (notAfter(range.end, change.range.start)) {
    // At its very end: white space and new lines may follow, anything else is an edit.
    const touches = range.end.line === change.range.start.line && range.end.character === change.range.start.character
    return touches && /^\S/.test(change.text) ? undefined : range
  }
  if (notAfter(change.range.end, range.start)) return { start: shift(range.start, change), end: shift(range.end, change) }
  return undefined
}
