// Rows with a key, and the same rows later. No `vscode` here: it is tested without.

export interface Merged<T> {
  /**
   * The rows as they are now: a row that was there before is the same object, with its fields
   * replaced.
   */
  rows: T[]
  /** True if a row was added, removed or moved. */
  moved: boolean
  /** The rows that were there before and differ. */
  differing: T[]
}

export function merge<T extends object>(before: readonly T[], now: readonly T[], key: (row: T) => string): Merged<T> {
  const known = new Map(before.map((row) => [key(row), row]))
  const keys = before.map(key)
  const moved = keys.length !== now.length || now.some((row, index) => key(row) !== keys[index])
  const differing: T[] = []
  const rows = now.map((row) => {
    const element = known.get(key(row))
    if (element === undefined) return row
    if (JSON.stringify(element) !== JSON.stringify(row)) differing.push(element)
    return Object.assign(element, row)
  })
  return { rows, moved, differing }
}
