// Results at the ends of lines, shown until the form is edited. A hover shows the whole result.
import * as vscode from 'vscode'
import { columns, fenced, inlineText, oneLine, resultText, shortPackage, timingText, valuesText, warningText, markdown as markdownText } from './format.js'
import { briefly } from './frames.js'
import type { EvalResult, LispError } from './lsp_ext.js'
import { rangeAfter } from './ranges.js'
import { frameLink } from './source.js'
import { toRange } from './convert.js'

/** The maximum number of characters of a result in the link that opens it. */
const OPENED = 50_000

interface Shown {
  uri: string
  range: vscode.Range
  result: EvalResult | undefined
  /** The package that the code was read in. */
  package: string | undefined
  after: vscode.ThemableDecorationAttachmentRenderOptions
  decoration: vscode.TextEditorDecorationType
  /** For the mark of a form that runs or waits: the value before, if there is one. */
  before?: Earlier | undefined
}

/** A value that stood behind a line before the mark of a form that runs or waits. */
interface Earlier {
  result: EvalResult | undefined
  package: string | undefined
  /** Its form, which may be another one that ends in the same line. */
  range: vscode.Range
  /** It came while the mark was there. */
  isLate?: boolean
}

/** The mark of a form that waits, and then runs. */
export interface Pending {
  /** The form runs from now on. */
  begun(): void
  end(): void
  /**
   * The evaluation gave no result: the result of an earlier one that arrived meanwhile is shown.
   */
  failed(): void
  /** The evaluation was removed from the queue: the earlier value stays, marked as older. */
  cancelled(): void
}

/** The widths, in pixels, of the activity bar with the side bar, and of parts of an editor. */
const SIDE_BAR = 350
const MARGINS = 130
const MINIMAP = 130
/** The columns between a line and the text behind it. */
const GAP = 3
const STOP_KEY = process.platform === 'darwin' ? '⌃⌥L I' : 'Ctrl+Alt+L I'

export class Results implements vscode.Disposable {
  private shown: Shown[] = []
  private last: EvalResult | undefined
  private readonly subscriptions: vscode.Disposable[]

