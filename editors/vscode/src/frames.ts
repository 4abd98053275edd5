// Frames of a backtrace, as the image prints them: whose they are, and where in a definition the next one was called. No `vscode` here.
import { FUNCTIONS, OPERATORS } from '../syntaxes/names.mjs'

export interface Frame {
  /** The function's name as a source would have it: `shop::price`, `(setf shop::price)`. */
  name: string
  /** The specializers of a method, as printed. */
  method?: string
}

const STANDARD = new Set([...FUNCTIONS, ...OPERATORS])
const NAME = /^(?:\|(?:[^|\\]|\\.)*\||[^\s()|"';])+/

/** The list that begins at `start`, with its parentheses. */
function listAt(text: string, start: number): string {
  let depth = 0
  let quoted = ''
  for (let at = start; at < text.length; at++) {
    const c = text.charAt(at)
    if (quoted !== '') {
      if (c === '\\') at++
      else if (c === quoted) quoted = ''
    } else if (c === '"' || c === '|') quoted = c
    else if (c === '\\') at++
    else if (c === '(') depth++
    else if (c === ')' && --depth === 0) return text.slice(start, at + 1)
  }
  return text.slice(start)
}

/** Whose a frame such as `(SHOP::PRICE 3)` or `((FLET X :IN SHOP::PRICE) 3)` is; undefined where no source could be shown. */
export function frameOf(text: string): Frame | undefined {
  if (!text.startsWith('(')) return undefined
  const rest = text.slice(1)
  if (!rest.startsWith('(')) {
    const name = NAME.exec(rest)?.[0]
    // The frames are printed as seen from CL-USER: what the standard defines has no prefix.
    return name === undefined || STANDARD.has(name.toLowerCase()) || /^(sb-|consort:)/i.test(name) ? undefined : { name }
  }
  const list = listAt(rest, 0)
  const inside = /\s:IN\s+([\s\S]+)\)$/i.exec(list)?.[1]
  if (inside !== undefined) return frameOf(inside.startsWith('(') ? `(${inside} )` : `(${inside})`)
  const method = /^\((?:SB-PCL::(?:FAST|SLOW)-METHOD|:?METHOD)\s+/i.exec(list)
  if (method !== null) {
    const name = list.charAt(method[0].length) === '(' ? listAt(list, method[0].length) : NAME.exec(list.slice(method[0].length))?.[0]
    if (name === undefined) return undefined
    return { name, method: list.slice(method[0].length + name.length).replace(/\)$/, '').trim() }
  }
  return /^\(SETF\s/i.test(list) ? { name: list } : undefined
}

/** The name of what a frame calls, without its package, for finding the call; also of the standard's functions. */
export function calleeOf(text: string): string | undefined {
  const plain = /^\(+([^\s()|"';]+)/.exec(text)?.[1]
  const name = frameOf(text)?.name ?? plain
  return name?.replace(/^\(SETF\s+|\)$/gi, '').replace(/^.*:/, '').toLowerCase()
}

/** What the innermost frame was doing, as far as an error's text tells: the call of a function that is the system's, or that is not there. */
export function operationIn(message: string): string | undefined {
  const operation = /Operation was (\([^\n]+\))/.exec(message)?.[1]
  const missing = /The function ([^\s]+) is undefined/.exec(message)?.[1]
  return operation ?? (missing === undefined ? undefined : `(${missing})`)
}

/** Where, in the text of a definition, `callee` is called: the offset behind the parenthesis. Strings and comments are passed over. */
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
