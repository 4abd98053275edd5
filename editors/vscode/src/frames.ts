// Frames of a backtrace: which frames have a source, and where a frame's definition calls the next
// frame's function. No `vscode` here.
import type { LispError, StackFrame } from './lsp_ext.js'

const NAME = /^(?:\|(?:[^|\\]|\\.)*\||[^\s()|"';])+/

/** A frame that may have a source. */
export type Sourced = Pick<StackFrame, 'text' | 'method' | 'file' | 'line'> & { name: string }

/** The frame at `index`, if it is of a program's function. */
export function sourced(error: LispError, index: number): Sourced | undefined {
  const frame = error.backtrace[index]
  if (frame === undefined || frame.name === null || frame.role !== 'program') return undefined
  const { text, name, method, file, line } = frame
  return { text: text.slice(0, 500), name, method, file, line }
}

/**
 * The name of the function that the frame at `index` was calling, without its package, for finding
 * the call.
 */
export function calleeOf(error: LispError, index: number): string | undefined {
  const name = index === 0 ? error.operation : error.backtrace[index - 1]?.name
  return name?.replace(/^\(SETF\s+|\)$/gi, '').replace(/^.*:/, '').toLowerCase()
}

/** The lines by which a text shows a backtrace, one for each frame. */
export function backtraceLines(error: LispError | null): string[] {
  return (error?.backtrace ?? []).map((frame, index) => `${index}: ${frame.text}`)
}

/**
 * The frame that is shown in a line of a text with the backtrace of `error`: its index, and where
 * the call begins in the line. The line may be cut, and the error may lack frames.
 */
export function frameAt(error: LispError, line: string): { index: number; start: number } | undefined {
  const indented = line.length - line.trimStart().length
  const index = backtraceLines(error).findIndex((shown) => line.startsWith(shown.replace(/\n[^]*/, '').slice(0, 44), indented))
  return index < 0 ? undefined : { index, start: indented + `${index}: `.length }
}

/** An error with the parts of its frames that their links need, for the arguments of a command. */
export function briefly(error: LispError | null): LispError | null {
  if (error === null) return null
  return { ...error, message: '', backtrace: error.backtrace.map((frame) => ({ ...frame, text: frame.text.slice(0, 100), args: [] })) }
}

/**
 * The place in the text of a definition where `callee` is called: the offset after the parenthesis.
 * Strings and comments are skipped.
 */
export function callIn(definition: string, callee: string): number | undefined {
  let at = 0
  let depth = 0
  while (at < definition.length) {
    const c = definition.charAt(at)
    if (c === '"') {
      at++
      while (at < definition.length && definition.charAt(at) !== '"') at += definition.charAt(at) === '\\' ? 2 : 1
      at++
    } else if (c === ';') {
      const end = definition.indexOf('\n', at)
      at = end < 0 ? definition.length : end
    } else if (definition.startsWith('#|', at)) {
      const end = definition.indexOf('|#', at)
      at = end < 0 ? definition.length : end + 2
    } else if (definition.startsWith('#\\', at)) at += 3
    else {
      if (c === ')') depth--
      const quoted = definition.startsWith("#'", at) && depth > 0
      if (c === '(' && depth++ > 0 || quoted) {
        const begin = at + (quoted ? 2 : 1)
        const word = NAME.exec(definition.slice(begin))?.[0]
        if (word?.replace(/^.*:/, '').toLowerCase() === callee) return begin
      }
      at++
    }
  }
  return undefined
}