  constructor() {
    this.subscriptions = [
      vscode.workspace.onDidChangeTextDocument((event) => {
        for (const change of event.contentChanges) this.edited(event.document.uri.toString(), change)
      }),
      vscode.workspace.onDidCloseTextDocument((document) => this.forget((shown) => shown.uri === document.uri.toString())),
      vscode.window.onDidChangeVisibleTextEditors(() => this.shown.forEach((shown) => this.draw(shown))),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('editor')) this.shown.forEach((shown) => this.draw(shown))
      }),
    ]
  }

  dispose(): void {
    this.clear()
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  /** The last result as text. */
  get lastText(): string | undefined {
    return this.last === undefined ? undefined : resultText(this.last)
  }
  get lastError(): LispError | null {
    return this.last?.error ?? null
  }
  get lastValue(): string | undefined {
    if (this.last === undefined) return undefined
    return this.last.status === 'ok' ? valuesText(this.last) : resultText(this.last)
  }

  /**
   * Shows that the form waits (`waits` returns the reason), or for how long it has run, and the key
   * that stops it.
   */
  pending(uri: vscode.Uri, range: vscode.Range, waits: () => string): Pending {
    const color = new vscode.ThemeColor('consort.pendingForeground')
    const old = this.shown.find((shown) => this.stands(shown, uri, range))
    let begun: number | undefined
    let isTold = false
    const mark = (at: vscode.Range, text: string, before: Shown['before']): Shown =>
      Object.assign(this.put(uri, at, undefined, undefined, { contentText: text, color }), { before: before ?? { result: undefined, package: undefined, range } })
    let put = mark(range, '…', old?.before ?? old)
    const tick = (): void => {
      // An edit has removed the mark.
      if (!this.shown.includes(put)) return clearInterval(timer)
      isTold = true
      const now = begun === undefined ? waits() : `${Math.floor((Date.now() - begun) / 1000)} s`
      put = mark(put.range, `… ${now} · ${STOP_KEY} stops`, put.before)
    }
    const timer = setInterval(tick, 1000)
    const end = (): void => {
      clearInterval(timer)
      this.forget((shown) => shown === put)
    }
    return {
      begun: () => {
        begun = Date.now()
        if (isTold) tick()
      },
      end,
      failed: () => {
        const { before } = put
        const isThere = this.shown.includes(put)
        end()
        if (isThere && before?.isLate === true) this.restore(uri, before)
      },
      cancelled: () => {
        if (!this.shown.includes(put)) return end()
        const { range: at, before } = put
        end()
        // The value of another form says nothing of this one.
        if (before?.result !== undefined && !before.range.end.isEqual(at.end)) return this.restore(uri, before)
        const value = before?.result === undefined ? '' : `${inlineText(before.result, this.limit)}  · `
        this.put(uri, at, before?.result, before?.package, { contentText: `${value}cancelled, not evaluated again`, color })
      },
    }
  }

  private get limit(): number {
    return vscode.workspace.getConfiguration('consort').get<number>('inlineResults.maxLength', 300)
  }

  show(uri: vscode.Uri, range: vscode.Range, result: EvalResult, inPackage?: string): void {
    this.last = result
    void vscode.commands.executeCommand('setContext', 'consort.evaluated', true)
    if (!vscode.workspace.getConfiguration('consort').get<boolean>('inlineResults.enabled', true)) {
      this.remove(uri, range)
      return
    }
    // A later evaluation of the form has not ended yet.
    const later = this.shown.find((shown) => shown.before !== undefined && this.stands(shown, uri, range))
    if (later !== undefined) {
      later.before = { result, package: inPackage, range, isLate: true }
      return
    }
    this.putValue(uri, range, result, inPackage)
  }

  private putValue(uri: vscode.Uri, range: vscode.Range, result: EvalResult, inPackage: string | undefined): void {
    const color = result.status === 'ok' ? 'consort.resultForeground' : 'consort.errorForeground'
    this.put(uri, range, result, inPackage, {
      contentText: inlineText(result, this.limit),
      color: new vscode.ThemeColor(color),
      fontStyle: result.status === 'ok' ? 'normal' : 'italic',
    })
  }

  /** Shows a value again that a mark had replaced. */
  private restore(uri: vscode.Uri, { result, range, package: inPackage }: Earlier): void {
    if (result !== undefined) this.putValue(uri, range, result, inPackage)
  }

  remove(uri: vscode.Uri, range: vscode.Range): void {
    this.forget((shown) => this.stands(shown, uri, range))
  }

  private stands(shown: Shown, uri: vscode.Uri, range: vscode.Range): boolean {
    return shown.uri === uri.toString() && shown.range.end.line === range.end.line
  }

  clear(): void {
    this.forget(() => true)
  }

  /** Returns a function that removes the results that are shown now, and no later ones. */
  present(): { clear(): void } {
    const shown = new Set(this.shown)
    return { clear: () => this.forget((one) => shown.has(one)) }
  }

  private put(
    uri: vscode.Uri, range: vscode.Range, result: EvalResult | undefined, inPackage: string | undefined, after: vscode.ThemableDecorationAttachmentRenderOptions,
  ): Shown {
    this.remove(uri, range)
    const decoration = vscode.window.createTextEditorDecorationType({
      rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
      overviewRulerColor: new vscode.ThemeColor(result !== undefined && result.status !== 'ok' ? 'consort.errorForeground' : 'consort.resultForeground'),
      overviewRulerLane: vscode.OverviewRulerLane.Center,
    })
    const shown: Shown = { uri: uri.toString(), range, result, package: inPackage, after, decoration }
    this.shown.push(shown)
    this.draw(shown)
    void vscode.commands.executeCommand('setContext', 'consort.resultsShown', true)
    return shown
  }

  private draw(shown: Shown): void {
    const { range, result } = shown
    const first = range.start.line === range.end.line ? range.start : new vscode.Position(range.end.line, 0)
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.toString() !== shown.uri || range.end.line >= editor.document.lineCount) continue
      // The range extends to the line's end, even if other text follows the form.
      const options: vscode.DecorationOptions = { range: new vscode.Range(first, editor.document.lineAt(range.end.line).range.end) }
      // Set here and not in the type, because an editor's width changes with its neighbours.
      options.renderOptions = { after: { ...shown.after, margin: `0 0 0 ${GAP}ch`, textDecoration: toTheEdge(editor.document, range.end.line) } }
      options.hoverMessage = result === undefined ? stopHover() : hover(result, shown.package)
      editor.setDecorations(shown.decoration, [options])
    }
  }

  private edited(uri: string, change: vscode.TextDocumentContentChangeEvent): void {
    for (const shown of this.shown.filter((shown) => shown.uri === uri)) {
      const range = rangeAfter(shown.range, change)
      if (shown.before !== undefined) {
        const earlier = rangeAfter(shown.before.range, change)
        shown.before = earlier === undefined ? { result: undefined, package: undefined, range: shown.range } : { ...shown.before, range: toRange(earlier) }
      }
      if (range === undefined) this.forget((other) => other === shown)
      else {
        shown.range = toRange(range)
        this.draw(shown)
      }
    }
  }

  private forget(which: (shown: Shown) => boolean): void {
    this.shown = this.shown.filter((shown) => {
      if (which(shown)) shown.decoration.dispose()
      return !which(shown)
    })
    if (this.shown.length === 0) void vscode.commands.executeCommand('setContext', 'consort.resultsShown', false)
  }
}

