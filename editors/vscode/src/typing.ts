// The indentation of a line that was begun with Enter: the server's, and the text's own where the
// server is late, starting or absent.
import * as vscode from 'vscode'
import { AutoIndentedLines, type AutoIndentedLine } from './auto_indented_lines.js'
import { indentation } from './indent.js'

/**
 * The time limit for the server's answer, in milliseconds: VS Code drops one that comes after the
 * next key.
 */
const SOON = 120
/** The pause in typing, in milliseconds, after which earlier lines are examined. */
const PAUSE = 300

/** The edits that put the line of the position at the column that the text above determines. */
export function indent(document: vscode.TextDocument, position: vscode.Position): vscode.TextEdit[] {
  const start = new vscode.Position(position.line, 0)
  const column = indentation(document.getText(), document.offsetAt(start))
  const blank = blankOf(document, position.line)
  if (column === undefined || blank === ' '.repeat(column)) return []
  return [vscode.TextEdit.replace(new vscode.Range(start, start.translate(0, blank.length)), ' '.repeat(column))]
}

/** The white space that the newest answer to Enter puts at the beginning of each line. */
const answers = new WeakMap<vscode.TextDocument, Map<number, string>>()

/** Notes where the edits put the line of the position. */
function noted(document: vscode.TextDocument, { line }: vscode.Position, edits: vscode.TextEdit[]): vscode.TextEdit[] {
  let blank = blankOf(document, line)
  for (const { range, newText } of edits) {
    if (range.start.line !== line || range.end.line !== line || range.end.character > blank.length) return edits
    blank = blank.slice(0, range.start.character) + newText + blank.slice(range.end.character)
  }
  const lines = answers.get(document) ?? new Map<number, string>()
  answers.set(document, lines.set(line, blank))
  return edits
}

type Edits = vscode.ProviderResult<vscode.TextEdit[]>

/** The server's edits if they come soon. */
export async function inTime(document: vscode.TextDocument, position: vscode.Position, ch: string, server: Edits): Promise<vscode.TextEdit[] | undefined | null> {
  if (ch !== '\n') return server
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), SOON)
  })
  const asked = Promise.resolve(server).catch(() => undefined)
  const edits = await Promise.race([asked, late])
  clearTimeout(timer)
  return noted(document, position, edits ?? indent(document, position))
}

/** Indents while no server does: VS Code asks the provider that was registered last. */
export function registerIndentation(selector: vscode.DocumentSelector): vscode.Disposable {
  const provider = vscode.languages.registerOnTypeFormattingEditProvider(selector, {
    provideOnTypeFormattingEdits: (document, position) => noted(document, position, indent(document, position)),
  }, '\n')
  return vscode.Disposable.from(provider, new AfterTyping(selector))
}

function blankOf(document: vscode.TextDocument, line: number): string {
  return /^[ \t]*/.exec(document.lineAt(line).text)?.[0] ?? ''
}

/**
 * Indents quickly typed lines at the first pause: VS Code drops the answer for a line if the next
 * key comes first, and its own rules for Enter depend on one line only.
 */
class AfterTyping implements vscode.Disposable {
  private readonly autoIndented = new Map<vscode.TextDocument, AutoIndentedLines>()
  private readonly subscriptions: vscode.Disposable[]
  private timer: NodeJS.Timeout | undefined

  constructor(selector: vscode.DocumentSelector) {
    this.subscriptions = [
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges, reason }) => {
        if (vscode.languages.match(selector, document) === 0) return
        if (reason !== undefined) this.autoIndented.delete(document) // undone or redone
        else this.changed(document, contentChanges)
      }),
      vscode.workspace.onDidCloseTextDocument((document) => this.autoIndented.delete(document)),
    ]
  }

  dispose(): void {
    clearTimeout(this.timer)
    for (const one of this.subscriptions) one.dispose()
  }

  private changed(document: vscode.TextDocument, changes: readonly vscode.TextDocumentContentChangeEvent[]): void {
    const lines = this.autoIndented.get(document) ?? new AutoIndentedLines()
    if (!this.isAnswer(document, changes, lines)) {
      lines.changed(changes.map(({ range, text }) => ({ start: range.start, end: range.end, text: text.replaceAll('\r\n', '\n') })))
    }
    if (lines.empty) {
      this.autoIndented.delete(document)
      return
    }
    this.autoIndented.set(document, lines)
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.settle(document, lines), PAUSE)
  }

  /** True for a change that is an answer to Enter, with which VS Code has indented a line. */
  private isAnswer(document: vscode.TextDocument, changes: readonly vscode.TextDocumentContentChangeEvent[], lines: AutoIndentedLines): boolean {
    const [change, other] = changes
    if (change === undefined || other !== undefined || !change.range.isSingleLine || !/^[ \t]*$/.test(change.text)) return false
    const { line } = change.range.start
    const blank = blankOf(document, line)
    return answers.get(document)?.get(line) === blank && change.range.start.character + change.text.length <= blank.length && lines.indented(line, blank)
  }

  /** Indents the lines from the top, as each depends on those above, until the next key comes. */
  private async settle(document: vscode.TextDocument, lines: AutoIndentedLines): Promise<void> {
    const editor = vscode.window.activeTextEditor
    const wanted = vscode.workspace.getConfiguration('editor', document).get<boolean>('formatOnType') === true
    if (editor?.document !== document || !wanted) {
      this.autoIndented.delete(document)
      return
    }
    const passed = new Set<AutoIndentedLine>()
    const next = (): AutoIndentedLine | undefined => lines.all.find((one) => !passed.has(one))
    for (let one = next(); one !== undefined; one = next()) {
      passed.add(one)
      const { line, blank } = one
      if (line < document.lineCount && blankOf(document, line) === blank) {
        // A later pause comes back to a line without text: its first key may be on its way, and
        // makes VS Code drop its own answer.
        if (document.lineAt(line).isEmptyOrWhitespace) continue
        const { version } = document
        const edits = await vscode.commands.executeCommand<vscode.TextEdit[] | undefined>(
          'vscode.executeFormatOnTypeProvider', document.uri, new vscode.Position(line, blank.length), '\n', editor.options,
        )
        // The next pause comes back to it, wherever it is then.
        if (document.version !== version || vscode.window.activeTextEditor !== editor) return
        const own = (edits ?? []).filter(({ range }) => range.start.line === line && range.end.line === line && range.end.character <= blank.length)
        const done = own.length === 0 || await editor.edit((builder) => {
          for (const { range, newText } of own) builder.replace(range, newText)
        }, { undoStopBefore: false, undoStopAfter: false })
        if (!done) return
      }
      lines.forget(one)
    }
  }
}
