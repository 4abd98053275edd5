// A mark beside forms that differ from the image, and a command that evaluates them.
import * as vscode from 'vscode'
import { toRange } from './convert.js'
import type { Differences } from './lsp_ext.js'
import type { Evaluator } from './evaluate.js'
import { isLisp, type Server } from './server.js'

const PAUSE = 400

export class DifferenceMarks implements vscode.Disposable {
  private readonly decoration: vscode.TextEditorDecorationType
  private readonly subscriptions: vscode.Disposable[]
  private timer: NodeJS.Timeout | undefined
  /** Counts the updates of all marks: an answer to an earlier one is about an earlier state. */
  private round = 0

  constructor(
    private readonly server: Server,
    private readonly evaluator: Evaluator,
    extension: vscode.Uri,
  ) {
    this.decoration = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(extension, 'media', 'differs.svg'),
      gutterIconSize: 'contain',
      overviewRulerColor: new vscode.ThemeColor('consort.pendingForeground'),
      overviewRulerLane: vscode.OverviewRulerLane.Left,
    })
    const soon = (): void => this.soon()
    this.subscriptions = [
      this.decoration,
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (isLisp(document)) soon()
      }),
      vscode.window.onDidChangeVisibleTextEditors(soon),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('consort.marks.differsFromImage')) soon()
      }),
      server.onChange(soon),
      // Any operation, of any client, may have changed definitions.
      server.onLogEntry(soon),
    ]
  }
  dispose(): void {
    clearTimeout(this.timer)
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  private soon(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.mark(), PAUSE)
  }

  private async mark(): Promise<void> {
    const round = ++this.round
    const on = vscode.workspace.getConfiguration('consort').get<boolean>('marks.differsFromImage', true)
    for (const editor of vscode.window.visibleTextEditors) {
      if (!isLisp(editor.document)) continue
      const forms = on ? await this.of(editor.document) : []
      if (round !== this.round) return
      if (forms !== undefined) editor.setDecorations(this.decoration, forms)
    }
  }

  /** The forms that differ; undefined when the text has changed since. */
  private async of(document: vscode.TextDocument): Promise<vscode.DecorationOptions[] | undefined> {
    if (!this.server.can('differences') || this.server.condition.state !== 'ready') return []
    const { version } = document
    try {
      const answer = await this.server.ask<Differences>('differences', { uri: document.uri.toString() })
      if (document.version !== version || answer.version !== version) return undefined
      return answer.forms.map(({ range, state }) => ({ range: toRange(range), hoverMessage: hover(state) }))
    } catch {
      return []
    }
  }

  /**
   * Evaluates the forms of a document that differ, in order, up to the first that fails. Stops when
   * the text is edited, because their ranges hold for one version.
   */
  async load(document: vscode.TextDocument): Promise<void> {
    const { version } = document
    let done = 0
    let last = -1
    for (;;) {
      // Requested again each time: an evaluated form may have been the reason why a later one
      // differed.
      const { forms, version: answered } = await this.server.ask<Differences>('differences', { uri: document.uri.toString() })
      if (document.version !== version || answered !== version) {
        void vscode.window.showInformationMessage(`Consort: the text has changed meanwhile: ${evaluated(done)}. Load what changed once more for the rest.`)
        return
      }
      const form = forms.find((one) => one.range.start.line > last)
      if (form === undefined) break
      const range = toRange(form.range)
      last = range.start.line
      const result = await this.evaluator.evaluateRange(document, range, 'region', range.start)
      if (result?.status !== 'ok') return
      done++
    }
    // The image has no text of a file that was never loaded.
    const said = done === 0 ? 'Nothing differs. A file that was never loaded: evaluate it as a whole, or load its system' : evaluated(done)
    vscode.window.setStatusBarMessage(`$(check) ${said}`, 4000)
    this.soon()
  }
}

const evaluated = (done: number): string => `${done} ${done === 1 ? 'form' : 'forms'} evaluated`

function hover(state: 'changed' | 'new'): vscode.MarkdownString {
  const says = state === 'new' ? 'The image does not have this form yet' : 'The image has another version of this form'
  const markdown = new vscode.MarkdownString(`${says}  \u00b7  [Load what changed](command:consort.editor.loadChanged)`)
  markdown.isTrusted = { enabledCommands: ['consort.editor.loadChanged'] }
  return markdown
}
