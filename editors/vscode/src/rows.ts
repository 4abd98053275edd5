// A list in the side bar that is loaded in the background, and whose rows are redrawn only where
// they differ.
//
// When a tree says that it has changed as a whole, VS Code forgets its elements until it has asked
// for them again. A click in between runs a command without its element. Therefore a row that stays
// keeps its element, and only rows that differ are redrawn.
import * as vscode from 'vscode'
import { merge } from './keyed.js'

export abstract class Rows<T extends object> implements vscode.TreeDataProvider<T>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<T[] | undefined>()
  readonly onDidChangeTreeData = this.changed.event
  private rows: T[] | undefined
  private asking: Promise<void> | undefined
  private again = false
  /** Set while the view is shown. Nothing is asked for otherwise. */
  private shown = false

  /** The rows as they are now; none when that cannot be known. */
  protected abstract load(): Promise<T[]>
  /** The identity of a row. */
  protected abstract key(row: T): string
  abstract getTreeItem(row: T): vscode.TreeItem
  /** The rows under one. */
  protected below(_row: T): T[] {
    return []
  }

  /** The view that shows these rows. */
  view(id: string): vscode.Disposable {
    const view = vscode.window.createTreeView(id, { treeDataProvider: this })
    this.shown = view.visible
    const watched = view.onDidChangeVisibility(({ visible }) => {
      this.shown = visible
      this.refresh()
    })
    return vscode.Disposable.from(view, watched)
  }
  get isShown(): boolean {
    return this.shown
  }
  refresh(): void {
    if (this.shown) void this.update()
  }
  async getChildren(row?: T): Promise<T[]> {
    if (row !== undefined) return this.below(row)
    if (this.rows === undefined) await this.update()
    return this.rows ?? []
  }
  dispose(): void {
    this.changed.dispose()
  }

  /** Loads the rows; a change meanwhile loads them once more. */
  private update(): Promise<void> {
    this.again = this.asking !== undefined
    this.asking ??= this.ask().finally(() => (this.asking = undefined))
    return this.asking
  }
  private async ask(): Promise<void> {
    do {
      this.again = false
      this.show(await this.load())
    } while (this.again)
  }
  private show(loaded: T[]): void {
    // The view that asked for the first rows gets them as the answer.
    if (this.rows === undefined) {
      this.rows = loaded
      return
    }
    const { rows, moved, differing } = merge(this.rows, loaded, (row) => this.key(row))
    this.rows = rows
    if (moved) this.changed.fire(undefined)
    else if (differing.length > 0) this.changed.fire(differing)
  }
}
