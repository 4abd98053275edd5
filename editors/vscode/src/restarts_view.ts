// A view of the restarts of the stop that the debugger's views show: a click or the digit invokes
// one.
import * as vscode from 'vscode'
import { complain } from './server.js'
import { restartRows, type Restart } from './stops.js'
import { Tree } from './trees.js'

const VIEW = 'consort.restarts'

/** The restarts of one stop. */
export interface StopRestarts {
  readonly restarts: readonly Restart[]
  /** Invokes one of them, in the program that stopped there. */
  take(restart: Restart): Promise<void>
}

/** The source of the view's restarts. */
export interface Restarts {
  /** The restarts of the stop that is shown; none where nothing is stopped. */
  shown(): Promise<StopRestarts>
}

export class RestartsView extends Tree<Restart> {
  private stop: StopRestarts = { restarts: [], take: () => Promise.resolve() }
  /** The number of the last reading: an earlier one that ends later does not count. */
  private reading = 0
  private readonly subscriptions: vscode.Disposable[]

  constructor(private readonly restarts: Restarts) {
    super()
    this.subscriptions = [
      vscode.window.createTreeView<Restart>(VIEW, { treeDataProvider: this }),
      vscode.debug.onDidChangeActiveStackItem(() => void this.read()),
      vscode.commands.registerCommand('consort.editor.invokeRestart', (restart: Restart) => this.take(restart)),
      vscode.commands.registerCommand('consort.editor.invokeRestartNumber', (number: number) => this.take(this.stop.restarts.find(({ index }) => index === number))),
    ]
  }
  override dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose()
    super.dispose()
  }

  /** Invokes a restart that is shown; a restart that was shown earlier belongs to another stop. */
  private async take(restart: Restart | undefined): Promise<void> {
    if (restart !== undefined && this.stop.restarts.includes(restart)) await this.stop.take(restart).catch(complain)
  }

  /** Reads the restarts again: the stop that is shown may be another. */
  async read(): Promise<void> {
    const mine = ++this.reading
    const stop = await this.restarts.shown()
    if (mine !== this.reading) return
    this.stop = stop
    this.refresh()
  }

  getTreeItem(restart: Restart): vscode.TreeItem {
    const [row] = restartRows([restart])
    const item = new vscode.TreeItem(row?.label ?? '')
    item.description = row?.description ?? ''
    item.command = { title: 'Take', command: 'consort.editor.invokeRestart', arguments: [restart] }
    return item
  }
  getChildren(of?: Restart): Restart[] {
    return of === undefined ? [...this.stop.restarts] : []
  }
}
