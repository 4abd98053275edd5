// A small terminal that understands what the line editor writes.
export class Screen {
  rows = ['']
  row = 0
  column = 0
  constructor(readonly columns: number) {}
  write(text: string): void {
    for (const [part] of text.matchAll(/\x1b\[([0-9;]*)([A-Za-z])|[\s\S]/g)) {
      const escape = /^\x1b\[([0-9;]*)([A-Za-z])$/.exec(part)
      const count = Number(escape?.[1] === '' ? 1 : (escape?.[1] ?? 1))
      if (escape?.[2] === 'A') this.row = Math.max(0, this.row - count)
      else if (escape?.[2] === 'C') this.column += count
      else if (escape?.[2] === 'K') this.set(this.line().slice(0, this.column))
      else if (escape?.[2] === 'J') {
        this.set(this.line().slice(0, this.column))
        this.rows.length = this.row + 1
      } else if (escape !== null) continue
      else if (part === '\r') this.column = 0
      else if (part === '\n') this.down()
      else {
        if (this.column === this.columns) {
          this.down()
          this.column = 0
        }
        this.set(this.line().padEnd(this.column).slice(0, this.column) + part + this.line().slice(this.column + 1))
        this.column++
      }
    }
  }
  private line = (): string => this.rows[this.row] ?? ''
  private set(text: string): void {
    this.rows[this.row] = text
  }
  private down(): void {
    this.row++
    if (this.row === this.rows.length) this.rows.push('')
  }
  get text(): string {
    return this.rows.map((row) => row.trimEnd()).join('\n').trimEnd()
  }
}
