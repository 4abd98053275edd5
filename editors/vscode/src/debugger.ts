// VS Code's debugger for Lisp: the program `consort dap`, what F5 evaluates, and the restarts of a
// stop.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { startDebugging } from './debug_session.js'
import { lispEditor, rangeOf, type What } from './evaluate.js'
import { plain } from './format.js'
import { namesIn } from './inline_values.js'
import { beforeLinks, Notice, noticeLink } from './notice.js'
import { packageAt, topLevelFormAt } from './reader.js'
import { RestartsView } from './restarts_view.js'
import { complain, LANGUAGES, type Server } from './server.js'
import { firstRestarts, formsOf, PROGRAM_THREADS, restartOf, restartRows, restartTitle, Stops, stopText, type Restart, type Stop } from './stops.js'

const TYPE = 'consort'
const UNTRUSTED = "Consort: a debugger runs the workspace's code, and waits until you trust this folder."
const LIST = 'Choose a Restart…'

/** The values of `evaluate` in a configuration, each with the text that it selects. */
const EVALUATE: Readonly<Record<string, What | 'test'>> = { form: 'form', 'top-level': 'top-level', selection: 'region', file: 'buffer', test: 'test' }
const FORM: vscode.DebugConfiguration = { type: TYPE, request: 'launch', name: 'Evaluate the Form at the Cursor', evaluate: 'top-level' }
const TEST: vscode.DebugConfiguration = { type: TYPE, request: 'launch', name: 'Run the Test at the Cursor', evaluate: 'test' }
/** Without `evaluate`: a test at the cursor is run, any other form is evaluated. */
const AT_CURSOR: vscode.DebugConfiguration = { type: TYPE, request: 'launch', name: 'Evaluate the Form or Run the Test at the Cursor' }
const FILE: vscode.DebugConfiguration = { type: TYPE, request: 'launch', name: 'Evaluate the File', evaluate: 'file' }
/**
 * The session that begins when an evaluation stops, or begins while there are breakpoints. It ends
 * when nothing is stopped and there are none. VS Code's console stays closed: it would take the
 * place of the REPL.
 */
const AUTOMATIC: vscode.DebugConfiguration = { type: TYPE, request: 'attach', name: 'Evaluations', automatic: true, internalConsoleOptions: 'neverOpen' }
/** The time, in milliseconds, within which a program may stop again after a step. */
const MOMENT = 300
const ATTACH: vscode.DebugConfiguration = { type: TYPE, request: 'attach', name: 'Attach to the Lisp Image' }

/** A message of the debug adapter, as far as it is read here. */
interface AdapterMessage {
  type?: string
  event?: string
  command?: string
  body?: { threadId?: number; reason?: string; text?: string | null; description?: string; hitBreakpointIds?: number[] }
}

export class Debugger implements vscode.Disposable {
  private readonly stops = new Stops()
  /** The notifications of stops, with the restarts that they show. */
  private readonly notices = new Map<Stop, { notice: Notice; restarts: Restart[] }>()
  private readonly sessions = new Map<string, vscode.DebugSession>()
  /** The threads of this editor's evaluations that are stopped. */
  private readonly own = new Set<number>()
  /** The session that was begun because an evaluation stopped. */
  private attached: vscode.DebugSession | undefined
  /** Pending while a session for breakpoints is being started. */
  private readying: Promise<void> | undefined
  /** Called when a session that was begun for breakpoints has set them, or has ended. */
  private configured: (() => void) | undefined
  /** The restarts of the stop that VS Code's views show. */
  private readonly view = new RestartsView({
    shown: async () => {
      const stop = this.shownStop()
      // A stop that was left meanwhile has no restarts.
      const restarts = stop === undefined ? [] : await this.restartsOf(stop).then(({ restarts }) => restarts, () => [])
      return { restarts, take: async (restart) => (stop === undefined ? undefined : this.invoke(stop, restart)) }
    },
  })
  private readonly subscriptions: vscode.Disposable[]

