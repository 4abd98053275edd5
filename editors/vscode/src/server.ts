// The language server: finds its program, starts it, and sends it requests for all other modules.
import * as vscode from 'vscode'
import { CloseAction, ErrorAction, LanguageClient, RequestType, State, TransportKind, type LanguageClientOptions, type StaticFeature } from 'vscode-languageclient/node'
import { findBinary, type Found } from './binary.js'
import { describe, type Condition } from './condition.js'
import { errorText } from './format.js'
import { offerHelp, offerSbcl, showMessage, tellOfPlace, type Place } from './help.js'
import { saysNoSbcl } from './install.js'
import {
  COMMANDS,
  type Approval,
  type Decision,
  type ErrorData,
  type ImageState,
  type InputLine,
  type InputWanted,
  type LogEntry,
  type Name,
  type EvaluationListener,
  type Output,
  type Stopped,
} from './lsp_ext.js'
import { serverSettings } from './settings.js'
import { inTime } from './typing.js'

/**
 * The languages whose documents are sent to the server: this extension's, and the one that other
 * extensions use for Common Lisp.
 */
export const LANGUAGES = ['commonlisp', 'lisp']
export const SELECTOR = LANGUAGES.flatMap((language) => [
  { scheme: 'file', language },
  { scheme: 'untitled', language },
])
export const isLisp = (document: vscode.TextDocument): boolean =>
  LANGUAGES.includes(document.languageId) && (document.uri.scheme === 'file' || document.uri.scheme === 'untitled')

/** Tells the server that approval and limits come from the person's own settings (`OWN`). */
const OWN_SETTINGS: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), consort: { ownSettings: true } }
  },
  initialize() {
    // The server announces no capability for this.
  },
  getState: () => ({ kind: 'static' }),
  clear() {
    // Nothing is kept.
  },
}

/** The time for the end of a client, in milliseconds. */
const STOPPING = 3000

/** An error of a command, with a message for a person. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly kind: string | undefined,
    readonly place?: Place,
    /** The text of the command cannot be read. */
    readonly unreadable = false,
  ) {
    super(message)
  }
}

/** The error of a command, made from the server's answer. */
function refused(error: unknown, { uri }: { uri?: string }): Refused {
  const { message, data } = error as { message?: string; data?: ErrorData }
  const { file, line, column = 1 } = data?.location ?? {}
  const text = file === undefined ? uri : vscode.Uri.file(file).toString()
  const place = text === undefined || line === undefined ? undefined : { uri: text, line, column }
  return new Refused(errorText(message ?? String(error), data), data?.kind ?? data?.type, place, data?.unreadable)
}

/** No server runs, and none is starting. */
export class NotRunning extends Refused {
  constructor(readonly condition: Condition) {
    super(`Consort does not run: ${describe(condition)}.`, 'down')
  }
}

/**
 * Thrown for an answer that would take the focus of a person who has moved on since the request.
 */
export class FocusMoved extends Error {
  constructor() {
    super('You have moved on since you asked. Ask again for the answer.')
  }
}

/** The number of requests so far whose answers take the focus. */
let focusRequests = 0

/**
 * Remembers the active document and its version. Returns a function that returns true if both are
 * still the same and no later request takes the focus: only then may an answer take it.
 */
export function trackFocus(): () => boolean {
  const document = vscode.window.activeTextEditor?.document
  const version = document?.version
  const request = ++focusRequests
  return () => request === focusRequests && vscode.window.activeTextEditor?.document === document && document?.version === version
}

