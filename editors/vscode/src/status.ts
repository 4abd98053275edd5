// The status bar: the image's state, the package at the cursor, busy or idle. A click opens the menu.
import * as vscode from 'vscode'
import { plain } from './format.js'
import { packageAt } from './reader.js'
import { describe, isLisp, type Server } from './server.js'

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
    const suffix = name === undefined ? '' : `  ${name}`
    this.item.backgroundColor = undefined
    switch (condition.state) {
      case 'ready':
        this.item.text = `${this.server.busy ? '$(loading~spin)' : '$(circle-filled)'} Lisp${suffix}`
        break
      case 'idle':
        this.item.text = '$(circle-outline) Lisp'
        break
      case 'starting':
        this.item.text = '$(loading~spin) Lisp starting'
        break
      case 'dead':
        this.item.text = condition.final ? '$(error) Lisp ended' : '$(sync~spin) Lisp restarting'
        if (condition.final) this.item.backgroundColor = new vscode.ThemeColor('statusBarItem.errorBackground')
        break
      case 'down':
        this.item.text = condition.why === 'not-found' ? '$(warning) Consort is not installed' : '$(circle-slash) Lisp off'
        if (condition.why === 'not-found') this.item.backgroundColor = new vscode.ThemeColor('statusBarItem.warningBackground')
    }
    const busy = condition.state === 'ready' && this.server.busy ? '\n\nEvaluating. Click to interrupt.' : ''
    this.item.tooltip = new vscode.MarkdownString('**Consort**: ').appendText(describe(condition)).appendMarkdown(busy)
    this.offerHelp()
  }

  /** Say once, in one notification, what is missing and where it is explained. */
  private offerHelp(): void {
    const { condition } = this.server
    if (condition.state === 'ready') this.asked = false
    const missing = condition.state === 'down' && condition.why === 'not-found'
    const ended = condition.state === 'dead' && condition.final
    if (this.asked || !(missing || ended)) return
    this.asked = true
    const message = missing
      ? 'Consort: the program `consort` was not found. Four commands install it.'
      : `Consort: Lisp did not start. ${plain(firstSentence(condition.state === 'dead' ? condition.reason : ''))}`
    void vscode.window.showWarningMessage(message, 'Show What to Do', 'Try Again').then((choice) => {
      if (choice === 'Show What to Do') void vscode.commands.executeCommand('consort.editor.walkthrough')
      if (choice === 'Try Again') void vscode.commands.executeCommand(missing ? 'consort.editor.restartServer' : 'consort.editor.restart')
    })
  }
}

const firstSentence = (text: string): string => /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text

/** The package at the cursor of a Lisp editor. */
export function currentPackage(): string | undefined {
  const editor = vscode.window.activeTextEditor
  if (editor === undefined || !isLisp(editor.document)) return undefined
  return packageAt(editor.document.getText(), editor.document.offsetAt(editor.selection.active)) ?? 'COMMON-LISP-USER'
}

/** The menu behind the status bar. */
export async function showMenu(server: Server): Promise<void> {
  // An image that is not started yet is started by the first evaluation.
  const ready = server.condition.state === 'ready' || server.condition.state === 'idle'
  const entry = (label: string, command: string, detail: string, shown = true) => (shown ? [{ label, command, detail }] : [])
  const items = [
    ...entry('$(debug-stop) Interrupt', 'consort.editor.interrupt', 'Stop what this editor evaluates', server.busy),
    ...entry('$(terminal) Open the REPL', 'consort.editor.repl', 'In this editor\'s session', ready),
    ...entry('$(debug-restart) Restart Lisp', 'consort.editor.restart', 'End the image and start a new one; systems are loaded again', server.started),
    ...entry('$(plug) Restart the connection', 'consort.editor.restartServer', 'Start the language server anew; the image lives on'),
    ...entry('$(output) Show the log', 'consort.editor.showLog', 'What the extension and the server did'),
    ...entry('$(info) Status', 'consort.editor.status', 'The image, who is connected, what is in progress', server.started),
    ...entry('$(checklist) Doctor', 'consort.editor.doctor', 'Look whether everything needed is there', server.found !== undefined),
    ...entry('$(copilot) Set up an agent', 'consort.editor.copyAgentConfiguration', 'The configuration for Claude Code, Cursor and others'),
    ...entry('$(book) Get started', 'consort.editor.walkthrough', 'The walkthrough'),
  ]
  const chosen = await vscode.window.showQuickPick(items, { title: `Consort: ${plain(describe(server.condition))}`, placeHolder: 'What to do' })
  if (chosen !== undefined) await vscode.commands.executeCommand(chosen.command)
}
