// The text of a macro stepper. Expansions replace forms, also within other expansions, and can be
// undone. No `vscode` here: it is tested without.
import type { Position, Range } from './lsp_ext.js'

/** An expansion, and the text that it took the place of. Offsets are UTF-16 code units. */
export interface Placed {
  readonly start: number
  readonly end: number
  readonly before: string
  /** The expansions that were in that text, by their offsets in it. */
  readonly hidden: readonly Placed[]
}

/** A text with expansions; one that holds another is before it in the list. */
export interface Steps {
  readonly text: string
  readonly placed: readonly Placed[]
}

/** A text with the line breaks of the copy: VS Code uses one kind in a document. */
const lines = (text: string): string => text.replace(/\r\n?/g, '\n')

export const begun = (text: string): Steps => ({ text: lines(text), placed: [] })

export function offsetAt(text: string, { line, character }: Position): number {
  let start = 0
  for (let i = 0; i < line; i++) {
    const end = text.indexOf('\n', start)
    if (end < 0) return text.length
    start = end + 1
  }
  const end = text.indexOf('\n', start)
  return Math.min(start + character, end < 0 ? text.length : end)
}

export function positionAt(text: string, offset: number): Position {
  const lines = text.slice(0, offset).split('\n')
  return { line: lines.length - 1, character: (lines.at(-1) ?? '').length }
}

export const rangeAt = (text: string, { start, end }: { start: number; end: number }): Range => ({ start: positionAt(text, start), end: positionAt(text, end) })

const shifted = (one: Placed, by: number): Placed => ({ ...one, start: one.start + by, end: one.end + by })

/**
 * The expansions around and beside a range whose text becomes longer by `by`, and those in it. An
 * expansion with the same range counts as around it.
 */
function splitPlaced(placed: readonly Placed[], start: number, end: number, by: number): { others: Placed[]; inside: Placed[] } {
  const others: Placed[] = []
  const inside: Placed[] = []
  for (const one of placed)
    if (one.start <= start && end <= one.end) others.push({ ...one, end: one.end + by })
    else if (start <= one.start && one.end <= end) inside.push(one)
    else others.push(one.start >= end ? shifted(one, by) : one)
  return { others, inside }
}

/** The text with an expansion in the place of the form from `start` to `end`. */
export function expanded({ text, placed }: Steps, start: number, end: number, answered: string): Steps {
  const expansion = lines(answered)
  const { others, inside } = splitPlaced(placed, start, end, expansion.length - (end - start))
  const hidden = inside.map((one) => shifted(one, -start))
  return {
    text: text.slice(0, start) + expansion + text.slice(end),
    placed: [...others, { start, end: start + expansion.length, before: text.slice(start, end), hidden }],
  }
}

/** The innermost expansion at an offset. */
export function innermost({ placed }: Steps, offset: number): Placed | undefined {
  let found: Placed | undefined
  for (const one of placed)
    if (one.start <= offset && offset <= one.end && (found === undefined || one.end - one.start <= found.end - found.start)) found = one
  return found
}

/** The text without the innermost expansion at an offset, and where that began. */
export function collapsed(steps: Steps, offset: number): { steps: Steps; start: number } | undefined {
  const last = innermost(steps, offset)
  if (last === undefined) return undefined
  const { start, end, before, hidden } = last
  const { others } = splitPlaced(steps.placed.filter((one) => one !== last), start, end, before.length - (end - start))
  const text = steps.text.slice(0, start) + before + steps.text.slice(end)
  return { steps: { text, placed: [...others, ...hidden.map((one) => shifted(one, start))] }, start }
}

const before = (one: Position, other: Position): boolean => one.line < other.line || (one.line === other.line && one.character < other.character)

/** The start of the next, or the previous, of ranges that are in the text's order. */
export function neighbour(calls: readonly Range[], position: Position, forward: boolean): Position | undefined {
  return forward
    ? calls.find(({ start }) => before(position, start))?.start
    : calls.filter(({ start }) => before(start, position)).at(-1)?.start
}