/** Resolves to an answer that takes the focus; throws `FocusMoved` if it may not. */
export async function withUnmovedFocus<T>(answer: Promise<T>): Promise<T> {
  const isFocusUnmoved = trackFocus()
  const answered = await answer
  if (!isFocusUnmoved()) throw new FocusMoved()
  return answered
}

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined
  /** The start that is under way, or the last one. */
  private starting: Promise<void> = Promise.resolve()
  /** The number of starts so far: a later start replaces an earlier one. */
  private starts = 0
  /** The end of all clients that were stopped. */
  private stopping: Promise<void> = Promise.resolve()
  private announced = new Set<string>()
  private known: readonly string[] = []
  /** The version of each open document that was sent last. */
  private readonly sent = new Map<string, number>()
  private tokens = 0
  private closings: number[] = []
  private running = 0
  /** The number of evaluations that have ended, whatever their outcome. */
  finished = 0
  /** The settings that were sent to the server last. */
  sentSettings: Readonly<Record<string, Record<string, unknown>>> = {}
  private readonly listeners = new Map<string | number, EvaluationListener>()
  private readonly changed = new vscode.EventEmitter<void>()
  /** The image's state, busy or not, or what is announced has changed. */
  readonly onChange = this.changed.event
  private readonly logged = new vscode.EventEmitter<LogEntry>()
  readonly onLogEntry = this.logged.event
  condition: Condition = { state: 'down', why: 'stopped' }
  found: Found | undefined
  approve: (asked: Approval, token: vscode.CancellationToken) => Promise<Decision> = () => Promise.resolve('deny')
  approvalOver: (id: string | number, reason: string) => void = () => undefined
  input: (wanted: InputWanted, token: vscode.CancellationToken) => Promise<InputLine> = () => Promise.resolve(null)
  private readonly stops = new vscode.EventEmitter<Stopped>()
  readonly onStopped = this.stops.event

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly log: vscode.LogOutputChannel,
  ) {}

  dispose(): void {
    void this.stop()
    this.changed.dispose()
    this.logged.dispose()
    this.stops.dispose()
  }

  /** The folder that is the workspace; the file's own directory where no folder is open. */
  get folder(): vscode.Uri | undefined {
    const active = vscode.window.activeTextEditor?.document.uri
    const folders = vscode.workspace.workspaceFolders
    if (folders?.[0] !== undefined) return folders[0].uri
    return active?.scheme === 'file' ? vscode.Uri.joinPath(active, '..') : undefined
  }

  get busy(): boolean {
    return this.running > 0
  }
  /** The announced commands, set after the conditions of keys and menus have been updated. */
  get offered(): readonly string[] {
    return this.known
  }
  sentVersion(uri: vscode.Uri): number | undefined {
    return this.sent.get(uri.toString())
  }
  can(name: Name): boolean {
    return this.announced.has(`consort.${name}`)
  }
  get started(): boolean {
    return this.client?.state === State.Running
  }

  /** The present place of the program `consort`. */
  program(): Found | undefined {
    return findBinary(serverPath(), this.folder?.fsPath, this.context.extensionPath, process.env)
  }

  start(): Promise<void> {
    this.starting = this.begin()
    return this.starting
  }

  /** Resolves when a start in progress has ended: a key may come before the server is ready. */
  settled(): Promise<void> {
    return this.starting
  }

  private async begin(): Promise<void> {
    const start = ++this.starts
    await this.stop()
    // Another start was begun meanwhile: this one ends with it.
    if (start !== this.starts) return this.starting
    if (!vscode.workspace.isTrusted) {
      this.setCondition({ state: 'down', why: 'untrusted' })
      return
    }
    const setting = serverPath()
    this.found = this.program()
    void vscode.commands.executeCommand('setContext', 'consort.binaryFound', this.found !== undefined)
    if (this.found === undefined) {
      this.log.warn(setting === '' ? 'The program `consort` is not on PATH.' : `consort.server.path is ${setting}: no program is there.`)
      this.setCondition({ state: 'down', why: 'not-found' })
      return
    }
    this.log.info(`starting ${this.found.path} lsp (found by: ${this.found.how})`)
    const client: LanguageClient = new LanguageClient('consort', 'Consort', this.serverOptions(this.found.path), this.clientOptions(() => client === this.client))
    this.client = client
    client.registerFeature(OWN_SETTINGS)
    client.onDidChangeState(({ newState }) => {
      if (client !== this.client) return
      if (newState === State.Stopped) this.setCondition({ state: 'down', why: 'stopped' })
    })
    // A message of a client that is being stopped is about another server's state.
    const own = <T>(take: (told: T) => void) => (told: T): void => {
      if (client === this.client) take(told)
    }
    client.onNotification('consort/imageState', own((state: ImageState) => this.setCondition(state)))
    client.onNotification('window/showMessage', ({ type, message }: { type: number; message: string }) => showMessage(type, message))
    client.onNotification('consort/begun', ({ token }: Pick<Output, 'token'>) => this.listeners.get(token)?.begun?.())
    client.onNotification('consort/output', (output: Output) => this.listeners.get(output.token)?.output(output))
    client.onNotification('consort/logEntry', own((entry: LogEntry) => this.logged.fire(entry)))
    client.onNotification('consort/approvalOver', own(({ id, reason }: { id: string | number; reason: string }) => this.approvalOver(id, reason)))
    client.onNotification('consort/stopped', own((stop: Stopped) => this.stops.fire(stop)))
    client.onRequest(new RequestType<Approval, { decision: Decision }, void>('consort/approve'), async (asked, token) => ({
      decision: await this.approve(asked, token),
    }))
    client.onRequest(new RequestType<InputWanted, InputLine, void>('consort/input'), (wanted, token) => this.input(wanted, token))
    this.setCondition({ state: 'starting', what: 'starting the server' })
    try {
      await client.start()
    } catch (error) {
      this.log.error(`the server did not start: ${String(error)}`)
      if (client !== this.client) return
      this.setCondition({ state: 'down', why: 'stopped' })
      return
    }
    // Another client was begun meanwhile.
    if (client !== this.client) return
    const capabilities = client.initializeResult?.capabilities
    await this.announce(capabilities?.executeCommandProvider?.commands ?? [])
    const experimental = capabilities?.experimental as { consort?: { image?: ImageState } } | undefined
    const image = experimental?.consort?.image
    if (image !== undefined && this.condition.state === 'starting') this.setCondition(image)
  }

  /** Stops the client. Resolves when all earlier clients have ended. */
  stop(): Promise<void> {
    const client = this.client
    this.client = undefined
    this.sent.clear()
    this.stopping = this.stopping.catch(() => undefined).then(() => this.end(client))
    return this.stopping
  }

  private async end(client: LanguageClient | undefined): Promise<void> {
    if (this.announced.size > 0) await this.announce([])
    if (client === undefined) return
    // A client that is restarting cannot be stopped before it has started, and would announce its
    // commands beside those of the next one.
    if (client.state === State.Starting) await Promise.race([client.start().catch(() => undefined), new Promise((late) => setTimeout(late, STOPPING))])
    try {
      await client.stop(STOPPING)
    } catch {
      // The client had ended already.
    }
  }

  private async announce(commands: string[]): Promise<void> {
    this.announced = new Set(commands)
    const set = (name: string, value: boolean) => vscode.commands.executeCommand('setContext', `consort.can.${name}`, value)
    await Promise.all(COMMANDS.map((name) => set(name, this.announced.has(`consort.${name}`))))
    this.known = commands
    this.changed.fire()
  }

  private setCondition(condition: Condition): void {
    this.condition = condition
    void vscode.commands.executeCommand('setContext', 'consort.image', condition.state)
    this.log.info(`image: ${describe(condition)}`)
    this.changed.fire()
  }

  private serverOptions(command: string) {
    const cwd = this.folder?.fsPath
    const options = { ...(cwd === undefined ? {} : { cwd }) }
    const program = { command, args: ['lsp'], transport: TransportKind.stdio, options }
    return { run: program, debug: program }
  }

  /** `current`: whether the client is the one that is used. */
  private clientOptions(current: () => boolean): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      diagnosticCollectionName: 'consort',
      outputChannel: this.log,
      initializationOptions: { ...(this.sentSettings = this.settings()), approve: true, input: true, stops: true, commands: true, diagnostics: 'push' },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          if (!current()) return { action: CloseAction.DoNotRestart, handled: true }
          // Restarts automatically, but not for ever.
          const now = Date.now()
          this.closings = [...this.closings.filter((then) => now - then < 60_000), now]
          return this.closings.length < 4
            ? { action: CloseAction.Restart, handled: true }
            : { action: CloseAction.DoNotRestart, handled: true }
        },
      },
      middleware: {
        didOpen: async (document, next) => {
          await next(document)
          this.sent.set(document.uri.toString(), document.version)
        },
        didChange: async (event, next) => {
          const { uri, version } = event.document
          await next(event)
          this.sent.set(uri.toString(), version)
        },
        didClose: async (document, next) => {
          await next(document)
          this.sent.delete(document.uri.toString())
        },
        provideOnTypeFormattingEdits: (document, position, ch, options, token, next) =>
          inTime(document, position, ch, next(document, position, ch, options, token)),
        workspace: {
          // Only the server's own keys, and only what a person set: see settings.ts.
          configuration: async (params, token, next) => {
            const answers = await next(params, token)
            if (!Array.isArray(answers)) return answers
            return answers.map((answer: unknown, index) =>
              params.items[index]?.section === 'consort' ? (this.sentSettings = this.settings()) : answer,
            )
          },
        },
      },
    }
  }

  private settings(): Record<string, Record<string, unknown>> {
    const configuration = vscode.workspace.getConfiguration('consort', this.folder)
    return serverSettings((key) => configuration.inspect(key))
  }

  /** Executes one of the server's commands; throws `Refused` when it fails or no server runs. */
  async ask<T>(name: Name, argument: object = {}, token?: vscode.CancellationToken): Promise<T> {
    await this.settled()
    const client = this.client
    if (client === undefined || !this.started) throw new NotRunning(this.condition)
    if (!this.can(name)) throw new Refused(`This version of Consort (${this.found?.path ?? '?'}) cannot do that yet: it lacks consort.${name}.`, 'lacking')
    const params = { command: `consort.${name}`, arguments: [argument] }
    try {
      return await (token === undefined ? client.sendRequest<T>('workspace/executeCommand', params) : client.sendRequest<T>('workspace/executeCommand', params, token))
    } catch (error) {
      if (error instanceof vscode.CancellationError) throw error
      throw refused(error, argument)
    }
  }

  /**
   * Acts as `ask`, for requests that run the person's code: they count as busy and report output.
   */
  async run<T>(name: Name, argument: object, listener?: EvaluationListener, token?: vscode.CancellationToken): Promise<T> {
    const outputToken = `vscode-${++this.tokens}`
    if (listener !== undefined) this.listeners.set(outputToken, listener)
    this.running++
    this.changed.fire()
    try {
      return await this.ask<T>(name, listener === undefined ? argument : { ...argument, outputToken }, token)
    } finally {
      this.running--
      this.finished++
      this.listeners.delete(outputToken)
      this.changed.fire()
    }
  }
}

const serverPath = (): string => vscode.workspace.getConfiguration('consort').get<string>('server.path', '')

/**
 * Shows an error's own message to the person; if no server runs, also the possible actions.
 */
export function complain(error: unknown): void {
  if (error instanceof vscode.CancellationError) return
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof FocusMoved) vscode.window.setStatusBarMessage(`Consort: ${message}`, 8000)
  else if (error instanceof NotRunning) void offerHelp(error.condition)
  else if (error instanceof Refused && saysNoSbcl(message)) void offerSbcl()
  else void tellOfPlace(message, error instanceof Refused ? error.place : undefined).catch(complain)
}
