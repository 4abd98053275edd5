// A range of a document that moves with its text.
import * as vscode from 'vscode'
import { toRange } from './convert.js'
import { moved } from './ranges.js'

export class Followed implements vscode.Disposable {
  /** Undefined once the text in it was edited. */
  range: vscode.Range | undefined
  private readonly changes: vscode.Disposable

  constructor(document: vscode.TextDocument, range: vscode.Range) {
    this.range = range
    this.changes = vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.document !== document) return
      for (const change of event.contentChanges) {
        const now = this.range && moved(this.range, change)
        this.range = now && toRange(now)
      }
    })
  }
  dispose(): void {
    this.changes.dispose()
  }
}
