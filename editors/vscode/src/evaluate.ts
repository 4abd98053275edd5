// Evaluation of the code in an editor.
import * as vscode from 'vscode'
import { plain, plainRange, toRange } from './convert.js'
import { compileAndLoad } from './compiling.js'
import type { EvalResult, Name, Position } from './lsp_ext.js'
import { formAt, lastFormRead, packageAt, packageNear, topLevelFormAt } from './reader.js'
import { offerPackage } from './missing_package.js'
import { TrackedRange } from './tracked_range.js'
import type { Results } from './results.js'
import { complain, isLisp, Refused, type Server } from './server.js'
import { label } from './format.js'
import { tellOfError } from './frozen.js'

export type What = 'form' | 'top-level' | 'region' | 'buffer' | 'to-cursor'

/** The active editor, when it shows Lisp. */
export function lispEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor
  if (editor === undefined || !isLisp(editor.document)) {
    void vscode.window.showInformationMessage('Consort: open a Common Lisp file first.')
    return undefined
  }
  return editor
}

/**
 * The active editor and the range of the text to act on; undefined, after a message, if there is
 * none.
 */
export function chosenText(what: (editor: vscode.TextEditor) => What): { editor: vscode.TextEditor; range: vscode.Range } | undefined {
  const editor = lispEditor()
  if (editor === undefined) return undefined
  const range = rangeOf(editor, what(editor))
  if (range !== undefined) return { editor, range }
  void vscode.window.showInformationMessage('Consort: there is no form here.')
  return undefined
}

/**
 * The cursor's place in the active editor, as commands take it; undefined, after a message, if it
 * shows no Lisp.
 */
export function placeHere(): { uri: string; position: Position } | undefined {
  const editor = lispEditor()
  return editor && { uri: editor.document.uri.toString(), position: plain(editor.selection.active) }
}

/**
 * The package of the text at the cursor of the active editor, or of the first text below it that
 * has one; undefined if the editor shows no Lisp, or names no package.
 */
export function packageHere(): string | undefined {
  const editor = vscode.window.activeTextEditor
  if (editor === undefined || !isLisp(editor.document)) return undefined
  return packageNear(editor.document.getText(), editor.document.offsetAt(editor.selection.active))
}

export class Evaluator {
  /** Called before code is evaluated, and waited for. */
  before: () => Promise<void> = () => Promise.resolve()

  constructor(
    private readonly server: Server,
    private readonly results: Results,
    private readonly output: vscode.OutputChannel,
  ) {}

  /** Evaluates code, and shows the result where the code ends. */
  async evaluate(what: What): Promise<EvalResult | undefined> {
    const chosen = chosenText(() => what)
    return chosen && this.evaluateRange(chosen.editor.document, chosen.range, what, chosen.editor.selection.active)
  }

  async evaluateRange(
    document: vscode.TextDocument, range: vscode.Range, what: What, position: vscode.Position,
  ): Promise<EvalResult | undefined> {
    const place = what === 'buffer' ? lastPlace(document, range) : range
    const pending = this.results.pending(document.uri, place, () => (this.server.condition.state === 'starting' ? 'waits for the image' : 'queued'))
    const version = document.version
    try {
      await this.server.settled()
      await this.before()
      // The range is not valid in the changed text.
      if (document.version !== version) throw new Error('The text has changed meanwhile: nothing was evaluated.')
      const [name, argument] = this.question(document, range, what, position)
      const result = await this.server.run<EvalResult>(name, argument, { begun: () => pending.begun(), output: ({ text }) => this.output.append(text) })
      pending.end()
      // The range of a whole file ends after its last line break, on an empty line.
      const at = result.range === undefined || what === 'buffer' ? place : toRange(result.range)
      // A form that was edited meanwhile is not the one that was evaluated.
      if (document.version === version) this.results.show(document.uri, at, result, packageAt(document.getText(), document.offsetAt(at.start)))
      else this.report(result)
      return result
    } catch (error) {
      // An evaluation that had not begun changed nothing, and the earlier value still holds.
      if (error instanceof Refused && error.kind === 'interrupted') {
        pending.cancelled()
        return undefined
      }
      pending.failed()
      if (!(error instanceof Refused && error.kind === 'package-not-found')) complain(error)
      else if (await offerPackage(error, document, packageAt(document.getText(), document.offsetAt(range.start))))
        // The package exists now.
        if (document.version === version) return this.evaluateRange(document, range, what, position)
      return undefined
    }
  }

