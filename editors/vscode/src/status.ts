// The status bar shows the image's state, the package at the cursor, and whether code runs. A click
// opens the menu.
import * as vscode from 'vscode'
import { describe } from './condition.js'
import { label, oneLine, plain, shortPackage } from './format.js'
import { packageAt } from './reader.js'
import { offerHelp } from './help.js'
import { missingSbcl } from './install.js'
import { isLisp, type Server } from './server.js'

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('consort.status', vscode.StatusBarAlignment.Left, 10)
  private readonly subscriptions: vscode.Disposable[] = []
  private packageTimer: NodeJS.Timeout | undefined
  private asked = false

  constructor(private readonly server: Server) {
    this.item.name = 'Consort'
    this.item.command = 'consort.editor.menu'
    this.subscriptions.push(
      this.item,
      server.onChange(() => this.show()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
      vscode.window.onDidChangeTextEditorSelection(() => {
        clearTimeout(this.packageTimer)
        this.packageTimer = setTimeout(() => this.show(), 150)
      }),
    )
    this.show()
    this.item.show()
  }

  dispose(): void {
    clearTimeout(this.packageTimer)
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  private show(): void {
    const { condition } = this.server
    const name = currentPackage()
    this.item.backgroundColor = undefined
    switch (condition.state) {
      case 'ready':
        this.item.text = `${this.server.busy ? '$(loading~spin)' : '$(circle-filled)'} Lisp${this.where()}${name === undefined ? '' : `: ${label(shortPackage(name), 40)}`}`
        break
      case 'idle':
        this.item.text = '$(circle-outline) Lisp'
        break
      case 'starting':
        this.item.text = '$(loading~spin) Lisp starting'
        break
      case 'dead':
        this.item.text = missingSbcl(condition) ? '$(error) SBCL is not installed' : condition.final ? '$(error) Lisp ended' : '$(sync~spin) Lisp restarting'
        if (condition.final) this.item.backgroundColor = new vscode.ThemeColor('statusBarItem.errorBackground')
        break
      case 'down':
        this.item.text = { 'not-found': '$(warning) Consort is not installed', untrusted: '$(shield) Lisp: not trusted', stopped: '$(circle-slash) Lisp off' }[condition.why]
        if (condition.why === 'not-found') this.item.backgroundColor = new vscode.ThemeColor('statusBarItem.warningBackground')
    }
    const alone = this.where() === '' ? '' : '\n\nAll folders of this window share one image, which runs in the first. An agent that is started in any of them uses it.'
    const busy = condition.state === 'ready' && this.server.busy ? '\n\nEvaluating. Click to interrupt.' : ''
    this.item.tooltip = new vscode.MarkdownString('**Consort**: ').appendText(describe(condition)).appendMarkdown(busy + alone)
    this.offerHelp()
  }

  /** The folder that has the image, where there are several folders. */
  private where(): string {
    const folders = vscode.workspace.workspaceFolders ?? []
    return folders.length < 2 ? '' : ` in ${plain(oneLine(folders[0]?.name ?? '', 20))}`
  }

  /** Shows once, in one notification, what is missing, with a link to the explanation. */
  private offerHelp(): void {
    const { condition } = this.server
    if (condition.state === 'ready') this.asked = false
    const missing = condition.state === 'down' && condition.why === 'not-found'
    const ended = condition.state === 'dead' && condition.final
    if (this.asked || !(missing || ended)) return
    this.asked = true
    void offerHelp(condition)
  }
}

/** The package at the cursor of a Lisp editor. */
export function currentPackage(): string | undefined {
  const editor = vscode.window.activeTextEditor
  if (editor === undefined || !isLisp(editor.document)) return undefined
  return packageAt(editor.document.getText(), editor.document.offsetAt(editor.selection.active)) ?? 'COMMON-LISP-USER'
}

/** The package to read a typed name in: that at the cursor, unless the name says its own. */
export function readIn(name: string): { package?: string } {
  const here = name.includes(':') ? undefined : currentPackage()
  return here === undefined ? {} : { package: here }
}

/** The menu of the status bar. */
export async function showMenu(server: Server): Promise<void> {
  // An image that is not started yet is started by the first evaluation.
  const ready = server.condition.state === 'ready' || server.condition.state === 'idle'
  const entry = (label: string, command: string, detail: string, shown = true) => (shown ? [{ label, command, detail }] : [])
  const items = [
    ...entry('$(debug-stop) Interrupt', 'consort.editor.interrupt', 'Stop what this editor evaluates', server.busy),
    ...entry('$(terminal) Open the REPL', 'consort.editor.repl', 'In this editor\'s session', ready),
    ...entry('$(package) Load a System', 'consort.editor.loadSystem', 'Of this workspace, or by its name', ready && server.started),
    ...entry('$(debug-restart) Restart Lisp', 'consort.editor.restart', 'End the image and start a new one; systems are loaded again', server.started),
    ...entry('$(plug) Restart the Connection', 'consort.editor.restartServer', 'Restart the language server; the image keeps running'),
    ...entry('$(output) Show the Log', 'consort.editor.showLog', 'What the extension and the server did'),
    ...entry('$(info) Show the Status', 'consort.editor.status', 'The image, who is connected, what is in progress', server.started),
    ...entry('$(checklist) Doctor', 'consort.editor.doctor', 'Check that everything needed is there', server.found !== undefined),
    ...entry('$(copilot) Set Up an Agent', 'consort.editor.copyAgentConfiguration', 'The configuration for Claude Code, Cursor and others'),
    ...entry('$(keyboard) Show the Keys', 'consort.editor.keys', 'The keys of all commands'),
    ...entry('$(new-folder) New Project', 'consort.editor.newProject', 'A system with its package and tests'),
    ...entry('$(book) Get Started', 'consort.editor.walkthrough', 'The walkthrough'),
  ]
  const chosen = await vscode.window.showQuickPick(items, { title: `Consort: ${plain(describe(server.condition))}`, placeHolder: 'What to do' })
  if (chosen !== undefined) await vscode.commands.executeCommand(chosen.command)
}
