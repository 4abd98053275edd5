// Questions about agents' calls that need a person's approval: a notification that takes no focus,
// and the code in a document with the choices and the time that is left above it. No answer in time
// counts as a refusal.
import * as vscode from 'vscode'
import type { Approval, Decision } from './lsp_ext.js'
import { SCHEME, type Documents } from './documents.js'
import { label, oneLine, plain, visible, wrapped } from './format.js'
import { beforeLinks, Notice, noticeLink } from './notice.js'
import { Queue, type Asked } from './queue.js'
import { complain, type Server } from './server.js'
import { definitionPlace, type DefinitionPlace } from './source.js'
import { offerNext } from './replaced.js'

const PREFIX = 'Waiting for you'

export class Approvals implements vscode.Disposable, vscode.CodeLensProvider {
  private readonly queue = new Queue(() => this.changed())
  private readonly item = vscode.window.createStatusBarItem('consort.approval', vscode.StatusBarAlignment.Left, 11)
  private readonly lenses = new vscode.EventEmitter<void>()
  readonly onDidChangeCodeLenses = this.lenses.event
  private readonly subscriptions: vscode.Disposable[]
  private shown: Asked | undefined
  /** The question whose code the person has seen. A key that names no question answers this one. */
  private seen: Asked | undefined
  /** The last question that was cancelled. The reason comes in a message of its own. */
  private cancelled: Asked | undefined
  private endNotice: () => void = () => undefined
  private timer: NodeJS.Timeout | undefined
  /** The places of the definitions that the open questions would replace. */
  private readonly places = new WeakMap<Approval, DefinitionPlace>()

  constructor(
    private readonly server: Server,
    private readonly documents: Documents,
  ) {
    this.item.name = 'Consort: approval'
    this.item.command = 'consort.editor.approvals'
    this.item.backgroundColor = new vscode.ThemeColor('statusBarItem.warningBackground')
    server.approve = (approval, token) => {
      token.onCancellationRequested(() => {
        const isSeen = this.seen?.approval.id === approval.id
        const asked = this.queue.withdraw(approval.id)
        if (isSeen) this.cancelled = asked
      })
      return this.queue.ask(approval)
    }
    server.approvalOver = (id, reason) => this.over(id, reason)
    const decide = (decision: Decision) => (meant?: unknown) => this.decide(decision, meant)
    this.subscriptions = [
      this.item,
      // A server that has ended no longer waits for answers to its questions.
      server.onChange(() => {
        if (!server.started) this.queue.withdrawAll()
      }),
      this.lenses,
      vscode.languages.registerCodeLensProvider({ scheme: SCHEME, pattern: '/approval/**' }, this),
      vscode.commands.registerCommand('consort.editor.approve', decide('allow')),
      vscode.commands.registerCommand('consort.editor.approveForSession', decide('allow-session')),
      vscode.commands.registerCommand('consort.editor.deny', decide('deny')),
      vscode.commands.registerCommand('consort.editor.approvals', () => this.choose()),
    ]
  }

  dispose(): void {
    clearInterval(this.timer)
    this.endNotice()
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const top = new vscode.Range(0, 0, 0, 0)
    if (this.shown === undefined || document.uri.path !== `/${documentName(this.shown.approval)}`)
      return [new vscode.CodeLens(top, { title: 'Decided: nothing waits here any more', command: '' })]
    const given = [this.shown.approval.id]
    return [
      new vscode.CodeLens(top, { title: '$(check) Allow', command: 'consort.editor.approve', arguments: given }),
      new vscode.CodeLens(top, { title: '$(check-all) Allow for this session', command: 'consort.editor.approveForSession', arguments: given }),
      new vscode.CodeLens(top, { title: '$(close) Deny', command: 'consort.editor.deny', arguments: given }),
      new vscode.CodeLens(top, { title: `$(clock) ${this.queue.secondsLeft(this.shown)} s left`, command: '' }),
    ]
  }

