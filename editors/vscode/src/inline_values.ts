// The names whose values are shown at the ends of the lines of a stopped definition. Imports no
// `vscode`, so that it is tested without.

/** A name in a line: where it begins, and the name. */
export interface Named {
  line: number
  character: number
  name: string
}

/** The characters that end a name. */
const DELIMITERS = '()"\'`,; \t\r\n|'
/** The names that are looked up in one line. */
const NAMES = 20

/**
 * The names in the lines of a text that may be of variables, each once in a line. Strings,
 * comments, keywords and numbers have none.
 */
export function namesIn(text: string, firstLine: number): Named[] {
  const found: Named[] = []
  let line = firstLine
  let lineStart = 0
  let seen = new Set<string>()
  const next = (at: number): void => {
    line++
    lineStart = at
    seen = new Set()
  }
  for (let at = 0; at < text.length; ) {
    const char = text.charAt(at)
    if (char === '\n') {
      next(++at)
    } else if (char === ';') {
      while (at < text.length && text.charAt(at) !== '\n') at++
    } else if (char === '"' || (char === '#' && text.charAt(at + 1) === '|') || char === '|') {
      const comment = char === '#'
      at += comment ? 2 : 1
      while (at < text.length && !(comment ? text.startsWith('|#', at) : text.charAt(at) === char)) {
        if (!comment && text.charAt(at) === '\\') at++
        if (text.charAt(at) === '\n') next(at + 1)
        at++
      }
      at += comment ? 2 : 1
    } else if (char === '#') {
      // A character, or another dispatching macro: not the name of a variable.
      at += text.charAt(at + 1) === '\\' ? 3 : 2
      if (text.charAt(at - 2) === '\\') while (at < text.length && !DELIMITERS.includes(text.charAt(at))) at++
    } else if (DELIMITERS.includes(char)) {
      at++
    } else {
      const start = at
      while (at < text.length && !DELIMITERS.includes(text.charAt(at))) at++
      const name = text.slice(start, at)
      const key = name.toLowerCase()
      if (!/^[:&]|^[+-]?[\d.]/.test(name) && !seen.has(key) && seen.size < NAMES) {
        seen.add(key)
        found.push({ line, character: start - lineStart, name })
      }
    }
  }
  return found
}
