// The ASDF systems that a system definition file names. No `vscode` here: it is tested without.

/** The names in `(defsystem ...)` forms, lower-case, in their order. */
export function systemsIn(text: string): string[] {
  const names: string[] = []
  for (const match of text.matchAll(/^\s*\((?:asdf:|asdf\/defsystem:)?defsystem\s+(?:#?:|')?("(?:[^"\\]|\\.)*"|\|[^|]*\||[^\s()"';]+)/gim)) {
    const written = match[1] ?? ''
    names.push(/^["|]/.test(written) ? written.slice(1, -1) : written.toLowerCase())
  }
  return names
}