  private report(result: EvalResult): void {
    // The person has interrupted it, and needs no error about that.
    if (result.status !== 'interrupted' && result.error !== null) void tellOfError(this.server, `${result.error.type}: ${result.error.message}`, result.failure?.number).catch(complain)
  }

  /**
   * The command and its argument: the server's command for this kind of text if it has one, because
   * the server's reader finds forms better; otherwise `eval` with the code itself.
   */
  private question(document: vscode.TextDocument, range: vscode.Range, what: What, position: vscode.Position): [Name, object] {
    const uri = document.uri.toString()
    const at = plain(position)
    if (what === 'form' && this.server.can('evalForm')) return ['evalForm', { uri, position: at, topLevel: false, captureTime: true }]
    if (what === 'top-level' && this.server.can('evalForm')) return ['evalForm', { uri, position: at, topLevel: true, captureTime: true }]
    if (what === 'region' && this.server.can('evalRegion')) return ['evalRegion', { uri, range: plainRange(range), captureTime: true }]
    if (what === 'buffer' && this.server.can('evalBuffer')) return ['evalBuffer', { uri, captureTime: true }]
    if (what === 'to-cursor' && this.server.can('evalToCursor')) return ['evalToCursor', { uri, position: at, captureTime: true }]
    return ['eval', { code: document.getText(range), uri, position: plain(range.start), captureTime: true }]
  }

  /** Evaluates the form and writes its value after it, as a comment. */
  async evaluateToComment(): Promise<void> {
    const chosen = chosenText(() => 'form')
    if (chosen === undefined) return
    const { editor, range } = chosen
    const { document } = editor
    const place = new TrackedRange(document, range)
    const result = await this.evaluateRange(document, range, 'form', editor.selection.active).finally(() => place.dispose())
    if (result === undefined) return
    const text = result.status === 'ok' ? result.values.join('\n') || '; no value' : `${result.error?.type ?? result.status}: ${result.error?.message ?? ''}`
    const now = place.range
    const shown = vscode.window.visibleTextEditors.find((one) => one.document === document)
    const notWritten = (why: string): void => void vscode.window.showInformationMessage(`Consort: ${label(text)}. It was not written: ${why}.`)
    if (now === undefined || shown === undefined) return notWritten('the form was edited or closed meanwhile')
    const indent = ' '.repeat(now.start.character)
    const comment = text.split('\n').map((line, index) => `${index === 0 ? ' ;=>' : `${indent};  `} ${line}`).join('\n')
    if (!(await shown.edit((edit) => edit.insert(now.end, comment)))) notWritten('the file cannot be edited')
  }

  async loadFile(): Promise<void> {
    const editor = lispEditor()
    if (editor === undefined) return
    await this.server.settled()
    if (!this.server.can('loadFile')) {
      await this.evaluate('buffer')
      return
    }
    await editor.document.save()
    try {
      const report = await compileAndLoad(this.server, 'loadFile', { uri: editor.document.uri.toString() })
      if (report === undefined) return
      vscode.window.setStatusBarMessage(`$(check) Loaded ${label(report.what)}`, 4000)
      this.output.append(report.output)
    } catch (error) {
      complain(error)
    }
  }
}

/** The place of the value of a whole file: the last form that is evaluated. */
function lastPlace(document: vscode.TextDocument, otherwise: vscode.Range): vscode.Range {
  const form = lastFormRead(document.getText())
  return form === undefined ? otherwise : new vscode.Range(document.positionAt(form.start), document.positionAt(form.end))
}

/** The range of the text to evaluate, at the editor's cursor. */
export function rangeOf(editor: vscode.TextEditor, what: What): vscode.Range | undefined {
  const { document, selection } = editor
  if (what === 'buffer') {
    const last = document.lineAt(document.lineCount - 1).range.end
    const text = document.getText().trimEnd()
    return text === '' ? undefined : new vscode.Range(new vscode.Position(0, 0), document.validatePosition(document.positionAt(text.length)).isAfter(last) ? last : document.positionAt(text.length))
  }
  // The server knows where the last form before the cursor ends.
  if (what === 'to-cursor') return new vscode.Range(new vscode.Position(0, 0), selection.active)
  if (what === 'region' && !selection.isEmpty) return new vscode.Range(selection.start, selection.end)
  const text = document.getText()
  const offset = document.offsetAt(selection.active)
  const form = what === 'top-level' ? topLevelFormAt(text, offset) : formAt(text, offset)
  return form && new vscode.Range(document.positionAt(form.start), document.positionAt(form.end))
}
