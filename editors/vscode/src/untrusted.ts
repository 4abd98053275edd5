// Diagnostics of delimiters that are not closed, in a folder that is not trusted, where the server
// does not run. They end when the folder is trusted and the server starts.
import * as vscode from 'vscode'
import { unbalanced } from './balance.js'
import { isLisp } from './server.js'

export class Unbalanced implements vscode.Disposable {
  private readonly found = vscode.languages.createDiagnosticCollection('consort-untrusted')
  private readonly subscriptions: vscode.Disposable[]

  constructor(trusted: () => void) {
    const mark = (document: vscode.TextDocument): void => this.mark(document)
    this.subscriptions = [
      this.found,
      vscode.workspace.onDidOpenTextDocument(mark),
      vscode.workspace.onDidChangeTextDocument((event) => mark(event.document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.found.delete(document.uri)),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        this.found.clear()
        trusted()
      }),
    ]
    vscode.workspace.textDocuments.forEach(mark)
  }
  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  private mark(document: vscode.TextDocument): void {
    if (vscode.workspace.isTrusted || !isLisp(document)) return
    const marks = unbalanced(document.getText()).map(({ start, end, message }) => {
      const mark = new vscode.Diagnostic(new vscode.Range(document.positionAt(start), document.positionAt(end)), message, vscode.DiagnosticSeverity.Error)
      mark.source = 'consort'
      return mark
    })
    this.found.set(document.uri, marks)
  }
}
