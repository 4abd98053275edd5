// A multi-line line editor over a terminal's bytes. The editor knows no Lisp: the host says whether
// input is complete, and what completes a word.

export interface Host {
  write(text: string): void
  /** Takes an input that is complete; the editor is idle until `begin`. */
  submit(text: string): void
  complete(text: string): boolean
  /** Best first. `operator`: the name follows a parenthesis. */
  completions(prefix: string, operator: boolean): string[] | Promise<string[]>
  /** Ctrl-C with nothing typed, or while running code reads a line. */
  interrupt(): void
  /** Ctrl-D on an empty line. */
  end(): void
}

const WORD = /[^\s()"';`,]/

export class LineEditor {
  private text = ''
  private cursor = 0
  private prompt = ''
  private active = false
  /** The terminal row of the cursor, counted from the prompt's. */
  private row = 0
  private columns = 80
  private readonly history: string[] = []
  private recalled = 0
  /** The edited texts of visited positions of the history; after its end, the draft. */
  private edited = new Map<number, string>()
  private pending = ''
  /** The text that was typed at the prompt when `run` submitted another one. */
  private aside: { text: string; cursor: number; edited: Map<number, string>; recalled: number; length: number } | undefined
  /** Takes the line that running code reads: no form, and nothing for the history. */
  private question: ((text: string | undefined) => void) | undefined

  constructor(
    private readonly host: Host,
    history: string[] = [],
  ) {
    this.history.push(...history)
  }

  get isActive(): boolean {
    return this.active
  }
  get past(): readonly string[] {
    return this.history
  }
  resize(columns: number): void {
    this.columns = Math.max(columns, 20)
  }

  /**
   * Shows the prompt and starts editing, with the draft that `run` has saved and the keys that were
   * typed meanwhile.
   */
  begin(prompt: string): void {
    this.prompt = prompt
    // A line that running code reads is not part of the draft.
    const aside = this.question === undefined ? this.aside : undefined
    if (this.question === undefined) this.aside = undefined
    this.text = aside?.text ?? ''
    this.cursor = aside?.cursor ?? 0
    this.edited = aside?.edited ?? new Map<number, string>()
    this.recalled = this.history.length
    if (aside !== undefined) {
      // Entries submitted since are before the draft.
      const draft = this.edited.get(aside.length)
      this.edited.delete(aside.length)
      if (draft !== undefined) this.edited.set(this.history.length, draft)
      if (aside.recalled < aside.length) this.recalled = aside.recalled
    }
    this.row = 0
    this.active = true
    this.draw()
    const typed = this.pending
    this.pending = ''
    if (typed !== '') this.input(typed)
  }

  /**
   * Reads a line for running code. `answer` gets the line without its newline, or undefined for end
   * of file (Ctrl-D).
   */
  ask(prompt: string, answer: (text: string | undefined) => void): void {
    this.question = answer
    this.host.write('\r\x1b[J')
    this.begin(prompt)
  }
  /** Ends `ask`: the code does not read any more. */
  withdraw(): void {
    if (this.question !== undefined) this.answer(undefined)
  }
  private answer(text: string | undefined): void {
    const { question } = this
    this.cursor = this.text.length
    this.redraw()
    this.host.write('\r\n')
    this.active = false
    this.question = undefined
    question?.(text)
  }

  /**
   * Submits another text than the typed one. The typed text is saved, and `begin` restores it.
   */
  run(text: string): void {
    const { text: typed, cursor, edited, recalled } = this
    this.aside = { text: typed, cursor, edited, recalled, length: this.history.length }
    this.text = text.replace(/\r\n?/g, '\n')
    this.submit()
  }

  /**
   * Writes something above the line that is being edited. `prompt`: another one for that line,
   * unless running code reads it.
   */
  above(text: string, prompt?: string): void {
    const lines = crlf(text.endsWith('\n') ? text : `${text}\n`)
    if (!this.active) return this.host.write(lines)
    this.erase()
    if (prompt !== undefined && this.question === undefined) this.prompt = prompt
    this.host.write(lines)
    this.draw()
  }

  /** Changes the prompt of the line that is being edited, unless running code reads the line. */
  reprompt(prompt: string): void {
    if (!this.active || this.question !== undefined || prompt === this.prompt) return
    this.erase()
    this.prompt = prompt
    this.draw()
  }

  /**
   * Inserts text at the cursor, as if it were pasted. The cursor is then `back` characters before
   * the end of the text.
   */
  paste(text: string, back = 0): void {
    for (const line of text.replace(/\r\n?/g, '\n')) this.insert(line)
    this.cursor -= back
    this.redraw()
  }

  input(data: string): void {
    // A bracketed paste: new lines in it do not submit.
    const pasted = /^\x1b\[200~([\s\S]*?)(?:\x1b\[201~)?$/.exec(data)
    if (pasted) return this.paste(pasted[1] ?? '')
    const keys = data.match(/\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|\x1b[^[O]|[\s\S]/gu) ?? []
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] ?? ''
      if (!this.active) {
        if (key === '\x03') {
          this.pending = ''
          this.host.interrupt()
        } else this.pending += key
        continue
      }
      this.key(key)
    }
  }

  private key(key: string): void {
    switch (key) {
      case '\r':
        return this.enter()
      case '\n':
      case '\x1b\r': // Alt-Enter: a new line in any case
        this.insert('\n')
        break
      case '\x7f':
      case '\b':
        if (this.cursor > 0) this.splice(this.cursor - this.widthBefore(), this.cursor, '')
        break
      case '\x1b[3~':
        this.splice(this.cursor, this.cursor + this.widthAfter(), '')
        break
      case '\x04': // Ctrl-D
        if (this.text === '') return this.question === undefined ? this.host.end() : this.answer(undefined)
        this.splice(this.cursor, this.cursor + this.widthAfter(), '')
        break
      case '\x03': // Ctrl-C
        if (this.question !== undefined || this.text === '') return this.host.interrupt()
        this.cursor = this.text.length
        this.redraw()
        this.host.write('^C\r\n')
        return this.begin(this.prompt)
      case '\x1b[D':
      case '\x02':
        this.cursor -= this.widthBefore()
        break
      case '\x1b[C':
      case '\x06':
        this.cursor += this.widthAfter()
        break
      case '\x1b[1;5D':
      case '\x1bb':
        this.cursor = this.wordStart()
        break
      case '\x1b[1;5C':
      case '\x1bf':
        this.cursor = this.wordEnd()
        break
      case '\x1b[H':
      case '\x1b[1~':
      case '\x1bOH':
      case '\x01':
        this.cursor = this.text.lastIndexOf('\n', this.cursor - 1) + 1
        break
      case '\x1b[F':
      case '\x1b[4~':
      case '\x1bOF':
      case '\x05':
        this.cursor = this.lineEnd()
        break
      case '\x1b[A':
      case '\x1bOA':
      case '\x10':
        this.vertical(-1)
        break
      case '\x1b[B':
      case '\x1bOB':
      case '\x0e':
        this.vertical(1)
        break
      case '\x0b': // Ctrl-K
        this.splice(this.cursor, this.lineEnd(), '')
        break
      case '\x15': // Ctrl-U
        this.splice(this.text.lastIndexOf('\n', this.cursor - 1) + 1, this.cursor, '')
        break
      case '\x17': // Ctrl-W
        this.splice(this.wordStart(), this.cursor, '')
        break
      case '\x0c': // Ctrl-L
        this.host.write('\x1b[2J\x1b[3J\x1b[H')
        this.row = 0
        return this.draw()
      case '\t':
        this.completeWord()
        break
      default:
        if (key < ' ' || key.startsWith('\x1b')) return
        this.insert(key)
    }
    this.redraw()
  }

  private enter(): void {
    if (this.question !== undefined) return this.answer(this.text)
    if (this.text.trim() !== '' && !this.host.complete(this.text)) {
      this.insert(`\n${indentation(this.text.slice(0, this.cursor))}`)
      return this.redraw()
    }
    this.submit()
  }
  private submit(): void {
    this.cursor = this.text.length
    this.redraw()
    this.host.write('\r\n')
    this.active = false
    if (this.text.trim() !== '' && this.history.at(-1) !== this.text) this.history.push(this.text)
    this.host.submit(this.text)
  }

  private vertical(step: -1 | 1): void {
    const start = this.text.lastIndexOf('\n', this.cursor - 1) + 1
    const column = this.cursor - start
    if (step < 0 && start > 0) {
      const above = this.text.lastIndexOf('\n', start - 2) + 1
      this.cursor = Math.min(above + column, start - 1)
      return
    }
    const end = this.lineEnd()
    if (step > 0 && end < this.text.length) {
      const next = this.text.indexOf('\n', end + 1)
      this.cursor = Math.min(end + 1 + column, next < 0 ? this.text.length : next)
      return
    }
    if (this.question !== undefined) return
    const to = this.recalled + step
    if (to < 0 || to > this.history.length) return
    this.edited.set(this.recalled, this.text)
    this.recalled = to
    this.text = this.edited.get(to) ?? this.history[to] ?? ''
    this.cursor = this.text.length
  }

  private completeWord(): void {
    let start = this.cursor
    while (start > 0 && WORD.test(this.text.charAt(start - 1))) start--
    const prefix = this.text.slice(start, this.cursor)
    if (prefix === '') return this.insert('  ')
    const asked = { text: this.text, cursor: this.cursor }
    const take = (found: string[]): void => {
      // The person typed more before the answer arrived.
      if (!this.active || this.text !== asked.text || this.cursor !== asked.cursor) return
      this.choose(start, prefix, found)
    }
    const found = this.host.completions(prefix, this.text.charAt(start - 1) === '(')
    if (Array.isArray(found)) take(found)
    else
      void found.then((late) => {
        take(late)
        if (this.active) this.redraw()
      })
  }

  /** Inserts the common prefix; lists the candidates when the prefix is nothing new. */
  private choose(start: number, prefix: string, found: string[]): void {
    // Candidates that match by their words or initials count only if none begins with the prefix.
    const begun = found.filter((one) => one.toLowerCase().startsWith(prefix.toLowerCase()))
    const choices = begun.length > 0 ? begun : found
    if (choices.length === 0) return
    const common = choices.reduce((a, b) => {
      let length = 0
      while (length < a.length && a.charAt(length).toLowerCase() === b.charAt(length).toLowerCase()) length++
      return a.slice(0, length)
    })
    if (choices.length === 1 || common.length > prefix.length) this.splice(start, this.cursor, common)
    else this.above(`${choices.slice(0, 40).join('  ')}${choices.length > 40 ? ' …' : ''}`)
  }

  private insert(text: string): void {
    this.splice(this.cursor, this.cursor, text)
  }
  private splice(from: number, to: number, text: string): void {
    this.text = this.text.slice(0, from) + text + this.text.slice(to)
    this.cursor = from + text.length
  }
  private lineEnd(): number {
    const end = this.text.indexOf('\n', this.cursor)
    return end < 0 ? this.text.length : end
  }
  private widthBefore(): number {
    return [...this.text.slice(0, this.cursor)].at(-1)?.length ?? 0
  }
  private widthAfter(): number {
    return [...this.text.slice(this.cursor)][0]?.length ?? 0
  }
  private wordStart(): number {
    let at = this.cursor
    while (at > 0 && !WORD.test(this.text.charAt(at - 1))) at--
    while (at > 0 && WORD.test(this.text.charAt(at - 1))) at--
    return at
  }
  private wordEnd(): number {
    let at = this.cursor
    while (at < this.text.length && !WORD.test(this.text.charAt(at))) at++
    while (at < this.text.length && WORD.test(this.text.charAt(at))) at++
    return at
  }

  private redraw(): void {
    this.erase()
    this.draw()
  }
  private erase(): void {
    this.host.write(`${this.row > 0 ? `\x1b[${this.row}A` : ''}\r\x1b[J`)
    this.row = 0
  }
  /** Draws the text. Continuation lines are aligned with the first line's text. */
  private draw(): void {
    const margin = ' '.repeat(this.prompt.length)
    const shown = this.prompt + this.text.replaceAll('\n', `\n${margin}`)
    const upTo = this.prompt + this.text.slice(0, this.cursor).replaceAll('\n', `\n${margin}`)
    const end = this.place(shown)
    const target = this.place(upTo)
    this.host.write(`\x1b[36m${this.prompt}\x1b[0m${crlf(shown.slice(this.prompt.length))}`)
    // A terminal delays the wrap of a full line until the next character: force it.
    if (end.column === 0 && shown !== '' && !shown.endsWith('\n')) this.host.write(' \r\x1b[K')
    if (end.row > target.row) this.host.write(`\x1b[${end.row - target.row}A`)
    this.host.write(`\r${target.column > 0 ? `\x1b[${target.column}C` : ''}`)
    this.row = target.row
  }
  private place(text: string): { row: number; column: number } {
    let row = 0
    let column = 0
    for (const c of text) {
      if (c === '\n') {
        row++
        column = 0
      } else {
        column += wide(c) ? 2 : 1
        if (column >= this.columns) {
          row++
          column = 0
        }
      }
    }
    return { row, column }
  }
}

const wide = (c: string): boolean => /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u.test(c)

/**
 * True if the last printed line that is not blank ends with the prompt, which is one line: the
 * output before a question has arrived.
 */
export function endsWithPrompt(printed: string, prompt: string): boolean {
  const wanted = prompt.trim()
  return wanted === '' || printed.trimEnd().endsWith(wanted)
}

export const crlf = (text: string): string => text.replace(/\r?\n/g, '\r\n')

/**
 * The indentation of a new line: two columns into the innermost open list, or under its first
 * argument.
 */
export function indentation(text: string): string {
  const open: number[] = []
  let line = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const c = text.charAt(at)
    if (c === '\n') line = at + 1
    if (inString) {
      if (c === '\\') at++
      else if (c === '"') inString = false
    } else if (c === '"') inString = true
    else if (c === '\\') at++
    else if (c === ';') {
      const end = text.indexOf('\n', at)
      at = (end < 0 ? text.length : end) - 1
    } else if (c === '(') open.push(at - line)
    else if (c === ')') open.pop()
  }
  const column = open.at(-1)
  return column === undefined || inString ? '' : ' '.repeat(column + 2)
}
