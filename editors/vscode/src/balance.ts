// Parentheses, strings and comments that nothing closes, from the text alone, for diagnostics while
// the server may not run. No `vscode` here.
import { read } from './reader.js'

export interface Unbalanced {
  /** Offsets. */
  start: number
  end: number
  message: string
}

/** The delimiters that are not closed, the outermost first; none in a complete text. */
export function unbalanced(text: string): Unbalanced[] {
  const reading = read(text)
  const outer = reading.open[0]
  const found: Unbalanced[] = []
  if (outer !== undefined) {
    const paren = text.indexOf('(', outer)
    found.push({ start: paren, end: paren + 1, message: `${reading.open.length === 1 ? 'A closing parenthesis is' : `${reading.open.length} closing parentheses are`} missing: this list does not end.` })
  }
  if (reading.inside === 'string' || reading.inside === 'comment') {
    const last = text.trimEnd().length
    found.push({ start: Math.max(0, last - 1), end: last, message: `The ${reading.inside} that the text ends in does not end.` })
  }
  return found
}
