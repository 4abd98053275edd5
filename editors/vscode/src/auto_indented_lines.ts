// The lines that a person began with Enter since the last pause, with the white space that they
// were given. No `vscode` here.

/** A change of a text: lines and columns from 0. */
export interface Change {
  start: { line: number, character: number }
  end: { line: number, character: number }
  text: string
}

/** A line, and the white space at its beginning. */
export interface AutoIndentedLine {
  line: number
  blank: string
}

export class AutoIndentedLines {
  private lines: AutoIndentedLine[] = []

  /** Follows the changes of one event; several changes in one event are not typed by a person. */
  changed(changes: readonly Change[]): void {
    const [change] = changes
    if (change === undefined) return
    if (changes.length > 1) {
      this.lines = []
      return
    }
    const { start, end, text } = change
    const added = text.split('\n').length - 1 - (end.line - start.line)
    const enter = /^\n([ \t]*)$/.exec(text)
    const pasted = added > 0 && enter === null
    const kept: AutoIndentedLine[] = []
    for (const one of this.lines) {
      // Kept: lines before the change, lines behind it, and the line in which it begins unless it
      // changes the white space.
      if (one.line < start.line || (one.line === start.line && start.character >= one.blank.length && !pasted)) kept.push(one)
      else if (one.line > end.line) kept.push({ line: one.line + added, blank: one.blank })
    }
    if (enter !== null) kept.push({ line: start.line + 1, blank: enter[1] ?? '' })
    this.lines = kept.sort((a, b) => a.line - b.line)
  }

  /** The lines from the top. */
  get all(): readonly AutoIndentedLine[] {
    return this.lines
  }

  /** Forgets a line of `all`, if it is still known. */
  forget(line: AutoIndentedLine): void {
    this.lines = this.lines.filter((one) => one !== line)
  }

  get empty(): boolean {
    return this.lines.length === 0
  }
}
