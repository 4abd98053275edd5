// The position of the person, sent to the server for agents.
import * as vscode from 'vscode'
import { isLisp, type Server } from './server.js'

/** The milliseconds after the last move: the position is not sent at each keystroke. */
const PAUSE = 300

export class EditorContext implements vscode.Disposable {
  private timer: NodeJS.Timeout | undefined
  private readonly subscriptions: vscode.Disposable[]

  constructor(private readonly server: Server) {
    const tellSoon = (): void => {
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.tell(), PAUSE)
    }
    this.subscriptions = [vscode.window.onDidChangeActiveTextEditor(tellSoon), vscode.window.onDidChangeTextEditorSelection(tellSoon)]
  }

  private tell(): void {
    const editor = vscode.window.activeTextEditor
    const visible = editor?.visibleRanges[0]
    if (editor === undefined || visible === undefined || !isLisp(editor.document) || !this.server.can('editorContext')) return
    const selection = { start: editor.selection.start, end: editor.selection.end }
    const visibleRange = { start: visible.start, end: visible.end }
    void this.server.ask('editorContext', { uri: editor.document.uri.toString(), selection, visibleRange }).catch(() => undefined)
  }

  dispose(): void {
    clearTimeout(this.timer)
    for (const subscription of this.subscriptions) subscription.dispose()
  }
}
