// The side bar: packages with their symbols, and threads, which can be interrupted and ended.
import * as vscode from 'vscode'
import type { PackageSymbols, Packages, Thread, Threads } from './lsp_ext.js'
import { complain, type Server } from './server.js'
import { goToSymbol } from './source.js'
import { Rows } from './rows.js'
import { Tree, onIdle } from './trees.js'
import { label } from './format.js'

type Node =
  | { is: 'package'; name: string; description: string; own: boolean }
  | { is: 'symbol'; package: string; name: string; external: boolean; kinds: string[] }
  | { is: 'others'; children: Node[] }
  | { is: 'more'; count: number }

const ICONS: [RegExp, string][] = [
  [/macro|special/, 'symbol-keyword'], [/generic|function/, 'symbol-function'], [/class|structure|condition/, 'symbol-class'],
  [/constant/, 'symbol-constant'], [/variable/, 'symbol-variable'], [/package/, 'symbol-namespace'],
]

/** A name as source code writes it: in lower case, or between bars where it needs them. */
export const written = (name: string): string => (/[a-z\s()|"';]/.test(name) || name === '' ? `|${name.replace(/[|\\]/g, '\\$&')}|` : name.toLowerCase())

export class PackagesTree extends Tree<Node> {
  private readonly resting: vscode.Disposable

  constructor(private readonly server: Server) {
    super()
    this.resting = onIdle(server, () => this.refresh())
  }
  override dispose(): void {
    this.resting.dispose()
    super.dispose()
  }
  override async getChildren(node?: Node): Promise<Node[]> {
    if (node?.is === 'others') return node.children
    if (!this.server.can('packages') || this.server.condition.state !== 'ready') return []
    try {
      if (node?.is === 'package') return await this.symbols(node.name)
      if (node !== undefined) return []
      const { packages } = await this.server.ask<Packages>('packages')
      const nodes = packages.map(({ name, nicknames, exports, own }): Node & { is: 'package' } => ({
        is: 'package', name, own, description: [...(exports === 0 ? [] : [`${exports} exported`]), ...nicknames.map((one) => one.toLowerCase())].join(' · '),
      }))
      return [...nodes.filter(({ own }) => own), { is: 'others', children: nodes.filter(({ own }) => !own) }]
    } catch {
      return []
    }
  }
  private async symbols(name: string): Promise<Node[]> {
    const { count, symbols } = await this.server.ask<PackageSymbols>('packageSymbols', { package: name })
    const nodes = symbols.map((symbol): Node & { is: 'symbol' } => ({ is: 'symbol', package: name, ...symbol }))
    const more: Node[] = count > symbols.length ? [{ is: 'more', count: count - symbols.length }] : []
    return [...nodes.filter(({ external }) => external), ...nodes.filter(({ external }) => !external), ...more]
  }
  override getTreeItem(node: Node): vscode.TreeItem {
    const { Collapsed, None } = vscode.TreeItemCollapsibleState
    if (node.is === 'others') {
      const item = new vscode.TreeItem('Lisp and libraries', Collapsed)
      item.description = String(node.children.length)
      item.iconPath = new vscode.ThemeIcon('library')
      return item
    }
    if (node.is === 'more') return new vscode.TreeItem(`${node.count} more`, None)
    if (node.is === 'package') {
      const item = new vscode.TreeItem(label(written(node.name)), Collapsed)
      item.description = label(node.description ?? '')
      item.iconPath = new vscode.ThemeIcon('symbol-namespace')
      item.contextValue = 'package'
      return item
    }
    const item = new vscode.TreeItem(label(written(node.name)), None)
    item.description = [...node.kinds, ...(node.external ? [] : ['internal'])].join(', ')
    const kinds = node.kinds.join(' ')
    item.iconPath = new vscode.ThemeIcon(ICONS.find(([kind]) => kind.test(kinds))?.[1] ?? 'symbol-field')
    item.tooltip = label(`${written(node.package)}${node.external ? ':' : '::'}${written(node.name)}`)
    item.command = { command: 'consort.editor.openSymbol', title: 'Go to the Definition', arguments: [node] }
    return item
  }
  /** Opens the source of a symbol of the tree. */
  async open(node: Node): Promise<void> {
    if (node.is === 'symbol') await goToSymbol(this.server, `${written(node.package)}::${written(node.name)}`).catch(complain)
  }
}

interface OwnThreads {
  kind: 'own'
  threads: Thread[]
}

export class ThreadsTree extends Rows<Thread | OwnThreads> {
  private readonly timer: NodeJS.Timeout
  private readonly changes: vscode.Disposable

  constructor(private readonly server: Server) {
    super()
    this.changes = server.onChange(() => this.refresh())
    // Threads begin and end without an event.
    this.timer = setInterval(() => {
      if (this.isShown && vscode.window.state.focused) this.refresh()
    }, 3000)
  }
  override dispose(): void {
    clearInterval(this.timer)
    this.changes.dispose()
    super.dispose()
  }
  protected override async load(): Promise<(Thread | OwnThreads)[]> {
    if (!this.server.can('threads') || this.server.condition.state !== 'ready') return []
    try {
      const { threads } = await this.server.ask<Threads>('threads')
      const own = threads.filter(({ kind }) => kind === 'system')
      return [...threads.filter(({ kind }) => kind !== 'system'), { kind: 'own', threads: own }]
    } catch {
      return []
    }
  }
  protected override key(row: Thread | OwnThreads): string {
    return row.kind === 'own' ? 'own' : String(row.number)
  }
  protected override below(row: Thread | OwnThreads): Thread[] {
    return row.kind === 'own' ? row.threads : []
  }
  override getTreeItem(thread: Thread | OwnThreads): vscode.TreeItem {
    if (thread.kind === 'own') {
      const item = new vscode.TreeItem('Consort\'s own', vscode.TreeItemCollapsibleState.Collapsed)
      item.id = this.key(thread)
      item.description = String(thread.threads.length)
      item.iconPath = new vscode.ThemeIcon('server-process')
      return item
    }
    const item = new vscode.TreeItem(label(thread.name), vscode.TreeItemCollapsibleState.None)
    item.id = this.key(thread)
    if (thread.kind === 'evaluation') item.description = thread.ms === null ? 'evaluating' : `evaluating for ${(thread.ms / 1000).toFixed(1)} s`
    item.iconPath = new vscode.ThemeIcon(thread.kind === 'evaluation' ? 'loading~spin' : thread.kind === 'user' ? 'symbol-event' : 'gear')
    if (thread.kind !== 'system') item.contextValue = 'thread'
    return item
  }
  async stop(how: 'interruptThread' | 'killThread', thread: Thread | undefined): Promise<void> {
    try {
      const chosen = thread ?? (await this.choose(how === 'interruptThread' ? 'Interrupt a thread' : 'End a thread'))
      if (chosen === undefined) return
      await this.server.ask(how, { number: chosen.number })
      vscode.window.setStatusBarMessage(`$(check) ${label(chosen.name)}: ${how === 'interruptThread' ? 'interrupted' : 'ended'}`, 4000)
    } catch (error) {
      complain(error)
    } finally {
      this.refresh()
    }
  }
  private async choose(title: string): Promise<Thread | undefined> {
    const { threads } = await this.server.ask<Threads>('threads')
    const items = threads.filter(({ kind }) => kind !== 'system').map((thread) => ({ label: label(thread.name), thread }))
    if (items.length === 0) vscode.window.setStatusBarMessage('No thread of yours is running', 3000)
    return items.length === 0 ? undefined : (await vscode.window.showQuickPick(items, { title }))?.thread
  }
}
