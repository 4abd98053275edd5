// A tolerant reader of Common Lisp's standard syntax, which finds where forms begin and end. It
// knows no packages and never fails. The server has the complete reader; this one is used where a
// round trip would take too long (is this input complete?) and with servers without the commands.

export interface Form {
  /** Offsets; `start` includes prefixes such as a quote. */
  start: number
  end: number
  kind: 'list' | 'atom' | 'string'
  children: Form[]
}
export interface Reading {
  forms: Form[]
  /** Offsets of parentheses that nothing closes. */
  open: number[]
  /** Offsets of closing parentheses that close nothing. */
  stray: number[]
  /** Inside what the text ends, if not between or after forms. */
  inside: 'string' | 'comment' | 'symbol' | 'prefix' | undefined
  /** The offset of the delimiter that opens it: `"`, `#|` or `|`. */
  opening: number | undefined
}

const DELIMITER = /[\s()"';`,]/

export function read(text: string): Reading {
  const top: Form[] = []
  const stack: Form[] = []
  const stray: number[] = []
  let inside: Reading['inside']
  let opening: number | undefined
  let prefix = -1
  let at = 0
  const begin = (): number => (prefix < 0 ? at : prefix)
  const add = (form: Form): void => {
    ;(stack.at(-1)?.children ?? top).push(form)
    prefix = -1
  }
  while (at < text.length) {
    const c = text.charAt(at)
    if (/\s/.test(c)) at++
    else if (c === ';') {
      const end = text.indexOf('\n', at)
      at = end < 0 ? text.length : end
    } else if (c === '#' && text[at + 1] === '|') {
      const end = endOfComment(text, at)
      if (end === undefined) {
        inside = 'comment'
        opening = at
      }
      at = end ?? text.length
    } else if (c === '(' || (c === '#' && /^#\d*[aAcCsS]?\(/.test(text.slice(at, at + 12)))) {
      const form: Form = { start: begin(), end: text.length, kind: 'list', children: [] }
      at = text.indexOf('(', at) + 1
      add(form)
      stack.push(form)
    } else if (c === ')') {
      const form = stack.pop()
      if (form === undefined) stray.push(at)
      at++
      if (form) form.end = at
      prefix = -1
    } else if (c === '"') {
      const start = begin()
      const quote = at++
      while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
      if (at >= text.length) {
        inside = 'string'
        opening = quote
      }
      at = Math.min(at + 1, text.length)
      add({ start, end: at, kind: 'string', children: [] })
    } else if (c === "'" || c === '`' || c === ',') {
      prefix = begin()
      at += c === ',' && /[@.]/.test(text.charAt(at + 1)) ? 2 : 1
    } else if (/^#(?:['.+-]|\d+=|[pP](?="))/.test(text.slice(at, at + 12))) {
      // `#+feature form` is one form here: the feature is skipped as part of the prefix.
      const start = begin()
      const conditional = /[+-]/.test(text.charAt(at + 1))
      at += /^#\d+=/.exec(text.slice(at, at + 12))?.[0].length ?? 2
      prefix = start
      if (conditional) at = skipFeature(text, at)
    } else {
      const start = begin()
      const { end, bar } = endOfAtom(text, at)
      if (bar !== undefined) {
        inside = 'symbol'
        opening = bar
      }
      at = end
      add({ start, end: at, kind: 'atom', children: [] })
    }
  }
  if (prefix >= 0 && inside === undefined) inside = 'prefix'
  return { forms: top, open: stack.map((form) => form.start), stray, inside, opening }
}

function endOfComment(text: string, from: number): number | undefined {
  let depth = 0
  for (let at = from; at < text.length - 1; at++) {
    const pair = text.slice(at, at + 2)
    if (pair === '#|') depth++, at++
    else if (pair === '|#') {
      at++
      if (--depth === 0) return at + 1
    }
  }
  return undefined
}

/** The end of an atom; that of the text, and the offset of the `|`, where nothing closes that. */
function endOfAtom(text: string, from: number): { end: number; bar?: number } {
  let at = from
  if (text.startsWith('#\\', at)) at = Math.min(at + 3, text.length)
  while (at < text.length && !DELIMITER.test(text.charAt(at))) {
    if (text[at] === '\\') at += 2
    else if (text[at] === '|') {
      const bar = at++
      while (at < text.length && text[at] !== '|') at += text[at] === '\\' ? 2 : 1
      if (at >= text.length) return { end: text.length, bar }
      at++
    } else at++
  }
  // Always advances, also at a single sharpsign before a delimiter.
  return { end: Math.min(Math.max(at, from + 1), text.length) }
}

function skipFeature(text: string, from: number): number {
  let at = from
  while (/\s/.test(text.charAt(at))) at++
  if (text[at] !== '(') return at < text.length ? endOfAtom(text, at).end : at
  let depth = 0
  for (; at < text.length; at++) {
    if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) return at + 1
  }
  return at
}

/** Returns true if the text is complete forms, so that a REPL may evaluate it. */
export function complete(text: string): boolean {
  const reading = read(text)
  return reading.open.length === 0 && reading.inside === undefined
}

/**
 * The top-level forms. Where a list is never closed, the lists at the margin inside it are
 * top-level forms, too, as for the server: it ends before the first of them.
 */
export function topLevelForms(text: string): Form[] {
  const { forms, open } = read(text)
  const broken = forms.at(-1)
  if (broken === undefined || open[0] === undefined) return forms
  const parts: Form[] = []
  // A stack of its own: a broken text may be nested deeper than calls may be.
  const stack = [broken]
  for (let form = stack.pop(); form !== undefined; form = stack.pop()) {
    if (form === broken || (form.kind === 'list' && text[form.start - 1] === '\n')) parts.push(form)
    for (const child of [...form.children].reverse()) stack.push(child)
  }
  const ended = parts.map((part, index) => {
    const next = parts[index + 1]?.start ?? text.length
    return part.end <= next ? part : { ...part, end: text.slice(0, next).trimEnd().length, children: part.children.filter(({ end }) => end <= next) }
  })
  return [...forms.slice(0, -1), ...ended]
}

/**
 * The top-level form at an offset: the one around it, else the last that ends on its line before
 * it, else the next.
 */
export function topLevelFormAt(text: string, offset: number): Form | undefined {
  const forms = topLevelForms(text)
  return (
    forms.find((form) => form.start <= offset && offset <= form.end) ??
    forms.filter((form) => form.end <= offset).at(-1) ??
    forms.find((form) => form.start >= offset)
  )
}

/** The last top-level form that Lisp reads: `#+(or)` and `#+nil` before a form leave it out. */
export function lastFormRead(text: string): Form | undefined {
  return topLevelForms(text).filter(({ start, end }) => !LEFT_OUT.test(text.slice(start, end))).at(-1)
}

const LEFT_OUT = /^#(?:\+\s*(?:\(\s*or\s*\)|:?nil(?=[\s(]))|-\s*\(\s*and\s*\))/i

/**
 * The innermost form at a cursor: the one that ends there, else the one that begins there, else the
 * atom under the cursor, else the list around it.
 */
export function formAt(text: string, offset: number): Form | undefined {
  let level = read(text).forms
  let around: Form | undefined
  for (;;) {
    const touching = level.filter((form) => form.start <= offset && offset <= form.end)
    const within = touching.find((form) => form.start < offset && offset < form.end)
    const chosen = touching.find((form) => form.end === offset) ?? touching.find((form) => form.start === offset)
    if (within && within.kind === 'list' && !chosen) {
      around = within
      level = within.children
      continue
    }
    return chosen ?? within ?? around ?? level.filter((form) => form.end <= offset).at(-1)
  }
}

/**
 * The name of the package in force at an offset, as it is written in the last `in-package` before
 * it; undefined when there is none.
 */
export function packageAt(text: string, offset: number): string | undefined {
  let name: string | undefined
  for (const match of text.matchAll(IN_PACKAGE)) {
    if (match.index > offset) break
    name = packageNamed(match)
  }
  return name
}

/** The same, or the package of the first `in-package`, for an offset above that. */
export function packageNear(text: string, offset: number): string | undefined {
  const [first] = text.matchAll(IN_PACKAGE)
  return packageAt(text, offset) ?? (first && packageNamed(first))
}

/** True if the text has a form that defines the package, whose name is as `packageAt` gives it. */
export function definesPackage(text: string, name: string): boolean {
  return [...text.matchAll(DEFPACKAGE)].some((match) => packageNamed(match) === name)
}

const DEFPACKAGE = /^[ \t]*\((?:cl:|common-lisp:|uiop:|uiop\/package:)?(?:defpackage|define-package)\s+(?:#?:|')?("(?:[^"\\]|\\.)*"|\|[^|]*\||[^\s()"';]+)/gim
const IN_PACKAGE = /^\((?:cl:|common-lisp:)?in-package\s+(?:#?:|')?("(?:[^"\\]|\\.)*"|\|[^|]*\||[^\s()"';]+)\s*\)/gim

function packageNamed([, written = '']: RegExpMatchArray): string {
  return /^["|]/.test(written) ? written.slice(1, -1) : written.toUpperCase()
}