/**
 * Styles that cut a text after a line at the window's edge, with an ellipsis. An extension cannot
 * ask for the width of an editor: it is estimated as its share of the window, less the side bar in
 * its usual width. Where lines wrap, the text follows the last part of its line. `textDecoration`
 * takes any style.
 */
function toTheEdge(document: vscode.TextDocument, line: number): string {
  const settings = vscode.workspace.getConfiguration('editor', document.uri)
  const tabs = settings.get<number>('tabSize', 8)
  const margins = MARGINS + (settings.get<boolean>('minimap.enabled', true) ? MINIMAP : 0)
  const before = columns(document.lineAt(line).text, tabs)
  const groups = Math.max(1, new Set(vscode.window.tabGroups.all.map(({ viewColumn }) => viewColumn)).size)
  const room = `((100vw - ${SIDE_BAR}px) / ${groups} - ${margins}px)`
  const width = `calc(${room} - mod(${before + GAP}ch, ${room}))`
  return `none; display: inline-block; overflow: hidden; text-overflow: ellipsis; vertical-align: top; max-width: max(16ch, ${width})`
}

function stopHover(): vscode.MarkdownString {
  const markdown = new vscode.MarkdownString('$(debug-stop) [Stop it](command:consort.editor.interrupt)', true)
  markdown.isTrusted = { enabledCommands: ['consort.editor.interrupt'] }
  return markdown
}

/**
 * The whole result, for reading and copying. The links to commands come first, because a long value
 * would push them out of sight.
 */
export function hover(result: EvalResult, inPackage?: string): vscode.MarkdownString {
  const markdown = new vscode.MarkdownString(undefined, true)
  markdown.isTrusted = { enabledCommands: ['consort.editor.copyText', 'consort.editor.openResult', 'consort.editor.goToFrame', 'consort.editor.failures', 'consort.editor.inspectResult'] }
  const link = (title: string, command: string, ...args: unknown[]): string =>
    `[${title}](command:${command}?${encodeURIComponent(JSON.stringify(args))})`
  const timing = result.timing === null ? '' : `$(clock) ${timingText(result.timing)}  ·  `
  const copied = result.status === 'ok' ? valuesText(result) : resultText(result)
  // A link holds its text, so a huge one is copied from its document instead.
  const copy = copied.length <= 20_000 ? `${link('$(copy) Copy', 'consort.editor.copyText', copied)}  ·  ` : ''
  const open = resultText(result)
  const opened = open.length <= OPENED ? open : `${open.slice(0, OPENED)}\n;; … ${open.length - OPENED} more characters. "Consort: Open the Last Result" shows all of the last result.`
  const reference = result.references?.[0] ?? 0
  const inspect = reference === 0 ? '' : `  ·  ${link('$(inspect) Inspect', 'consort.editor.inspectResult', valuesText(result).slice(0, 2000), reference)}`
  const look = result.failure === undefined ? '' : `  ·  ${link('$(debug) Look into It', 'consort.editor.failures', result.failure.number)}`
  markdown.appendMarkdown(
    `${timing}evaluated by you in ${markdownText(shortPackage(inPackage ?? result.package))}  ·  ${copy}${link('$(go-to-file) Open', 'consort.editor.openResult', opened, briefly(result.error))}${inspect}${look}\n\n`,
  )
  if (result.error !== null) markdown.appendMarkdown(`**${markdownText(result.error.type)}**\n\n${fenced(result.error.message, 'text')}\n\n`)
  if (result.status === 'interrupted') markdown.appendMarkdown('Interrupted.\n\n')
  if (result.values.length > 0) markdown.appendMarkdown(`${fenced(valuesText(result), 'commonlisp', 4000)}\n\n`)
  const part = (title: string, text: string): void => {
    if (text.trim() !== '') markdown.appendMarkdown(`${title}\n\n${fenced(text.replace(/^\n+|\s+$/g, ''), 'text', 4000)}\n\n`)
  }
  part('Output', result.stdout)
  part('Error output', result.stderr)
  part('Warnings', result.warnings.map(warningText).join('\n'))
  const { error } = result
  if (error !== null && error.backtrace.length > 0)
    markdown.appendMarkdown(`Backtrace\n\n${error.backtrace.slice(0, 15).map((_, index) => frameLine(error, index)).join('  \n')}\n\n`)
  if (result.omitted > 0) markdown.appendMarkdown(`${result.omitted} characters were left out.\n\n`)
  return markdown
}

/** A frame of the backtrace; a frame that has a source is a link to it. */
function frameLine(error: LispError, index: number): string {
  const target = frameLink(error, index)
  const text = markdownText(oneLine(error.backtrace[index]?.text ?? '', 100))
  return `${index}: ${target === undefined ? text : `[${text}](${target} "Go to the source")`}`
}
