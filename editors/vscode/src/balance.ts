// Parentheses, strings, symbols and comments that do not balance, from the text alone, for
// diagnostics while the server may not run, in its words (server/src/ide/structure.rs). No `vscode`
// here.
import { read } from './reader.js'

export interface Unbalanced {
  /** Offsets. */
  start: number
  end: number
  message: string
}

/** The sentence about a text that ends inside a token. */
const UNFINISHED = {
  string: 'This string never ends: a `"` is missing.',
  symbol: 'This `|` is never closed: a second `|` is missing.',
  comment: 'This comment never ends: a `|#` is missing. Everything after it is commented out.',
}

/** The delimiters that close nothing, then what is not closed; none in a complete text. */
export function unbalanced(text: string): Unbalanced[] {
  const { open, stray, inside, opening } = read(text)
  // Surplus delimiters with only white space between them are reported as one.
  const runs: { start: number; end: number; count: number }[] = []
  for (const at of stray) {
    const last = runs.at(-1)
    if (last !== undefined && text.slice(last.end, at).trim() === '') {
      last.end = at + 1
      last.count++
    } else runs.push({ start: at, end: at + 1, count: 1 })
  }
  const found: Unbalanced[] = runs.map(({ start, end, count }) => ({
    start, end,
    message: count === 1 ? 'This `)` closes nothing: there is one too many.' : `These ${count} \`)\` close nothing: there are ${count} too many.`,
  }))
  if (opening !== undefined && inside !== undefined && inside !== 'prefix') {
    const line = text.indexOf('\n', opening)
    const end = inside === 'comment' ? opening + 2 : line < 0 ? text.length : line
    // The text does not show whether the lists around it are closed.
    found.push({ start: opening, end, message: UNFINISHED[inside] })
  } else if (open[0] !== undefined) {
    const paren = text.indexOf('(', open[0])
    found.push({ start: paren, end: paren + 1, message: `This list is never closed; ${open.length === 1 ? 'one `)` is' : `${open.length} \`)\` are`} missing.` })
  }
  return found
}