  /**
   * Decides the question with that id or that document; without either, the one whose code is
   * shown. The present question may be another one, whose code the person has not seen.
   */
  private decide(decision: Decision, meant: unknown): void {
    const { shown } = this
    const id = shown?.approval.id
    const isMeant = meant instanceof vscode.Uri ? shown !== undefined && meant.path === `/${documentName(shown.approval)}`
      : typeof meant === 'string' || typeof meant === 'number' ? meant === id : shown === this.seen
    if (shown === undefined || !isMeant) vscode.window.setStatusBarMessage('Consort: nothing was decided: another question is shown by now, or none', 5000)
    else this.settle(shown, decision)
  }

  /**
   * Takes back a question that is over. If the person has seen it, who answered is said, since its
   * notification is gone.
   */
  private over(id: string | number, reason: string): void {
    const isSeen = this.seen?.approval.id === id
    const asked = this.queue.withdraw(id)
    const seen = isSeen ? asked : this.cancelled?.approval.id === id ? this.cancelled : undefined
    if (seen !== undefined) this.tellOver(seen, reason)
  }

  private tellOver({ approval }: Asked, reason: string): void {
    this.cancelled = undefined
    void vscode.window.showInformationMessage(`Consort: no answer is needed any more (${label(reason)}): ${plain(oneLine(approval.what, 120))}`)
  }

  /** Shows the code and the choices again: the command of the status bar item. */
  private async choose(): Promise<void> {
    const asked = this.shown
    if (asked === undefined) return
    await this.showCode(asked).catch(complain)
    if (asked !== this.shown) return
    const choices: (vscode.QuickPickItem & { decision: Decision })[] = [
      { label: '$(check) Allow', detail: 'This call, with exactly this code', decision: 'allow' },
      { label: '$(check-all) Allow for this session', detail: `Everything of this kind that ${plain(asked.approval.client)} asks, until it leaves`, decision: 'allow-session' },
      { label: '$(close) Deny', detail: 'Nothing is changed', decision: 'deny' },
    ]
    const chosen = await vscode.window.showQuickPick(choices, { title: plain(asked.approval.what), placeHolder: 'Your decision' })
    if (chosen === undefined) return
    this.settle(asked, chosen.decision)
  }

  private settle(asked: Asked, decision: Decision): void {
    if (!this.queue.has(asked)) {
      void vscode.window.showInformationMessage('Consort: that question was decided meanwhile. Your decision had no effect.')
      return
    }
    // Before the decision is sent, because the effects of the call may be reported at once.
    if (decision !== 'deny') void offerNext(this.server, asked.approval, this.places.get(asked.approval))
    asked.decide(decision)
  }

  private changed(): void {
    const first = this.queue.first
    void vscode.commands.executeCommand('setContext', 'consort.approvalWaits', first !== undefined)
    if (first !== this.shown) {
      const last = this.shown
      this.endNotice()
      this.shown = first
      this.seen = undefined
      this.lenses.fire()
      if (last !== undefined) void closeDocument(last.approval)
      if (first !== undefined) void this.present(first)
    }
    if (first !== undefined) this.timer ??= setInterval(() => this.tick(), 1000)
    else {
      clearInterval(this.timer)
      this.timer = undefined
    }
    this.tick()
  }

  private tick(): void {
    const { seen } = this
    if (this.queue.expire().some((late) => late === seen) && seen !== undefined) this.tellOver(seen, 'nobody answered in time, so it was denied')
    const asked = this.queue.first
    if (asked === undefined) {
      this.item.hide()
      return
    }
    const more = this.queue.length > 1 ? `, ${this.queue.length - 1} more` : ''
    this.item.text = `$(bell-dot) ${label(asked.approval.client, 40)} asks: ${this.queue.secondsLeft(asked)} s${more}`
    this.item.tooltip = `${label(asked.approval.what)}\nClick to decide.`
    this.item.show()
    this.lenses.fire()
  }

