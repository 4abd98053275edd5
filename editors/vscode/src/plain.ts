// Characters whose deletion unbalances nothing. No `vscode` here: it is tested without.

/** Delimiters, escapes, and characters that form a delimiter with their neighbour. */
const SPECIAL = /[()"\\|;#\n\r]/

/** True if the character can be deleted whatever is around its line. */
export function isPlain(line: string, at: number): boolean {
  const char = line[at]
  const previous = at > 0 ? line[at - 1] : undefined
  const next = line[at + 1]
  const special = (one: string | undefined): boolean => one !== undefined && SPECIAL.test(one)
  return char !== undefined && !special(char) && !special(previous) && !special(next)
}
