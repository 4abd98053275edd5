// Macro expansions step by step in the place of their forms: in a read-only copy of the person's
// text, which is shown in its place. The text itself is never changed, and the copy belongs to no
// file: it cannot be edited or saved.
import * as vscode from 'vscode'
import { plain, toRange } from './convert.js'
import { lispEditor } from './evaluate.js'
import type { Expansion, MacroCalls } from './lsp_ext.js'
import { begun, collapsed, expanded, innermost, neighbour, offsetAt, rangeAt, type Steps } from './macrosteps.js'
import { complain, FocusMoved, trackFocus, type Server } from './server.js'

export const STEPPER = 'consort-macrostep'

/** A copy, and its original. */
interface Copy {
  readonly original: vscode.TextDocument
  readonly version: number
  readonly selection: vscode.Selection
  steps: Steps
}

export class MacroStepper implements vscode.TextDocumentContentProvider, vscode.Disposable {
  /** By the address of the copy, which has the whole path of the original. */
  private readonly copies = new Map<string, Copy>()
  private readonly changed = new vscode.EventEmitter<vscode.Uri>()
  readonly onDidChange = this.changed.event
  private readonly placed = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor('diffEditor.insertedTextBackground'),
    border: '1px solid',
    borderColor: new vscode.ThemeColor('editorWidget.border'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.addedForeground'),
  })
  private readonly subscriptions: vscode.Disposable
  /** The end of the last key that was pressed, by the address of the person's text. */
  private readonly keys = new Map<string, { last: Promise<void> }>()

  constructor(private readonly server: Server) {
    this.subscriptions = vscode.Disposable.from(
      this.changed, this.placed,
      vscode.workspace.registerTextDocumentContentProvider(STEPPER, this),
      vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach((editor) => this.mark(editor))),
      // A document that gets another language is closed too, and opened again.
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        if (!vscode.workspace.textDocuments.some((one) => one.uri.toString() === uri.toString())) this.drop(uri.toString())
      }),
    )
    // Tabs that VS Code has restored from an earlier window have no original.
    void vscode.window.tabGroups.close(tabs((uri) => !this.copies.has(uri.toString())))
  }
  dispose(): void {
    this.subscriptions.dispose()
  }
  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.copies.get(uri.toString())?.steps.text ?? ''
  }

  /**
   * Keys can come faster than answers: each waits for the one before in the same text or its copy,
   * and begins at the place to which that one moved.
   */
  private inOrder(key: () => Promise<void>): Promise<void> {
    const text = this.textHere()
    const keys = this.keys.get(text)
    const done = keys === undefined ? key() : keys.last.then(() => {
      // The stepper was quit meanwhile.
      if (this.keys.get(text) !== keys) return undefined
      return this.textHere() === text ? key() : complain(new FocusMoved())
    })
    const now = keys ?? { last: done }
    const last = done.catch(() => undefined).then(() => {
      if (now.last === last && this.keys.get(text) === now) this.keys.delete(text)
    })
    now.last = last
    this.keys.set(text, now)
    return done
  }

  /** The address of the text with the focus; in a copy, that of its original. */
  private textHere(): string {
    const uri = vscode.window.activeTextEditor?.document.uri.toString() ?? ''
    return this.copies.get(uri)?.original.uri.toString() ?? uri
  }

  /** Expands the macro call at the cursor: in the copy that is shown, or in one that is made. */
  step(): Promise<void> {
    return this.inOrder(() => this.expandHere())
  }

  private async expandHere(): Promise<void> {
    const here = this.here()
    if (here !== undefined) {
      await this.further(here.editor, here.copy)
      return
    }
    const editor = lispEditor()
    if (editor !== undefined) await this.begin(editor)
  }

  private async begin(editor: vscode.TextEditor): Promise<void> {
    const { document, selection, viewColumn } = editor
    const copy: Copy = { original: document, version: document.version, selection, steps: begun(document.getText()) }
    const isFocusUnmoved = trackFocus()
    const start = await this.expand(copy, selection.active)
    if (start === undefined) return
    // The text has changed, or the copy would take the focus of a person who has moved on.
    if (!isFocusUnmoved()) return complain(new FocusMoved())
    const name = `macro steps: ${document.uri.path.split('/').at(-1) ?? ''}`
    const path = document.uri.path.includes('/') ? vscode.Uri.joinPath(document.uri, '..', name).path : `/${name}`
    const uri = vscode.Uri.from({ scheme: STEPPER, path, query: document.uri.scheme === 'file' ? '' : document.uri.toString() })
    this.copies.set(uri.toString(), copy)
    let shown = await vscode.workspace.openTextDocument(uri)
    if (shown.languageId !== document.languageId) shown = await vscode.languages.setTextDocumentLanguage(shown, document.languageId)
    // A preview would replace the original's tab, if that is a preview.
    const stepper = await vscode.window.showTextDocument(shown, { preview: false, ...(viewColumn === undefined ? {} : { viewColumn }) })
    await this.show(stepper, copy, start)
    vscode.window.setStatusBarMessage('A copy of your text: E expands, C collapses, N, P: macro calls, Q: back', 10_000)
  }

  private async further(editor: vscode.TextEditor, copy: Copy): Promise<void> {
    const start = await this.expand(copy, editor.selection.active)
    if (start !== undefined) await this.show(editor, copy, start)
  }

  /**
   * Takes one step in a copy. Resolves to the offset of the expansion; undefined when there is
   * none, or when the copy has changed since the request.
   */
  private async expand(copy: Copy, position: vscode.Position): Promise<number | undefined> {
    const asked = copy.steps
    const around = innermost(asked, offsetAt(asked.text, position))
    try {
      const argument = {
        uri: copy.original.uri.toString(), text: asked.text, position: plain(position),
        ...(around === undefined ? {} : { within: rangeAt(asked.text, around) }),
      }
      const answer = await this.server.run<Expansion>('macrostep', argument)
      if (copy.steps !== asked) return undefined
      if (answer.error !== null) throw new Error(answer.error.message)
      if (answer.expansion === null || answer.range === undefined || !answer.expanded) {
        vscode.window.setStatusBarMessage('No macro is called here', 3000)
        return undefined
      }
      if ((answer.omitted ?? 0) > 0) throw new Error('The expansion is too long to be shown in the place of its form. "Consort: Macroexpand" shows its beginning.')
      const start = offsetAt(asked.text, answer.range.start)
      copy.steps = expanded(asked, start, offsetAt(asked.text, answer.range.end), answer.expansion)
      return start
    } catch (error) {
      complain(error)
      return undefined
    }
  }

  /** Takes back the innermost expansion at the cursor. */
  collapse(): Promise<void> {
    return this.inOrder(() => this.collapseHere())
  }

  private async collapseHere(): Promise<void> {
    const here = this.here()
    if (here === undefined) return
    const { editor, copy } = here
    const done = collapsed(copy.steps, offsetAt(copy.steps.text, editor.selection.active))
    if (done === undefined) {
      vscode.window.setStatusBarMessage('No expansion is here', 3000)
      return
    }
    copy.steps = done.steps
    await this.show(editor, copy, done.start)
  }

  /** Goes to the next, or the previous, macro call of the top-level form. */
  go(forward: boolean): Promise<void> {
    return this.inOrder(() => this.goFromHere(forward))
  }

  private async goFromHere(forward: boolean): Promise<void> {
    const here = this.here()
    if (here === undefined) return
    const { editor, copy } = here
    const { text } = copy.steps
    try {
      const { selection } = editor
      const { active } = selection
      const answer = await this.server.run<MacroCalls>('macroCalls', { uri: copy.original.uri.toString(), text, position: plain(active) })
      // The person has moved on, or has moved the cursor.
      if (copy.steps.text !== text || vscode.window.activeTextEditor !== editor || !editor.selection.isEqual(selection)) return
      if (answer.error !== null) throw new Error(answer.error.message)
      const found = neighbour(answer.calls, active, forward)
      if (found === undefined) vscode.window.setStatusBarMessage(`No macro call is ${forward ? 'after' : 'before'} this in the top-level form`, 3000)
      else put(editor, toRange({ start: found, end: found }).start)
    } catch (error) {
      complain(error)
    }
  }

  /** Forgets a copy, and the keys that wait for an answer about it. */
  private drop(address: string): void {
    const copy = this.copies.get(address)
    if (copy !== undefined) this.keys.delete(copy.original.uri.toString())
    this.copies.delete(address)
  }

  /** Ends the stepper: the person's text is shown again, at the place where they left it. */
  async quit(): Promise<void> {
    const here = this.here()
    if (here === undefined) return
    const { editor, copy } = here
    const { original, version, selection } = copy
    this.keys.delete(original.uri.toString())
    // A text that was closed without ever being saved no longer exists.
    if (!original.isClosed || original.uri.scheme === 'file') {
      const shown = original.isClosed ? await vscode.workspace.openTextDocument(original.uri) : original
      const column = editor.viewColumn === undefined ? {} : { viewColumn: editor.viewColumn }
      // An open editor keeps its position; the selection is needed only for one that was closed.
      await vscode.window.showTextDocument(shown, { ...column, ...(original.version === version ? { selection } : {}) })
    }
    const key = editor.document.uri.toString()
    this.copies.delete(key)
    await vscode.window.tabGroups.close(tabs((uri) => uri.toString() === key))
  }

  /** The stepper with the focus. */
  private here(): { editor: vscode.TextEditor; copy: Copy } | undefined {
    const editor = vscode.window.activeTextEditor
    const copy = editor && this.copies.get(editor.document.uri.toString())
    return editor !== undefined && copy !== undefined ? { editor, copy } : undefined
  }

  /** Shows the copy as it is now in the editor, with the cursor at an offset. */
  private async show(editor: vscode.TextEditor, copy: Copy, offset: number): Promise<void> {
    const { document } = editor
    const { steps } = copy
    this.changed.fire(document.uri)
    // Another copy of the same text may have taken the place of this one.
    const isOver = (): boolean => copy.steps !== steps || document.isClosed || this.copies.get(document.uri.toString()) !== copy
    await until(document, () => lines(document) === steps.text || isOver())
    if (isOver()) return
    this.mark(editor)
    put(editor, toRange(rangeAt(steps.text, { start: offset, end: offset })).start)
  }

  /** Marks the expansions, in an editor that shows the copy as it is. */
  private mark(editor: vscode.TextEditor): void {
    const copy = this.copies.get(editor.document.uri.toString())
    if (copy === undefined || lines(editor.document) !== copy.steps.text) return
    const { text, placed } = copy.steps
    const shown = placed.map((one) => ({
      range: toRange(rangeAt(text, one)),
      hoverMessage: new vscode.MarkdownString().appendText('An expansion of').appendCodeblock(one.before, 'commonlisp'),
    }))
    editor.setDecorations(this.placed, shown)
  }
}

const lines = (document: vscode.TextDocument): string => document.getText().replaceAll('\r\n', '\n')

function put(editor: vscode.TextEditor, position: vscode.Position): void {
  editor.selection = new vscode.Selection(position, position)
  editor.revealRange(editor.selection)
}

/** The tabs of steppers whose address is as wanted. */
const tabs = (wanted: (uri: vscode.Uri) => boolean): vscode.Tab[] =>
  vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).filter(({ input }) => input instanceof vscode.TabInputText && input.uri.scheme === STEPPER && wanted(input.uri))

/** Waits for a state of a document that changes or is closed. */
async function until(document: vscode.TextDocument, reached: () => boolean): Promise<void> {
  if (reached()) return
  await new Promise<void>((done) => {
    const look = (): void => {
      if (!reached()) return
      subscriptions.dispose()
      done()
    }
    const subscriptions = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument((event) => event.document === document && look()),
      vscode.workspace.onDidCloseTextDocument(look),
    )
  })
}