  /**
   * Shows the notification as a progress notification: it shows the remaining time, and closes when
   * the question is decided elsewhere.
   */
  private async present(asked: Asked): Promise<void> {
    // The notification has the question too, and the decision remains the person's.
    await this.showCode(asked).catch(complain)
    if (asked !== this.shown) return
    this.seen = asked
    const { approval } = asked
    // `Later` decides nothing, so no decision is the default.
    const notice = new Notice('Later', () => this.endNotice())
    const link = (title: string, command: string): string => noticeLink(title, `consort.editor.${command}`, [approval.id])
    const links = [link('Allow', 'approve'), link('Allow for this session', 'approveForSession'), link('Deny', 'deny')].join('  ·  ')
    let percent = 0
    const say = (): void => {
      const left = this.queue.secondsLeft(asked)
      const now = 100 * (1 - left / Math.max(1, approval.deadlineSeconds))
      const more = this.queue.length > 1 ? ` (${this.queue.length - 1} more wait)` : ''
      notice.say(`${beforeLinks(sentence(approval))} ${links}  ·  ${left} s left${more}`, now - percent)
      percent = now
    }
    say()
    const timer = setInterval(say, 1000)
    this.endNotice = () => {
      clearInterval(timer)
      this.endNotice = () => undefined
      notice.close()
    }
  }

  /** The definition that would be replaced, if its place is known. */
  private async before(approval: Approval): Promise<DefinitionPlace | undefined> {
    const { function: name } = (approval.arguments ?? {}) as { function?: unknown }
    if (approval.code == null || typeof name !== 'string') return undefined
    const place = await definitionPlace(this.server, name).catch(() => undefined)
    if (place !== undefined) this.places.set(approval, place)
    return place
  }

  private async showCode(asked: Asked): Promise<void> {
    await this.open(asked)
    // Decided while its document was being opened.
    if (!this.queue.has(asked)) await closeDocument(asked.approval)
  }

  private async open(asked: Asked): Promise<void> {
    const { approval } = asked
    const name = documentName(approval)
    const before = await this.before(approval)
    // The question was decided meanwhile, and its document would stay open.
    if (asked !== this.shown) return
    if (before !== undefined) {
      const code = approval.code ?? ''
      // Notes about the call stand above its code as comments, and are no part of the change.
      const notes = /^(?:;; (?:Tried in a copy of the image:|Package:|THE READTABLE IS|With \S+:) ?.*\n)*/.exec(code)?.[0] ?? ''
      const left = this.documents.set(name.replace('approval/', 'before/'), `${notes}${before.text}\n`)
      const right = this.documents.set(name, `${code}\n`)
      const options: vscode.TextDocumentShowOptions = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true }
      await vscode.commands.executeCommand('vscode.diff', left, right, `${PREFIX}: ${plain(oneLine(approval.what, 60))}`, options)
      return
    }
    const header = [
      ...wrapped(`${PREFIX}: ${sentence(approval)}`, 40),
      ...(approval.file == null ? [] : [`File: ${label(approval.file, 1000)}`]),
      `Tool: ${approval.tool}`,
      `No answer within ${approval.deadlineSeconds} s counts as Deny.`,
    ].map((line) => `;;; ${line}`)
    const code = approval.code ?? (approval.arguments === undefined ? '' : visible(JSON.stringify(approval.arguments, null, 2)))
    const text = `${header.map((line) => line.replace(/\n/g, ' ')).join('\n')}\n\n${code}\n`
    await this.documents.open(name, text, { language: approval.code == null && approval.arguments !== undefined ? 'jsonc' : 'commonlisp' })
  }
}

/** The agent and its request, in one sentence. */
export function sentence(approval: Approval): string {
  const what = oneLine(approval.what, 160)
  const who = oneLine(approval.client, 40)
  return `AI agent ${who} wants to ${what.charAt(0).toLowerCase()}${what.slice(1).replace(/[.?!]$/, '')}.`
}

const documentName = (approval: Approval): string => `approval/${String(approval.id).replace(/[^\w-]/g, '_')}/${approval.tool}.lisp`

async function closeDocument(approval: Approval): Promise<void> {
  const path = `/${documentName(approval)}`
  const tabs = vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter(({ input }) => {
      const uri = input instanceof vscode.TabInputText ? input.uri : input instanceof vscode.TabInputTextDiff ? input.modified : undefined
      return uri?.scheme === SCHEME && uri.path === path
    })
  if (tabs.length > 0) await vscode.window.tabGroups.close(tabs, true)
}