  constructor(private readonly server: Server) {
    const configurations: vscode.DebugConfigurationProvider = {
      provideDebugConfigurations: () => [FORM, TEST, FILE, ATTACH],
      resolveDebugConfiguration: (_, configuration) => this.resolve(configuration),
      // VS Code has replaced its variables by now, so `${file}` in a form is plain text.
      resolveDebugConfigurationWithSubstitutedVariables: (_, configuration) => this.withCode(configuration),
    }
    this.subscriptions = [
      this.view,
      server.onStopped(({ thread }) => void this.attach(thread).catch(complain)),
      vscode.debug.onDidChangeBreakpoints(() => {
        // A stop may be known here before its session has reported it.
        if (this.own.size === 0) this.endIfIdle()
      }),
      // A recording that is stepped through has no restarts.
      vscode.debug.onDidChangeActiveDebugSession((session) => void vscode.commands.executeCommand('setContext', 'consort.inRecording', session?.configuration['recording'] !== undefined)),
      vscode.debug.registerDebugConfigurationProvider(TYPE, configurations),
      vscode.debug.registerDebugConfigurationProvider(TYPE, { provideDebugConfigurations: () => [FORM, TEST, FILE, ATTACH] }, vscode.DebugConfigurationProviderTriggerKind.Dynamic),
      vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, { createDebugAdapterDescriptor: () => this.adapter() }),
      vscode.debug.registerDebugAdapterTrackerFactory(TYPE, { createDebugAdapterTracker: (session) => this.follow(session) }),
      // The word at a variable is its whole name, for example `*print-base*`.
      vscode.languages.registerEvaluatableExpressionProvider(LANGUAGES, {
        provideEvaluatableExpression: (document, position) => {
          const range = document.getWordRangeAtPosition(position)
          return range && new vscode.EvaluatableExpression(range)
        },
      }),
      vscode.languages.registerInlineValuesProvider(LANGUAGES, { provideInlineValues: (document, _, { stoppedLocation }) => inlineValues(document, stoppedLocation) }),
      vscode.commands.registerCommand('consort.editor.debugForm', () => this.debugForm()),
      vscode.commands.registerCommand('consort.editor.restarts', () => this.restarts()),
      vscode.commands.registerCommand('consort.editor.restartOfStop', (serial: number, index?: number | null) => this.restartOfStop(serial, index).catch(complain)),
    ]
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  /**
   * Begins a session for an evaluation that has stopped, unless a session that follows the image
   * already has the stop.
   */
  private async attach(thread: number): Promise<void> {
    // Leaving the debugger interrupts evaluations, and no thread of a program.
    if (thread < PROGRAM_THREADS) this.own.add(thread)
    await this.session()
  }

  /**
   * Puts this editor's breakpoints in force before it evaluates: begins a session that follows the
   * image, unless there is one.
   */
  async ready(): Promise<void> {
    const stops = vscode.workspace.getConfiguration('consort').get<string>('debug.on_error') !== 'report'
    if (stops && lispBreakpoints(true)) await this.session()
  }

  /** Begins a session that follows the image, unless there is one. */
  private async session(): Promise<void> {
    // Another evaluation or stop that comes meanwhile waits for the same session.
    if (this.readying === undefined && this.follows()) return
    await (this.readying ??= this.begin().finally(() => (this.readying = undefined)))
  }

