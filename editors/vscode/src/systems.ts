// The ASDF systems that a system definition file names. No `vscode` here: it is tested without.

export interface DefinedSystem {
  name: string
  /** The line of the definition, from 0. */
  line: number
  /** The systems whose tests are run as this system's. */
  testedBy: string[]
}

const DEFSYSTEM = /^\s*\((?:asdf:|asdf\/defsystem:)?defsystem\s+(?:#?:|')?("(?:[^"\\]|\\.)*"|\|[^|]*\||[^\s()"';]+)/gim
/** `(test-op "shop/tests")` and `(test-op (test-op "shop/tests"))`. */
const TESTED_BY = /\((?:asdf:)?test-op\s+(?:#?:|')?("(?:[^"\\]|\\.)*"|[^\s()"';]+)\s*\)/gi

/** The systems of `(defsystem ...)` forms, in their order. */
export function systemsIn(text: string): DefinedSystem[] {
  const matches = [...text.matchAll(DEFSYSTEM)]
  return matches.map((match, index) => {
    const form = text.slice(match.index, matches[index + 1]?.index)
    const start = match.index + match[0].search(/\(/)
    return {
      name: nameOf(match[1]),
      line: text.slice(0, start).split('\n').length - 1,
      // One that performs tests itself has tests of its own.
      testedBy: /:in-order-to/i.test(form) && !/:perform\s+\((?:asdf:)?test-op/i.test(form) ? [...form.matchAll(TESTED_BY)].map(([, written]) => nameOf(written)) : [],
    }
  })
}

function nameOf(written = ''): string {
  return /^["|]/.test(written) ? written.slice(1, -1) : written.toLowerCase()
}
