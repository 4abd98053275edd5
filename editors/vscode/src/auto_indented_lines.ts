// The lines that a person began with Enter since the last pause, each with the white space that VS
// Code put at its beginning. No `vscode` here.

/** A change of a text. Lines and columns count from 0, and line breaks of `text` are `\n`. */
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

/** True for a change that removes text at the beginning of a line. */
const removesBlank = ({ start, end, text }: Change): boolean => text === '' && start.character === 0 && start.line === end.line

export class AutoIndentedLines {
  private lines: AutoIndentedLine[] = []

  /**
   * Follows the changes of one event. Several changes in one event are not typed by a person, and
   * all lines are then forgotten; but VS Code removes the white space of a line that stays empty
   * together with the next Enter.
   */
  changed(changes: readonly Change[]): void {
    const removed = changes.length > 1 ? changes.filter(removesBlank) : []
    const [change, other] = changes.filter((one) => !removed.includes(one))
    if (other !== undefined) {
      this.lines = []
      return
    }
    this.lines = this.lines.filter(({ line }) => !removed.some(({ start }) => start.line === line))
    if (change === undefined) return
    const { start, end, text } = change
    const added = text.split('\n').length - 1 - (end.line - start.line)
    const enter = /^\n([ \t]*)$/.exec(text)
    const pasted = added > 0 && enter === null
    const kept: AutoIndentedLine[] = []
    for (const one of this.lines) {
      // Lines before and after the change are kept. The line in which the change begins is kept
      // unless the change is in its white space or pastes lines.
      if (one.line < start.line || (one.line === start.line && start.character >= one.blank.length && !pasted)) kept.push(one)
      else if (one.line > end.line) kept.push({ line: one.line + added, blank: one.blank })
    }
    if (enter !== null) kept.push({ line: start.line + 1, blank: enter[1] ?? '' })
    this.lines = kept.sort((a, b) => a.line - b.line)
  }

  /**
   * Notes that the answer to Enter has indented a line by `blank`, perhaps on the basis of lines
   * that are not indented correctly yet. Returns false if the line is not known.
   */
  indented(line: number, blank: string): boolean {
    const known = this.lines.find((one) => one.line === line)
    if (known !== undefined) known.blank = blank
    return known !== undefined
  }

  /** The lines from the top. */
  get all(): readonly AutoIndentedLine[] {
    return this.lines
  }

  /** Forgets a line of `all`, if it is still known. */
  forget(line: AutoIndentedLine): void {
    this.lines = this.lines.filter((one) => one !== line)
  }

  /** True when no line is known. */
  get empty(): boolean {
    return this.lines.length === 0
  }
}
