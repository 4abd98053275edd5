// The REPL: a terminal on the editor's own session.
import * as vscode from 'vscode'
import type { CallTemplate, Completions, EvalResult, InputLine, InputWanted, LispError, Stopped } from './lsp_ext.js'
import { crlf, endsWithPrompt, LineEditor } from './line_editor.js'
import { shortPackage, timingText, warningText } from './format.js'
import { describe } from './condition.js'
import { backtraceLines } from './frames.js'
import { complete } from './reader.js'
import { withUnmovedFocus, isLisp, type Server } from './server.js'
import { PROGRAM_THREADS } from './stops.js'
import { FUNCTIONS, OPERATORS } from '../syntaxes/names.mjs'

/** The package that a session begins in. */
const USER = 'COMMON-LISP-USER'
const HISTORY = 'consort.replHistory'
/** The last characters of output that a prompt is looked for in: more than a question shows. */
const TAIL = 1000
/**
 * The time limits, in milliseconds, for the output of a prompt to arrive: for a new prompt, and for
 * a prompt that was printed before.
 */
const PROMPT = 5000
const SAME_PROMPT = 300
const color = (code: number, text: string): string => `\x1b[${code}m${text}\x1b[0m`

class Terminal implements vscode.Pseudoterminal {
  private readonly written = new vscode.EventEmitter<string>()
  private readonly closed = new vscode.EventEmitter<void>()
  readonly onDidWrite = this.written.event
  readonly onDidClose = this.closed.event
  private readonly editor: LineEditor
  private package: string
  private running: vscode.CancellationTokenSource | undefined
  private atLineStart = true
  /** True once the submitted evaluation has begun: another one may run before it. */
  private begun = false
  /** True once the evaluation has read a line: its duration then includes the person's time. */
  private asked = false
  /** The output since the last line break. */
  private partial = ''
  /** The last characters of the output, and of those the ones since a line was read. */
  private tail = ''
  private fresh = ''
  private readonly printed = new vscode.EventEmitter<void>()
  /** The error that was shown last. */
  error: LispError | undefined
  /** Texts that were sent before the terminal was open, or during an evaluation. */
  private sent: { text: string; package: string | undefined }[] = []
  /** Pending while the session enters another package. */
  private entering: Promise<void> | undefined
  /** The package that was asked for while another one is entered. */
  private wanted: string | undefined
  /** A text that was typed for the person before the terminal was open, and its cursor. */
  private typed: { text: string; back: number } | undefined
  private isOpen = false
  private readonly subscription: vscode.Disposable

  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
    inPackage: string,
  ) {
    this.package = inPackage
    this.editor = new LineEditor(
      {
        write: (text) => this.write(text),
        submit: (text) => void this.submit(text),
        complete,
        completions: (prefix, operator) => this.completions(prefix, operator),
        interrupt: () => this.interrupt(),
        end: () => this.closed.fire(),
      },
      memory.get<string[]>(HISTORY, []),
    )
    let known = describe(server.condition)
    const stops = server.onStopped((stop) => this.tellStop(stop))
    const changes = server.onChange(() => {
      const now = describe(server.condition)
      if (now === known) return
      known = now
      if (server.condition.state !== 'ready') this.editor.above(color(33, `; Lisp: ${now}`))
      else {
        this.package = USER
        this.editor.above(color(32, `; Lisp: ${now}`), this.prompt)
      }
    })
    this.subscription = vscode.Disposable.from(stops, changes)
  }

  open(dimensions: vscode.TerminalDimensions | undefined): void {
    if (dimensions !== undefined) this.editor.resize(dimensions.columns)
    this.write(color(90, `; ${describe(this.server.condition)}\r\n; A session shared with your editor, in the image shared with your agents. Ctrl+C interrupts.\r\n`))
    this.begin()
    this.isOpen = true
    this.evaluateSent()
    if (this.typed !== undefined) this.type(this.typed.text, this.typed.back)
    this.typed = undefined
  }
  close(): void {
    this.isOpen = false
    this.interrupt()
    this.subscription.dispose()
    this.printed.dispose()
    void this.memory.update(HISTORY, this.editor.past.slice(-500))
  }
  setDimensions(dimensions: vscode.TerminalDimensions): void {
    this.editor.resize(dimensions.columns)
  }
  handleInput(data: string): void {
    this.editor.input(data)
  }

  /**
   * Evaluates a text after the running evaluation has ended, in its package if the image has it.
   * Text that is typed at the prompt stays.
   */
  send(text: string, inPackage: string | undefined): void {
    this.sent.push({ text: text.trim(), package: inPackage })
    this.evaluateSent()
  }
  private evaluateSent(): void {
    // During an evaluation the line editor may be active, for a line that the code reads.
    while (this.isOpen && this.running === undefined && this.entering === undefined && this.editor.isActive) {
      const next = this.sent.shift()
      if (next === undefined) return
      if (next.package !== undefined && this.isOther(next.package)) {
        this.sent.unshift({ ...next, package: undefined })
        this.enter(next.package)
      } else if (next.text !== '') this.editor.run(next.text)
    }
  }

  /**
   * Has the session read in another package, if the image has it. The package stays while code
   * runs.
   */
  enter(name: string): void {
    if (this.entering !== undefined) {
      this.wanted = name
      return
    }
    if (this.running !== undefined || !this.isOther(name)) return
    this.entering = this.change(name).finally(() => {
      this.entering = undefined
      const next = this.wanted
      this.wanted = undefined
      if (next !== undefined && this.isOther(next)) this.enter(next)
      else this.evaluateSent()
    })
  }
  private isOther(name: string): boolean {
    return shortPackage(name) !== shortPackage(this.package)
  }
  private async change(name: string): Promise<void> {
    const string = `"${name.replace(/["\\]/g, '\\$&')}"`
    try {
      const { package: now, values } = await this.server.run<EvalResult>('eval', { code: `(consort::enter-package ${string})` })
      // The answer to an evaluation that was begun since has the package.
      if (this.running === undefined) this.package = now
      this.editor.reprompt(this.prompt)
      if (values.length > 0) this.editor.above(color(90, `; The package ${name} is not loaded: "Consort: Load a System" loads it.`))
    } catch (error) {
      // No server, or no image, which the prompt's line says too.
      this.server.log.warn(`The REPL does not enter ${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  /** The package in which what is typed is read. */
  get inPackage(): string {
    return this.package
  }

  /**
   * Inserts a text, which a person can complete, with the cursor `back` characters before its end.
   * False while an evaluation runs.
   */
  type(text: string, back: number): boolean {
    if (!this.isOpen) this.typed = { text, back }
    else if (!this.editor.isActive || this.running !== undefined) return false
    else this.editor.paste(text, back)
    return true
  }

  private write(text: string): void {
    if (text === '') return
    this.written.fire(text)
    this.atLineStart = text.endsWith('\n')
  }
  private freshLine(): void {
    if (!this.atLineStart) this.write('\r\n')
  }
  private begin(): void {
    this.freshLine()
    this.editor.begin(this.prompt)
  }
  private get prompt(): string {
    return `${shortPackage(this.package)}> `
  }
  /** Says that the code that runs here, not a thread that code started, waits at an error. */
  private tellStop({ thread, reason, text }: Stopped): void {
    if (this.running === undefined || !this.begun || reason !== 'error' || thread >= PROGRAM_THREADS) return
    this.freshLine()
    this.write(color(31, crlf(text)) + '\r\n')
    this.write(color(33, '; Stopped here: Ctrl+Alt+L Shift+G chooses a restart, Ctrl+C ends it.') + '\r\n')
  }

  private interrupt(): void {
    if (this.running === undefined && this.sent.length === 0) return
    if (this.sent.length > 0) this.editor.above(color(33, '; The input that was sent meanwhile is not evaluated.'))
    this.sent = []
    // Without a running evaluation, the text waited for its package.
    if (this.running === undefined) return
    this.running.cancel()
    this.server.ask('interrupt', {}).catch((error: unknown) => this.editor.above(color(31, `; Not interrupted: ${error instanceof Error ? error.message : String(error)}`)))
  }

  private async submit(text: string): Promise<void> {
    if (text.trim() === '') return this.begin()
    void this.memory.update(HISTORY, this.editor.past.slice(-500))
    let streamed = ''
    this.running = new vscode.CancellationTokenSource()
    this.partial = this.tail = this.fresh = ''
    this.asked = this.begun = false
    try {
      const result = await this.server.run<EvalResult>('eval', { code: text, captureTime: true }, {
        begun: () => (this.begun = true),
        output: (output) => {
          streamed += output.text
          this.partial = (this.partial + output.text).split('\n').at(-1) ?? ''
          this.tail = (this.tail + output.text).slice(-TAIL)
          this.fresh = (this.fresh + output.text).slice(-TAIL)
          this.printed.fire()
          this.write(output.stream === 'stderr' ? color(31, crlf(output.text)) : crlf(output.text))
        },
      })
      this.package = result.package
      if (streamed === '' && !this.asked) this.write(crlf(result.stdout) + (result.stderr === '' ? '' : color(31, crlf(result.stderr))))
      this.freshLine()
      this.print(result)
    } catch (error) {
      this.freshLine()
      this.write(color(31, crlf(error instanceof Error ? error.message : String(error))) + '\r\n')
    } finally {
      this.running = undefined
    }
    this.begin()
    this.evaluateSent()
  }

  /**
   * Reads a line for the evaluation, typed after its output; undefined when this terminal evaluates
   * nothing.
   */
  input(wanted: InputWanted, token: vscode.CancellationToken): Promise<InputLine> | undefined {
    if (this.running === undefined || wanted.command !== 'consort.eval') return undefined
    this.asked = true
    return new Promise((resolve) => {
      const give = (answer: InputLine): void => {
        this.partial = this.fresh = ''
        withdrawn.dispose()
        resolve(answer)
      }
      const withdrawn = token.onCancellationRequested(() => {
        this.editor.withdraw()
        give(null)
      })
      void this.untilPrinted(wanted.prompt).then(() => {
        if (token.isCancellationRequested) return
        // A wrapped line cannot be overwritten.
        const prompt = this.partial.length < 60 ? this.partial : ''
        if (prompt === '') this.freshLine()
        this.editor.ask(prompt, (text) => give(text === undefined ? null : { text }))
      })
    })
  }
  /**
   * Waits for the output of a question's prompt: output and questions are separate messages, and
   * the output may arrive later.
   */
  private untilPrinted(prompt: string): Promise<void> {
    return new Promise((resolve) => {
      const there = (): boolean => endsWithPrompt(this.fresh, prompt)
      if (there()) return resolve()
      const end = (): void => {
        clearTimeout(timer)
        heard.dispose()
        resolve()
      }
      // A question without output of its own has the prompt of the one before. And characters that
      // could mislead are escaped in the question, as \u{...}, but not in the output.
      const soon = prompt.includes('\\u{') || endsWithPrompt(this.tail, prompt)
      const timer = setTimeout(end, soon ? SAME_PROMPT : PROMPT)
      const heard = this.printed.event(() => there() && end())
    })
  }

  private print(result: EvalResult): void {
    for (const warning of result.warnings) this.write(color(33, crlf(`; ${warningText(warning)}`)) + '\r\n')
    if (result.error !== null) {
      this.write(color(31, crlf(`${result.error.type}: ${result.error.message}`)) + '\r\n')
      this.error = result.error
      const frames = backtraceLines(result.error).slice(0, 12).map((line) => `  ${line}`)
      if (frames.length > 0) this.write(color(90, crlf(frames.join('\n'))) + '\r\n')
    } else if (result.values.length === 0) this.write(color(90, '; no value') + '\r\n')
    else this.write(crlf(result.values.join('\n')) + '\r\n')
    if (result.timing !== null && result.timing.real_ms >= 100 && !this.asked) this.write(color(90, `; ${timingText(result.timing)}`) + '\r\n')
  }

  /**
   * Completions from the image, in the prompt's package; without an image, the standard's names and
   * words of the open files.
   */
  private async completions(prefix: string, operator: boolean): Promise<string[]> {
    if (this.server.can('complete'))
      try {
        const { items } = await this.server.ask<Completions>('complete', { text: prefix, package: this.package, operator })
        return items.map(({ label }) => label)
      } catch {
        // There is no image just now.
      }
    const words = new Set<string>([...FUNCTIONS, ...OPERATORS])
    for (const document of vscode.workspace.textDocuments)
      if (isLisp(document)) for (const word of document.getText().match(/[^\s()"';`,#|\\]{3,}/g) ?? []) words.add(word.toLowerCase())
    for (const line of this.editor.past) for (const word of line.match(/[^\s()"';`,#|\\]{3,}/g) ?? []) words.add(word.toLowerCase())
    const lower = prefix.toLowerCase()
    return [...words].filter((word) => word.startsWith(lower) && word !== lower).sort()
  }
}

export class Repl implements vscode.Disposable {
  private terminal: vscode.Terminal | undefined
  private pty: Terminal | undefined
  /** The package of the session while no terminal is open. */
  private package = USER
  private readonly subscriptions: vscode.Disposable[]

  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
  ) {
    this.subscriptions = [
      vscode.window.onDidCloseTerminal((closed) => {
        if (closed !== this.terminal) return
        this.package = this.pty?.inPackage ?? USER
        this.terminal = this.pty = undefined
      }),
      // The session of another image begins in its first package.
      server.onChange(() => {
        if (server.condition.state !== 'ready') this.package = USER
      }),
    ]
  }
  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose()
    this.terminal?.dispose()
  }

  /** The error that the REPL showed last; undefined when it is another terminal. */
  errorIn(terminal: vscode.Terminal): LispError | undefined {
    return terminal === this.terminal ? this.pty?.error : undefined
  }

  input(wanted: InputWanted, token: vscode.CancellationToken): Promise<InputLine> | undefined {
    return this.pty?.input(wanted, token)
  }

  /** `inPackage`: the package to enter, if the image has it. */
  show(preserveFocus = false, inPackage?: string): void {
    if (this.terminal === undefined) {
      this.pty = new Terminal(this.server, this.memory, this.package)
      this.terminal = vscode.window.createTerminal({ name: 'Lisp REPL', pty: this.pty, iconPath: new vscode.ThemeIcon('terminal') })
    }
    this.terminal.show(preserveFocus)
    if (inPackage !== undefined) this.pty?.enter(inPackage)
  }
  send(text: string, inPackage?: string): void {
    this.show(true)
    this.pty?.send(text, inPackage)
  }

  /**
   * Shows the REPL, in the package of a place, with a call of the function there, which a person
   * can complete.
   */
  async call(place: object, inPackage: string | undefined): Promise<void> {
    const argument = { ...place, package: inPackage ?? this.pty?.inPackage ?? this.package }
    const template = await withUnmovedFocus(this.server.ask<CallTemplate>('callTemplate', argument))
    this.show(false, inPackage)
    // The cursor is at the first argument, or behind the name.
    const back = template.arguments.length > 0 ? template.text.length - template.name.length - 2 : 1
    if (this.pty?.type(template.text, back) === false) void vscode.window.showInformationMessage('Consort: an evaluation runs in the REPL.')
  }
}