  /** Begins a session, and waits until it has set the breakpoints. */
  private async begin(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.configured = resolve
      startDebugging(this.server, AUTOMATIC).then((begun) => begun || resolve(), (error: unknown) => resolve(complain(error)))
    })
    this.configured = undefined
  }

  /**
   * Called when a thread continues: ends the session that was begun for a stop if nothing is
   * stopped soon afterwards and there are no breakpoints.
   */
  private onContinued(thread: number): void {
    this.own.delete(thread)
    this.endIfIdle()
  }
  /** Ends the session that was begun by itself if it is needed no more in a moment. */
  private endIfIdle(): void {
    const session = this.attached
    setTimeout(() => {
      if (session === undefined || session !== this.attached || this.stops.find() !== undefined || lispBreakpoints()) return
      void vscode.debug.stopDebugging(session)
    }, MOMENT)
  }

  /** True if a session follows the image: one at a frozen failure gets no other events. */
  private follows(): boolean {
    return [...this.sessions.values()].some(({ configuration }) => configuration['failure'] === undefined)
  }

  /**
   * Called when a session has ended: interrupts this editor's stopped evaluations, unless another
   * session follows the image.
   */
  private async left(session: vscode.DebugSession): Promise<void> {
    if (this.attached === session) this.attached = undefined
    if (this.own.size === 0 || this.follows()) return
    this.own.clear()
    await this.server.ask('interrupt', {})
  }

  /** The program that the language client runs, for the same workspace. */
  private adapter(): vscode.DebugAdapterDescriptor {
    if (!vscode.workspace.isTrusted) throw new Error(UNTRUSTED)
    const found = this.server.program()
    if (found === undefined) throw new Error('Consort: the program `consort` was not found. "Consort: Get Started" shows how to install it.')
    const folder = this.server.folder?.fsPath
    this.server.log.info(`starting ${found.path} dap (found by: ${found.how})`)
    return folder === undefined
      ? new vscode.DebugAdapterExecutable(found.path, ['dap'])
      : new vscode.DebugAdapterExecutable(found.path, ['dap', '--workspace', folder], { cwd: folder })
  }

  /** The complete configuration; undefined, which ends the start, in an untrusted workspace. */
  private resolve(configuration: vscode.DebugConfiguration): vscode.DebugConfiguration | undefined {
    if (!vscode.workspace.isTrusted) {
      void vscode.window.showWarningMessage(UNTRUSTED)
      return undefined
    }
    // Without a launch.json, F5 gives an empty configuration.
    return configuration.type ? configuration : { ...AT_CURSOR }
  }

  /**
   * The configuration with the code or the place of the test in it; undefined when there is none.
   */
  private withCode(configuration: vscode.DebugConfiguration): vscode.DebugConfiguration | undefined {
    if (configuration.request === 'attach' || typeof configuration['code'] === 'string' || typeof configuration['test'] === 'string') return configuration
    const wanted: unknown = configuration['evaluate'] ?? 'top-level'
    const what = typeof wanted === 'string' ? EVALUATE[wanted] : undefined
    if (what === undefined) {
      void vscode.window.showErrorMessage(`Consort: "evaluate" in the debug configuration is one of ${Object.keys(EVALUATE).join(', ')}.`)
      return undefined
    }
    if (what === 'test') return atTest(configuration)
    const editor = lispEditor()
    if (editor === undefined) return undefined
    const range = rangeOf(editor, what === 'top-level' && !editor.selection.isEmpty ? 'region' : what)
    if (range === undefined) {
      void vscode.window.showInformationMessage('Consort: there is no form here.')
      return undefined
    }
    const text = editor.document.getText()
    const inForce = packageAt(text, editor.document.offsetAt(range.start))
    // The host finds out whether there is a test.
    const place = configuration['evaluate'] === undefined && editor.selection.isEmpty ? placeOf(editor) : undefined
    return { ...configuration, ...place, code: editor.document.getText(range), ...(inForce === undefined || 'package' in configuration ? {} : { package: inForce }) }
  }

  private async debugForm(): Promise<void> {
    // The text in the editor is evaluated.
    await startDebugging(this.server, AT_CURSOR)
  }

  private follow(session: vscode.DebugSession): vscode.DebugAdapterTracker | undefined {
    // A recording that is stepped through has no restarts, and gets no events of other stops.
    if (session.configuration['recording'] !== undefined) return undefined
    this.sessions.set(session.id, session)
    const automatic = session.configuration['automatic'] === true
    if (automatic) this.attached = session
    // Other sessions begin and end meanwhile, and do not have the breakpoints set.
    const configured = (): void => {
      if (automatic) this.configured?.()
    }
    const ended = (): void => {
      this.stops.ended(session.id)
      this.closeNotices()
      void this.view.read()
      configured()
      if (this.sessions.delete(session.id)) void this.left(session).catch(complain)
    }
    return {
      onDidSendMessage: ({ type, event, command, body }: AdapterMessage) => {
        if (type === 'response' && command === 'configurationDone') configured()
        if (type !== 'event' || body?.threadId === undefined) return
        if (event === 'continued') {
          this.stops.continued(session.id, body.threadId)
          this.closeNotices()
          void this.view.read()
          this.onContinued(body.threadId)
        }
        if (event !== 'stopped') return
        const { stop, first } = this.stops.stopped(session.id, body.threadId)
        this.closeNotices()
        void this.view.read()
        // A stop at a breakpoint or after a step needs no notification: VS Code's own views show
        // it.
        const expected = body.reason === 'step' || body.hitBreakpointIds !== undefined
        if (first && !expected) void this.tell(stop, stopText(body.text ?? undefined, body.description)).catch(complain)
      },
      onWillStopSession: ended,
      onExit: ended,
    }
  }

  /** The restarts of a stop. Throws an error if the stop was left. */
  private async restartsOf(stop: Stop): Promise<{ session: vscode.DebugSession; restarts: Restart[] }> {
    const session = this.sessions.get(stop.session)
    if (session === undefined || !this.stops.has(stop)) throw new Error('That stop was left.')
    const { restarts } = (await session.customRequest('consort/restarts', { threadId: stop.thread })) as { restarts: Restart[] }
    if (!this.stops.has(stop)) throw new Error('That stop was left.')
    return { session, restarts }
  }

  /** The notification of a stop, with its first restarts. */
  private async tell(stop: Stop, text: string): Promise<void> {
    const found = await this.restartsOf(stop).catch((error: unknown) => {
      // A stop that was left at once needs no notification.
      if (this.stops.has(stop)) throw error
    })
    if (found === undefined) return
    const link = (title: string, restart?: number): string => noticeLink(title, 'consort.editor.restartOfStop', [stop.serial, restart])
    const links = [...firstRestarts(found.restarts).map(({ title, restart }) => link(title, restart.index)), link(LIST)]
    const notice = new Notice('Hide')
    notice.say(`${beforeLinks(text)}  ${links.join('  ·  ')}`, 1)
    this.notices.set(stop, { notice, restarts: found.restarts })
  }

  /** Closes the notifications of stops that were left. */
  private closeNotices(): void {
    for (const [stop, { notice }] of [...this.notices]) {
      if (this.stops.has(stop)) continue
      notice.close()
      this.notices.delete(stop)
    }
  }

  /** A link of a stop's notification: invokes a restart, or lists all of them. */
  private async restartOfStop(serial: number, index: number | null | undefined): Promise<void> {
    const [stop, told] = [...this.notices].find(([one]) => one.serial === serial) ?? []
    if (stop === undefined || told === undefined) throw new Error('That stop was left.')
    const restart = told.restarts.find((one) => one.index === index)
    if (restart === undefined) await this.choose(stop)
    else await this.invoke(stop, restart)
  }

  /** The stop that the debugger's views show, else the newest. */
  private shownStop(): Stop | undefined {
    const item = vscode.debug.activeStackItem
    return this.stops.find(item?.session.id ?? vscode.debug.activeDebugSession?.id, item?.threadId)
  }

  /** The command: the restarts of the stop that the debugger's views show, else of the newest. */
  private async restarts(): Promise<void> {
    const stop = this.shownStop()
    if (stop === undefined) void vscode.window.showInformationMessage('Consort: nothing is stopped.')
    else await this.choose(stop).catch(complain)
  }

  /** The list of restarts: a digit invokes one at once. */
  private async choose(stop: Stop): Promise<void> {
    const { restarts } = await this.restartsOf(stop)
    const pick = vscode.window.createQuickPick<ReturnType<typeof restartRows>[number]>()
    const chosen = await new Promise<Restart | undefined>((resolve) => {
      Object.assign(pick, { title: 'Restarts', placeholder: 'A number, or a word of the name', matchOnDescription: true, items: restartRows(restarts) })
      pick.onDidChangeValue((value) => {
        const restart = restartOf(value, restarts)
        if (restart !== undefined) resolve(restart)
      })
      pick.onDidAccept(() => resolve(pick.activeItems[0]?.restart))
      pick.onDidHide(() => resolve(undefined))
      pick.show()
    })
    pick.dispose()
    if (chosen !== undefined) await this.invoke(stop, chosen)
  }

  private async invoke(stop: Stop, restart: Restart): Promise<void> {
    let given: string[] = []
    if (restart.arguments) {
      const title = `Arguments of ${restartTitle(restart)}`
      const typed = await askText({
        title, prompt: `${plain(restart.report)}: Lisp forms, evaluated in the innermost frame`,
        validateInput: (text) => (formsOf(text) === undefined ? 'A form is not complete.' : undefined),
      })
      if (typed === undefined) return
      given = formsOf(typed) ?? []
    }
    const session = this.sessions.get(stop.session)
    if (session === undefined || !this.stops.has(stop)) throw new Error('That stop was left.')
    const answer = (await session.customRequest('consort/invokeRestart', {
      threadId: stop.thread, ...(restart.stop == null ? {} : { stop: restart.stop }), index: restart.index, ...(restart.name === null ? {} : { name: restart.name }), ...(given.length === 0 ? {} : { arguments: given }),
    })) as { tried?: { result: string } } | undefined
    // A frozen failure does not continue: the answer is the result of the attempt.
    if (answer?.tried !== undefined) void vscode.window.showInformationMessage(plain(answer.tried.result))
  }
}

