// The side bar: systems of the workspace, the image and who is connected, and the shared log.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { describe } from './condition.js'
import type { LoadResult, LogEntry, Status } from './lsp_ext.js'
import { bytesText, doneText, fenced, label, markdown, oneLine, plain } from './format.js'
import { onOtherImage } from './image_changes.js'
import { Rows } from './rows.js'
import { complain, Refused, type Server } from './server.js'
import { currentPackage } from './status.js'
import { systemsIn, type DefinedSystem } from './systems.js'
import { saveFiles } from './unsaved.js'

export interface System {
  name: string
  uri: vscode.Uri
}
/** A system of the workspace, with its definition in the file. */
export type WorkspaceSystem = System & DefinedSystem

/** The systems of the workspace's .asd files. */
export async function workspaceSystems(): Promise<WorkspaceSystem[]> {
  const files = await vscode.workspace.findFiles('**/*.asd', '**/{node_modules,.git,.qlot,quicklisp}/**', 300)
  const read = async (uri: vscode.Uri): Promise<WorkspaceSystem[]> => {
    // A file that was removed since the search has no systems.
    const bytes = await vscode.workspace.fs.readFile(uri).then((bytes) => bytes, () => new Uint8Array())
    return systemsIn(new TextDecoder().decode(bytes)).map((system) => ({ ...system, uri }))
  }
  return (await Promise.all(files.sort((a, b) => a.path.localeCompare(b.path)).map(read))).flat()
}

export abstract class Tree<T> implements vscode.TreeDataProvider<T>, vscode.Disposable {
  protected readonly changed = new vscode.EventEmitter<undefined>()
  readonly onDidChangeTreeData = this.changed.event
  refresh(): void {
    this.changed.fire(undefined)
  }
  dispose(): void {
    this.changed.dispose()
  }
  abstract getTreeItem(element: T): vscode.TreeItem
  abstract getChildren(element?: T): vscode.ProviderResult<T[]>
}

/** Runs a function after each change, once no evaluation has been running for a moment. */
export function onIdle(server: Server, run: () => void): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined
  const changes = server.onChange(() => {
    clearTimeout(timer)
    if (!server.busy) timer = setTimeout(run, 500)
  })
  return new vscode.Disposable(() => {
    clearTimeout(timer)
    changes.dispose()
  })
}

export interface SystemRow extends WorkspaceSystem {
  /** True if the system is loaded in the image, whoever loaded it. */
  loaded: boolean
}

export class SystemsTree extends Rows<SystemRow> {
  constructor(private readonly server: Server) {
    super()
    this.resting = onIdle(server, () => this.refresh())
  }
  private readonly resting: vscode.Disposable

  override dispose(): void {
    this.resting.dispose()
    super.dispose()
  }
  protected override async load(): Promise<SystemRow[]> {
    const [systems, loaded] = await Promise.all([workspaceSystems(), this.loaded()])
    // The view says so only once it is known.
    void vscode.commands.executeCommand('setContext', 'consort.noSystems', systems.length === 0)
    return systems.map((system) => ({ ...system, loaded: loaded.has(system.name) }))
  }
  private async loaded(): Promise<Set<string>> {
    try {
      const { image } = await this.server.ask<Status>('status')
      return new Set(image.state === 'ready' ? (image.facts?.systems ?? []) : [])
    } catch {
      return new Set()
    }
  }
  protected override key(system: SystemRow): string {
    return `${system.uri.toString()} ${system.name}`
  }
  override getTreeItem(system: SystemRow): vscode.TreeItem {
    const item = new vscode.TreeItem(label(system.name), vscode.TreeItemCollapsibleState.None)
    item.id = this.key(system)
    item.iconPath = new vscode.ThemeIcon(system.loaded ? 'package' : 'circle-outline')
    item.description = system.loaded ? 'loaded' : label(vscode.workspace.asRelativePath(system.uri))
    item.tooltip = label(vscode.workspace.asRelativePath(system.uri))
    item.contextValue = 'system'
    item.command = { command: 'vscode.open', title: 'Open', arguments: [system.uri, { selection: new vscode.Range(system.line, 0, system.line, 0) }] }
    return item
  }
}

/**
 * Loads a system, with progress that can be cancelled; files are saved first. True if it is loaded
 * now.
 */
export async function loadSystem(server: Server, tree: SystemsTree, system: System | undefined, output: vscode.OutputChannel): Promise<boolean> {
  const chosen = system?.name ?? (await chooseSystem('Load a System'))
  if (chosen === undefined) return false
  try {
    await saveFiles()
    const begun = Date.now()
    const options = { location: vscode.ProgressLocation.Notification, title: `Loading ${label(chosen)}`, cancellable: true }
    const result = await vscode.window.withProgress(options, (_, token) =>
      server.run<LoadResult>('loadSystem', { system: chosen, force: false }, undefined, token),
    )
    output.append(result.stdout + result.stderr)
    server.log.info(`Load system ${chosen}: ${result.loaded ? 'loaded' : 'not loaded'}, ${((Date.now() - begun) / 1000).toFixed(1)} s`)
    if (!result.loaded) {
      // The output of the compiler has the reason; the error only names the file.
      output.show(true)
      throw new Refused(`${chosen} was not loaded. ${result.error?.message ?? ''}`, undefined)
    }
    tree.refresh()
    vscode.window.setStatusBarMessage(`$(check) ${label(chosen)} is loaded`, 4000)
    return true
  } catch (error) {
    // The server shows the message about a load that failed.
    if (!(error instanceof Refused && error.kind === undefined)) complain(error)
    return false
  }
}

