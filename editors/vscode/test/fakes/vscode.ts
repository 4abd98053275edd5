// In the place of the module `vscode`, for tests of what waits for answers: documents that are
// edited by the test, editors, and what a person is shown.

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
  isEqual(other: Position): boolean {
    return this.line === other.line && this.character === other.character
  }
  isAfter(other: Position): boolean {
    return this.line > other.line || (this.line === other.line && this.character > other.character)
  }
}
export class Range {
  readonly start: Position
  readonly end: Position
  constructor(...at: [Position, Position] | [number, number, number, number]) {
    const [start, end] = at.length === 2 ? at : [new Position(at[0], at[1]), new Position(at[2], at[3])]
    this.start = start
    this.end = end
  }
  isEqual(other: Range): boolean {
    return this.start.isEqual(other.start) && this.end.isEqual(other.end)
  }
  get isEmpty(): boolean {
    return this.start.isEqual(this.end)
  }
}
export class Selection extends Range {
  get active(): Position {
    return this.end
  }
}
export class Disposable {
  static from = (...all: { dispose(): unknown }[]): Disposable => new Disposable(() => all.forEach((one) => one.dispose()))
  constructor(readonly dispose: () => void) {}
}
export class EventEmitter<T> {
  private readonly listeners = new Set<(event: T) => unknown>()
  readonly event = (listener: (event: T) => unknown): Disposable => {
    this.listeners.add(listener)
    return new Disposable(() => this.listeners.delete(listener))
  }
  fire = (event: T): void => this.listeners.forEach((listener) => void listener(event))
  dispose(): void {
    this.listeners.clear()
  }
}
function never(): Disposable {
  return new Disposable(() => undefined)
}
export class Uri {
  static parse = (text: string): Uri => new Uri(...(text.split(/:\/*(?=\/)/) as [string, string]))
  static file = (path: string): Uri => new Uri('file', path)
  static from = ({ scheme, path }: { scheme: string; path: string }): Uri => new Uri(scheme, path)
  static joinPath = (uri: Uri, ...parts: string[]): Uri => new Uri(uri.scheme, [uri.path, ...parts].join('/'))
  constructor(
    readonly scheme: string,
    readonly path: string,
  ) {}
  toString = (): string => `${this.scheme}://${this.path}`
  get fsPath(): string {
    return this.path
  }
}
export class CancellationError extends Error {}
export class ThemeColor {}
export class ThemeIcon {}
export class TerminalLink {}
export class TreeItem {}
export class TabInputText {
  constructor(readonly uri: Uri) {}
}
export class TabInputTextDiff {
  constructor(
    readonly original: Uri,
    readonly modified: Uri,
  ) {}
}
export class CodeLens {
  constructor(
    readonly range: Range,
    readonly command: { title: string; command: string; arguments?: unknown[] },
  ) {}
}
export class CancellationTokenSource {
  readonly token = { isCancellationRequested: false, onCancellationRequested: never }
  cancel(): void {
    this.token.isCancellationRequested = true
  }
}
export class MarkdownString {
  value = ''
  appendMarkdown(text: string): this {
    this.value += text
    return this
  }
  appendText = (): this => this
  appendCodeblock = (): this => this
}
export class SourceBreakpoint {
  readonly enabled = true
  readonly location = { uri: Uri.file('/a.lisp') }
}
export const TreeItemCollapsibleState = {}
export const ProgressLocation = {}
export const QuickPickItemKind = {}
export const StatusBarAlignment = {}
export const ViewColumn = { Beside: -2, One: 1 }
export const OverviewRulerLane = {}
export const DecorationRangeBehavior = {}
export const TestRunProfileKind = {}
export const DebugConfigurationProviderTriggerKind = {}
export const CodeActionKind = {}

/** A document that tests edit. */
export class Document {
  version = 1
  isDirty = false
  readonly languageId = 'commonlisp'
  readonly uri: Uri
  constructor(
    path: string,
    private text: string,
  ) {
    this.uri = Uri.file(path)
  }
  save(): Promise<boolean> {
    this.isDirty = false
    return Promise.resolve(true)
  }
  get lineCount(): number {
    return this.text.split('\n').length
  }
  offsetAt({ line, character }: Position): number {
    return this.text.split('\n').slice(0, line).join('\n').length + (line > 0 ? 1 : 0) + character
  }
  positionAt(offset: number): Position {
    const lines = this.text.slice(0, offset).split('\n')
    return new Position(lines.length - 1, (lines.at(-1) ?? '').length)
  }
  getText(range?: Range): string {
    return range === undefined ? this.text : this.text.slice(this.offsetAt(range.start), this.offsetAt(range.end))
  }
  lineAt(line: number): { text: string; range: Range } {
    const text = this.text.split('\n')[line] ?? ''
    return { text, range: new Range(line, 0, line, text.length) }
  }
  validatePosition = (position: Position): Position => position
  /** Puts a text in the place of a range, as a person does. */
  edit(range: Range, text: string): void {
    this.text = this.text.slice(0, this.offsetAt(range.start)) + text + this.text.slice(this.offsetAt(range.end))
    this.version++
    changed.fire({ document: this, contentChanges: [{ range, text }] })
  }
}
export class Editor {
  /** The decorations that were set last. */
  decorations: unknown
  constructor(
    readonly document: Document,
    public selection: Selection,
  ) {}
  setDecorations(_: unknown, decorations: unknown): void {
    this.decorations = decorations
  }
  revealRange(): void {}
  async edit(change: (builder: { insert(at: Position, text: string): void; replace(range: Range, text: string): void }) => void): Promise<boolean> {
    const replace = (range: Range, text: string): void => this.document.edit(range, text)
    change({ replace, insert: (at, text) => replace(new Range(at, at), text) })
    return Promise.resolve(true)
  }
}

export const closed = new EventEmitter<Document>()
const changed = new EventEmitter<{ document: Document; contentChanges: { range: Range; text: string }[] }>()

/** The messages to the person, and the documents and debug sessions that were shown. */
export const seen = { messages: [] as string[], buttons: [] as string[], shown: [] as string[], sessions: [] as object[], commands: [] as string[] }
/** What a person chooses in a list. */
export const choices = {
  next: (_items: unknown[]): unknown => undefined,
  /** The button of the next messages. */
  button: undefined as string | undefined,
}
/** A list with its own controls, which a test accepts a row of. */
export class QuickPick {
  items: { label: string }[] = []
  selectedItems: unknown[] = []
  readonly onDidTriggerItemButton = never
  private readonly accepted = new EventEmitter<void>()
  private readonly hidden = new EventEmitter<void>()
  readonly onDidAccept = this.accepted.event
  readonly onDidHide = this.hidden.event
  show(): void {
    seen.shown.push('a list')
    lists.push(this)
  }
  hide(): void {
    this.hidden.fire()
  }
  dispose(): void {}
  accept(label: string): void {
    this.selectedItems = this.items.filter((one) => one.label === label)
    this.accepted.fire()
  }
}
/** The lists that were shown. */
export const lists: QuickPick[] = []
const say = (message: string, ...buttons: unknown[]): Promise<string | undefined> => {
  seen.messages.push(message)
  seen.buttons.push(...buttons.filter((one) => typeof one === 'string'))
  return Promise.resolve(choices.button)
}

export const workspace = {
  textDocuments: [] as Document[],
  isTrusted: true,
  onDidChangeTextDocument: changed.event,
  onDidCloseTextDocument: closed.event,
  onDidChangeConfiguration: never,
  getConfiguration: () => ({ get: (_: string, otherwise?: unknown) => otherwise, inspect: () => undefined }),
  getWorkspaceFolder: () => undefined,
  openTextDocument: (uri: Uri): Promise<Document | undefined> => Promise.resolve(workspace.textDocuments.find((one) => one.uri.toString() === uri.toString())),
  findFiles: (): Promise<Uri[]> => Promise.resolve([]),
  fs: { readFile: (_: Uri) => Promise.resolve(new TextEncoder().encode('(defsystem "shop")')) },
  onDidSaveTextDocument: never,
  workspaceFolders: undefined,
  asRelativePath: ({ path }: Uri) => path.slice(1),
  registerTextDocumentContentProvider: never,
}
export const window = {
  activeTextEditor: undefined as Editor | undefined,
  visibleTextEditors: [] as Editor[],
  onDidChangeVisibleTextEditors: never,
  onDidCloseTerminal: never,
  /** What the terminal that was made last is connected to. */
  pty: undefined as unknown,
  createTerminal: ({ pty }: { pty: unknown }) => {
    window.pty = pty
    return { show: () => undefined, dispose: () => undefined }
  },
  createTextEditorDecorationType: never,
  tabGroups: {
    all: [] as { tabs: { input: unknown }[] }[],
    close: (tabs: unknown[]) => {
      for (const group of window.tabGroups.all) group.tabs = group.tabs.filter((tab) => !tabs.includes(tab))
      return Promise.resolve(true)
    },
  },
  createStatusBarItem: () => ({ show: () => undefined, hide: () => undefined, dispose: () => undefined }),
  withProgress: <T>(_: unknown, run: (progress: object, token: object) => T): T => run({ report: () => undefined }, { onCancellationRequested: never }),
  createQuickPick: () => new QuickPick(),
  createTreeView: () => ({ visible: false, selection: [], onDidChangeVisibility: never, dispose: () => undefined }),
  setStatusBarMessage: say,
  showInformationMessage: say as (message: string) => Promise<string | undefined>,
  showWarningMessage: say,
  showErrorMessage: say,
  showInputBox: () => Promise.resolve('(f *)'),
  showQuickPick: (items: unknown[]) => Promise.resolve(choices.next(items)),
  showTextDocument: (where: Uri | Document) => {
    seen.shown.push(String(where instanceof Uri ? where : where.uri))
    return Promise.resolve(undefined)
  },
}
export const commands = {
  registered: new Map<string, (...args: unknown[]) => unknown>(),
  registerCommand: (name: string, run: (...args: unknown[]) => unknown) => {
    commands.registered.set(name, run)
    return never()
  },
  /** The effect of a command of VS Code's own, for tests. */
  run: (_name: string, ..._args: unknown[]): unknown => undefined,
  executeCommand: (name: string, ...args: unknown[]) => {
    seen.commands.push(name)
    return Promise.resolve(commands.run(name, ...args))
  },
}
export const languages = { registerCodeLensProvider: never, registerEvaluatableExpressionProvider: never, registerInlineValuesProvider: never, match: () => 1, getDiagnostics: () => [] }
export const debug = {
  breakpoints: [] as unknown[],
  /** The provider of configurations that completes them, for tests. */
  provider: undefined as unknown,
  registerDebugConfigurationProvider: (_: string, provider: object) => {
    if ('resolveDebugConfiguration' in provider) debug.provider = provider
    return never()
  },
  registerDebugAdapterDescriptorFactory: never,
  onDidChangeActiveStackItem: never,
  onDidChangeActiveDebugSession: never,
  /** Fired by tests: a breakpoint was added or removed. */
  changed: new EventEmitter<object>(),
  onDidChangeBreakpoints: (run: () => void): Disposable => debug.changed.event(run),
  stopDebugging: (_: unknown): Promise<void> => Promise.resolve(),
  /** The tracker of sessions, for tests. */
  tracker: undefined as unknown,
  registerDebugAdapterTrackerFactory: (_: string, factory: unknown) => {
    debug.tracker = factory
    return never()
  },
  startDebugging: (_: unknown, configuration: object) => {
    seen.sessions.push(configuration)
    return Promise.resolve(true)
  },
}

export class TestRunRequest {
  constructor(readonly include: TestItem[]) {}
}
export class TestMessage {
  constructor(readonly message: string) {}
}
/** The rows of the test explorer. */
export class TestItems {
  private readonly all = new Map<string, TestItem>()
  get = (id: string): TestItem | undefined => this.all.get(id)
  add = (item: TestItem): void => void this.all.set(item.id, item)
  replace(items: TestItem[]): void {
    this.all.clear()
    items.forEach(this.add)
  }
}
export class TestItem {
  readonly children = new TestItems()
  range: unknown
  constructor(
    readonly id: string,
    readonly label: string,
    readonly uri: Uri | undefined,
  ) {}
}
export const tests = {
  items: new TestItems(),
  /** What the last run said. */
  output: '',
  /** The message of the system whose tests could not be run. */
  message: '',
  createTestController: () => ({
    items: tests.items, createRunProfile: never, dispose: () => undefined, refreshHandler: undefined,
    createTestItem: (id: string, label: string, uri?: Uri) => new TestItem(id, label, uri),
    createTestRun: () => {
      tests.output = ''
      return { token: new CancellationTokenSource().token, appendOutput: (text: string) => (tests.output += text), passed: never, errored: (_: unknown, { message }: TestMessage) => (tests.message = message), end: () => undefined }
    },
  }),
}
