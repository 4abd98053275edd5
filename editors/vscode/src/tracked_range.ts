import * as vscode from 'vscode'
import { toRange } from './convert.js'
import { rangeAfter } from './ranges.js'

/** A range of a document that moves with its text. */
export class TrackedRange implements vscode.Disposable {
  /** `undefined` after an edit inside the range. */
  range: vscode.Range | undefined
  private readonly changes: vscode.Disposable

  constructor(document: vscode.TextDocument, range: vscode.Range) {
    this.range = range
    this.changes = vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.document !== document) return
      for (const change of event.contentChanges) {
        const moved = this.range && rangeAfter(this.range, change)
        this.range = moved && toRange(moved)
      }
    })
  }
  dispose(): void {
    this.changes.dispose()
  }
}