export async function chooseSystem(title: string): Promise<string | undefined> {
  const systems = await workspaceSystems()
  if (systems.length === 0) return askText({ title, prompt: 'The name of an ASDF system' })
  // The system of the package at the cursor comes first: it is chosen most often.
  const here = currentPackage()?.toLowerCase()
  systems.sort((one, other) => Number(other.name === here) - Number(one.name === here))
  const items = systems.map(({ name, uri }) => ({ label: label(name), description: label(vscode.workspace.asRelativePath(uri)), name }))
  return (await vscode.window.showQuickPick(items, { title, placeHolder: 'A system of this workspace' }))?.name
}

interface Line {
  label: string
  description?: string
  tooltip?: string
  icon: string
  children?: Line[]
  context?: string
}

export class ImageTree extends Tree<Line> {
  constructor(private readonly server: Server) {
    super()
    server.onChange(() => this.refresh())
    // The log's entries are from clients that may not have been connected before.
    server.onLogEntry(() => this.refresh())
  }
  override getTreeItem(line: Line): vscode.TreeItem {
    const state = line.children === undefined ? vscode.TreeItemCollapsibleState.None : vscode.TreeItemCollapsibleState.Expanded
    const item = new vscode.TreeItem(label(line.label), state)
    if (line.description !== undefined) item.description = label(line.description)
    item.tooltip = plain(line.tooltip ?? `${line.label}${line.description === undefined ? '' : `: ${line.description}`}`)
    item.iconPath = new vscode.ThemeIcon(line.icon)
    if (line.context !== undefined) item.contextValue = line.context
    return item
  }
  override async getChildren(line?: Line): Promise<Line[]> {
    if (line !== undefined) return line.children ?? []
    const { condition } = this.server
    const ready = condition.state === 'ready' ? `${condition.lisp.replace(/\.debian$/, '')}, ready` : describe(condition)
    const image: Line = { label: 'Image', description: ready, tooltip: describe(condition), icon: 'server-process' }
    if (!this.server.started || !this.server.can('status')) return [image]
    try {
      const status = await this.server.ask<Status>('status')
      // Checks begin and end with each keystroke.
      const work = status.work.filter((one) => !one.startsWith('checking '))
      const memory = status.host_memory === null ? '' : `, ${bytesText(status.host_memory)}`
      return [
        image,
        { label: 'Host', description: `Consort ${status.version}${memory}`, tooltip: `Consort ${status.version}, process ${status.host_pid}, for ${status.workspace}`, icon: 'vm' },
        {
          label: 'Connected', description: String(status.clients.length), icon: 'plug',
          children: status.clients.map(({ frontend, name }) => ({ label: name, description: frontend === 'mcp' ? 'agent' : frontend === 'lsp' ? 'editor' : frontend, icon: frontend === 'mcp' ? 'hubot' : 'account' })),
        },
        ...(work.length === 0
          ? []
          : [{
              label: 'In progress', description: String(work.length), icon: 'loading~spin', context: 'work',
              children: work.map((one) => ({ label: oneLine(one.replaceAll(`${status.workspace}/`, ''), 120), tooltip: one, icon: 'play', context: 'work' })),
            }]),
      ]
    } catch {
      return [image]
    }
  }
}

/**
 * The log of operations with their clients, people and agents in separate groups. New entries
 * appear automatically.
 */
export class LogTree extends Tree<LogEntry> {
  private entries: LogEntry[] = []
  private following = false

  constructor(private readonly server: Server) {
    super()
    server.onLogEntry((entry) => {
      this.entries = [...this.entries.slice(-999), entry]
      this.refresh()
    })
    server.onChange(() => {
      const can = server.started && server.can('log')
      if (can && !this.following) void this.follow()
      this.following = can
    })
    // The host may be another too, with a log of its own.
    onOtherImage(server, () => {
      if (this.following) void this.follow()
    })
  }
  private async follow(): Promise<void> {
    // Another host numbers its entries from 1 again.
    this.entries = []
    try {
      const { entries } = await this.server.ask<{ entries: LogEntry[] }>('log', { follow: true })
      // New entries may arrive before the answer, which does not include them.
      const last = entries.at(-1)?.number ?? 0
      this.entries = [...entries, ...this.entries.filter(({ number }) => number > last)]
      this.refresh()
    } catch {
      this.following = false
    }
  }
  override getTreeItem(entry: LogEntry): vscode.TreeItem {
    const code = entry.code ?? ''
    const item = new vscode.TreeItem(label(code === '' ? doneText(entry) : code, 160))
    const outcome = oneLine((entry.outcome ?? '').replace(/^=> /, '⇒ '), 60)
    const agent = entry.frontend === 'mcp'
    // The name of an agent; that of a person is left out.
    item.description = [...(agent ? [entry.client] : []), ...(outcome === '' || outcome === 'no value' || outcome === 'done' ? [] : [outcome])].map((part) => label(part)).join(' · ')
    const time = new Date(entry.time).toLocaleTimeString()
    const color = entry.status === 'ok' ? undefined : new vscode.ThemeColor('consort.errorForeground')
    item.iconPath = new vscode.ThemeIcon(agent ? 'hubot' : 'account', color)
    item.tooltip = new vscode.MarkdownString().appendMarkdown(`${markdown(`${entry.client}, ${time}: ${entry.tool}, ${entry.status}`)}\n\n${fenced(code, 'commonlisp')}\n\n${fenced(entry.outcome ?? '', 'text')}`)
    return item
  }
  override getChildren(entry?: LogEntry): LogEntry[] {
    return entry === undefined ? this.entries.slice(-200).reverse() : []
  }
}