/** The names in the lines of the stopped definition, down to the line where it is stopped. */
function inlineValues(document: vscode.TextDocument, stopped: vscode.Range): vscode.InlineValue[] {
  const text = document.getText()
  const form = topLevelFormAt(text, document.offsetAt(stopped.start))
  const end = document.lineAt(Math.min(stopped.end.line, document.lineCount - 1)).range.end
  if (form === undefined) return []
  const start = document.positionAt(form.start)
  const names = namesIn(document.getText(new vscode.Range(new vscode.Position(start.line, 0), end)), start.line)
  return names.map(({ line, character, name }) => new vscode.InlineValueVariableLookup(new vscode.Range(line, character, line, character + name.length), name, false))
}

/** The file and line of the cursor, from 1; undefined for a text without a file. */
function placeOf({ document, selection }: vscode.TextEditor): { file: string; line: number } | undefined {
  return document.uri.scheme === 'file' ? { file: document.uri.fsPath, line: selection.active.line + 1 } : undefined
}

/**
 * The configuration with the place of the cursor, where a test is; undefined, after a message, if
 * there is none.
 */
function atTest(configuration: vscode.DebugConfiguration): vscode.DebugConfiguration | undefined {
  const editor = lispEditor()
  if (editor === undefined) return undefined
  const place = placeOf(editor)
  if (place === undefined) void vscode.window.showInformationMessage('Consort: a test is debugged in a file. Save the text first.')
  return place && { ...configuration, ...place }
}

/** True if there are breakpoints in Lisp files; with `enabled`, enabled ones. */
function lispBreakpoints(enabled = false): boolean {
  return vscode.debug.breakpoints.some((one) => (one.enabled || !enabled) && one instanceof vscode.SourceBreakpoint && /\.(lisp|lsp|cl|asd|ros)$/.test(one.location.uri.path))
}
