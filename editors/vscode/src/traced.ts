// The calls of traced functions as a tree, with arguments and values that can be inspected. It is
// read each second while it is shown.
import * as vscode from 'vscode'
import { label } from './format.js'
import type { InspectedValue, TracedCall, TracedCalls } from './lsp_ext.js'
import type { Server } from './server.js'
import { Tree } from './trees.js'

const VIEW = 'consort.traced'
const TICK = 1000
/** The calls that are shown at the outermost level. */
const ROOTS = 300
const PAGE = 1000

type Row = { call: TracedCall } | { value: InspectedValue; is: string }

export class TracedView extends Tree<Row> {
  /** By their numbers; replaced by another map when the calls are cleared. */
  private calls = new Map<number, TracedCall>()
  private last = 0
  /** The process of the image whose calls these are. */
  private image: number | undefined
  private names: string[] = []
  private timer: NodeJS.Timeout | undefined
  private asking = false
  private readonly view: vscode.TreeView<Row>

  constructor(private readonly server: Server) {
    super()
    this.view = vscode.window.createTreeView<Row>(VIEW, { treeDataProvider: this })
    this.view.onDidChangeVisibility(({ visible }) => this.follow(visible))
    this.follow(this.view.visible)
  }
  override dispose(): void {
    this.follow(false)
    this.view.dispose()
    super.dispose()
  }

  private follow(visible: boolean): void {
    clearInterval(this.timer)
    this.timer = visible ? setInterval(() => void this.read(), TICK) : undefined
    if (visible) void this.read()
  }

  /** Shows the view, after something was traced. */
  async show(): Promise<void> {
    await vscode.commands.executeCommand(`${VIEW}.focus`)
  }

  async clear(): Promise<void> {
    await this.server.run<TracedCalls>('tracedCalls', { clear: true })
    this.forget()
    this.refresh()
  }

  private forget(): void {
    this.calls = new Map()
    this.last = 0
  }

  /** Reads the new calls, and the calls that were in progress again. */
  private async read(): Promise<void> {
    const { condition } = this.server
    if (this.asking || condition.state !== 'ready' || !this.server.can('tracedCalls')) return
    this.asking = true
    // Numbers begin at 1 again in another image.
    if (condition.pid !== this.image) this.forget()
    this.image = condition.pid
    try {
      const open = [...this.calls.values()].filter(({ outcome }) => outcome === 'open').map(({ call }) => call)
      const after = Math.min(this.last, ...open.map((number) => number - 1))
      const known = this.calls
      const { calls, last, names } = await this.server.ask<TracedCalls>('tracedCalls', { after, count: PAGE })
      if (this.calls !== known) return
      // Numbers begin at 1 again after the calls were cleared.
      if (last < this.last) this.forget()
      const changed = calls.filter((call) => this.calls.get(call.call)?.outcome !== call.outcome)
      const same = changed.length === 0 && last === this.last && names.join() === this.names.join()
      for (const call of changed) this.calls.set(call.call, call)
      for (const number of this.calls.keys()) if (number <= last - PAGE) this.calls.delete(number)
      this.last = last
      this.names = names
      this.view.message = names.length === 0 ? 'Nothing is traced. "Consort: Trace a Function" begins it.' : label(`Traced: ${names.join(', ')}`, 2000)
      if (!same) this.refresh()
    } catch {
      // There is no image now, but perhaps in the next second.
    } finally {
      this.asking = false
    }
  }

  override getTreeItem(row: Row): vscode.TreeItem {
    if ('value' in row) {
      const item = new vscode.TreeItem(label(row.value.text), vscode.TreeItemCollapsibleState.None)
      item.description = row.is
      item.iconPath = new vscode.ThemeIcon(row.is === 'argument' ? 'symbol-parameter' : 'arrow-small-right')
      item.tooltip = label(row.value.text, 2000)
      if (row.value.reference !== 0) item.command = { command: 'consort.editor.inspectResult', title: 'Inspect', arguments: [row.value.text, row.value.reference] }
      return item
    }
    const { name, arguments: given, outcome, values, thread } = row.call
    const item = new vscode.TreeItem(label(`(${[name, ...given.map(({ text }) => text)].join(' ')})`), vscode.TreeItemCollapsibleState.Collapsed)
    item.id = String(row.call.call)
    item.description = label(outcome === 'open' ? '…' : outcome === 'left' ? 'left by a non-local exit' : `⇒ ${values.map(({ text }) => text).join(' ; ') || 'no values'}`)
    item.tooltip = label(`call ${row.call.call}, thread ${thread}`)
    return item
  }

  override getChildren(row?: Row): Row[] {
    if (row === undefined) return this.below(undefined).slice(-ROOTS)
    if ('value' in row) return []
    const { arguments: given, values, call } = row.call
    return [...given.map((value) => ({ value, is: 'argument' })), ...this.below(call), ...values.map((value) => ({ value, is: 'value' }))]
  }

  /** The calls that a call made; for undefined, those whose caller is not kept. */
  private below(parent: number | undefined): Row[] {
    const found = [...this.calls.values()].filter((call) => (call.parent !== null && this.calls.has(call.parent) ? call.parent : undefined) === parent)
    return found.map((call) => ({ call }))
  }
}
