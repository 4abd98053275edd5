// Read-only documents that the extension shows: results, expansions, descriptions, code that waits
// for approval.
import * as vscode from 'vscode'

export const SCHEME = 'consort'

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>()
  private readonly changed = new vscode.EventEmitter<vscode.Uri>()
  readonly onDidChange = this.changed.event
  private readonly registration: vscode.Disposable
  private readonly closing: vscode.Disposable
  /** The end of the last `open`. */
  private before: Promise<unknown> = Promise.resolve()

  constructor() {
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this)
    this.closing = vscode.workspace.onDidCloseTextDocument((document) => this.texts.delete(document.uri.toString()))
  }
  dispose(): void {
    this.registration.dispose()
    this.closing.dispose()
    this.changed.dispose()
  }
  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? ''
  }

  /** Puts a text into the document of this name, whether it is shown or not. */
  set(name: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` })
    this.texts.set(uri.toString(), text)
    this.changed.fire(uri)
    return uri
  }

  /**
   * Shows a text beside the editor, in Lisp's colours, and takes the focus only on request.
   * Documents replace each other there, in the order of the calls.
   */
  open(name: string, text: string, options: { language?: string; focus?: boolean } = {}): Promise<vscode.TextEditor> {
    const uri = this.set(name, text)
    const done = this.before.then(() => this.show(uri, options))
    this.before = done.catch(() => undefined)
    return done
  }

  private async show(uri: vscode.Uri, options: { language?: string; focus?: boolean }): Promise<vscode.TextEditor> {
    const document = await vscode.workspace.openTextDocument(uri)
    const language = options.language ?? 'commonlisp'
    if (document.languageId !== language) await vscode.languages.setTextDocumentLanguage(document, language)
    // Uses the column that shows this or another such document, rather than a new one each time.
    const visible = vscode.window.visibleTextEditors.filter((editor) => editor.document.uri.scheme === SCHEME)
    const there = visible.find((editor) => editor.document.uri.toString() === uri.toString()) ?? visible[0]
    return vscode.window.showTextDocument(document, {
      viewColumn: there?.viewColumn ?? vscode.ViewColumn.Beside,
      preserveFocus: options.focus !== true,
      preview: true,
    })
  }
}
