// The test explorer: a row for each system of the workspace, and below it the last outcomes of its
// tests.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { startDebugging } from './debug_session.js'
import { testText } from './format.js'
import { tellOfTests } from './frozen.js'
import type { TestOutcome, TestReport } from './lsp_ext.js'
import type { Recordings } from './recordings.js'
import { complain, isLisp, type Server } from './server.js'
import { readIn } from './status.js'
import { workspaceSystems, type WorkspaceSystem } from './trees.js'
import { notTested, saveFiles } from './unsaved.js'

const SAVE = 'Save and Test Again'

const runsOnSave = (): boolean => vscode.workspace.getConfiguration('consort').get<boolean>('tests.runOnSave', false)

export class Tests implements vscode.Disposable {
  private controller: vscode.TestController | undefined
  /** The tests' whole names, by the ids of their rows. */
  private readonly names = new Map<string, string>()
  /** The ids of the rows of the tests that did not pass when they ran last. */
  private readonly failed = new Set<string>()
  /** For each system, those whose tests are run as its own. */
  private testedBy = new Map<string, readonly string[]>()
  /** The systems whose tests were run. */
  private readonly ran = new Set<string>()
  /** The number of runs under way. */
  private running = 0
  /** Resolves when the last search for systems has ended. */
  private discovered: Promise<void> = Promise.resolve()
  /** The systems with a file that was saved while tests ran. */
  private readonly changed = new Set<string>()
  private readonly subscriptions: vscode.Disposable[]

  constructor(
    private readonly server: Server,
    private readonly recordings: Recordings,
  ) {
    this.subscriptions = [
      server.onChange(() => this.update()),
      vscode.workspace.onDidSaveTextDocument((document) => {
        if (isLisp(document) && runsOnSave()) void this.saved(document.uri)
      }),
    ]
    this.update()
  }
  get isRunning(): boolean {
    return this.running > 0
  }
  dispose(): void {
    this.controller?.dispose()
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  /** Makes the explorer, once the server is known to run tests. */
  private update(): void {
    if (!this.server.can('runTests') || this.controller !== undefined) return
    const controller = vscode.tests.createTestController('consort', 'Common Lisp')
    this.controller = controller
    controller.refreshHandler = () => this.discover(controller)
    controller.createRunProfile('Run', vscode.TestRunProfileKind.Run, (request, token) => this.runAsked(controller, request, token), true)
    if (this.server.can('record')) controller.createRunProfile('Record', vscode.TestRunProfileKind.Debug, (request, token) => this.recordTests(request, token), true)
    controller.createRunProfile('Debug', vscode.TestRunProfileKind.Debug, (request) => this.debugTests(request))
    void this.discover(controller)
  }

  /** The test of a row, or the first of the selected rows; without one, shows a message. */
  private chosen(request: vscode.TestRunRequest, doing: string): vscode.TestItem | undefined {
    const test = request.include?.find((item) => item.parent !== undefined)
    if (test === undefined) void vscode.window.showInformationMessage(`Consort: one test is ${doing} at a time. Run the tests first, then choose one.`)
    return test
  }
  /** The whole name of a test. */
  private nameOf(test: vscode.TestItem): string {
    return this.names.get(test.id) ?? test.label
  }

  /** Runs the chosen test in the debugger. */
  private async debugTests(request: vscode.TestRunRequest): Promise<void> {
    const test = this.chosen(request, 'debugged')
    if (test === undefined) return
    const name = this.nameOf(test)
    await startDebugging(this.server, { type: 'consort', request: 'launch', name: `Test ${shortName(name)}`, test: name })
  }

  /** Records the chosen test. */
  private async recordTests(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const test = this.chosen(request, 'recorded')
    if (test !== undefined) await this.recordTest(test, token).catch(complain)
  }

  async recordTest(test?: vscode.TestItem, token?: vscode.CancellationToken): Promise<void> {
    const name = test === undefined ? await this.chooseTest() : this.nameOf(test)
    const typed = test === undefined && this.names.size === 0
    if (name !== undefined && name !== '') await this.recordings.recordTest(name, token, typed ? readIn(name) : {})
  }

  /** The whole name of a test that ran, the failed ones first; a typed one if none ran. */
  private async chooseTest(): Promise<string | undefined> {
    const title = 'Record a Test'
    if (this.names.size === 0) return askText({ title, prompt: 'Its name, with its package, such as shop/tests::prices' })
    const ids = [...this.names.keys()].sort((a, b) => Number(this.failed.has(b)) - Number(this.failed.has(a)))
    const items = ids.map((id) => {
      const name = this.names.get(id) ?? id
      return { label: shortName(name), description: name, iconPath: new vscode.ThemeIcon(this.failed.has(id) ? 'error' : 'pass') }
    })
    return (await vscode.window.showQuickPick(items, { title, placeHolder: 'A test that ran', matchOnDescription: true }))?.description
  }

  /** Lists the systems of the workspace, one search after another: the newest counts. */
  private discover(controller: vscode.TestController): Promise<void> {
    const listed = this.discovered.then(async () => {
      const systems = await workspaceSystems()
      // A row that stays keeps its item, to which a run under way adds its tests.
      const itemOf = ({ name, uri, line }: WorkspaceSystem): vscode.TestItem => {
        const known = controller.items.get(name)
        const item = known?.uri?.toString() === uri.toString() ? known : controller.createTestItem(name, name, uri)
        item.range = new vscode.Range(line, 0, line, 0)
        return item
      }
      this.testedBy = new Map(systems.map(({ name, testedBy }) => [name, testedBy]))
      controller.items.replace(systems.map(itemOf))
    })
    this.discovered = listed.catch(() => undefined)
    return listed
  }

  /** Runs a system's tests, and shows them. */
  async runSystem(name: string): Promise<void> {
    const controller = this.controller
    if (controller === undefined) return
    if (controller.items.get(name) === undefined) await this.discover(controller)
    const item = controller.items.get(name)
    if (item === undefined) return
    void vscode.commands.executeCommand('workbench.view.testing.focus')
    // VS Code itself does so for tests that are run from their rows.
    const request = new vscode.TestRunRequest([item])
    if (vscode.workspace.getConfiguration('testing').get<boolean>('saveBeforeTest', true)) await this.saveFor(request)
    await this.runAsked(controller, request, new vscode.CancellationTokenSource().token)
  }

  /** Runs tests for a person, with a message about unsaved changes that were not tested. */
  private async runAsked(controller: vscode.TestController, request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const text = notTested()
    await this.run(controller, request, token)
    if (text !== undefined) void this.offerAgain(text, controller, request).catch(complain)
  }

  private async offerAgain(text: string, controller: vscode.TestController, request: vscode.TestRunRequest): Promise<void> {
    if ((await vscode.window.showWarningMessage(`Consort: ${text}`, SAVE)) !== SAVE) return
    await this.saveFor(request)
    await this.runAsked(controller, request, new vscode.CancellationTokenSource().token)
  }

  /** Saves all files before a run, which then counts as the run after saving. */
  private async saveFor({ include }: vscode.TestRunRequest): Promise<void> {
    this.running++
    await saveFiles().finally(() => this.running--)
    if (include === undefined) this.changed.clear()
    else for (const item of include) this.changed.delete((item.parent ?? item).id)
  }

  /**
   * Called when a file was saved: runs the tests again that ran before, of the systems that are
   * defined in its directory or above. If tests are running, that happens when they have ended.
   */
  private async saved(file: vscode.Uri): Promise<void> {
    const controller = this.controller
    if (controller === undefined) return
    const near: vscode.TestItem[] = []
    controller.items.forEach((item) => {
      if (this.ran.has(item.id) && item.uri !== undefined && file.path.startsWith(item.uri.path.replace(/[^/]*$/, ''))) near.push(item)
    })
    for (const { id } of near) this.changed.add(id)
    if (!this.isRunning) await this.runChanged(controller)
  }

  private async runChanged(controller: vscode.TestController): Promise<void> {
    const systems = [...this.changed].flatMap((id) => controller.items.get(id) ?? [])
    this.changed.clear()
    if (systems.length > 0 && runsOnSave()) await this.run(controller, new vscode.TestRunRequest(systems), new vscode.CancellationTokenSource().token)
  }

  private async run(controller: vscode.TestController, request: vscode.TestRunRequest, asked: vscode.CancellationToken): Promise<void> {
    const run = controller.createTestRun(request)
    this.running++
    // Runs that were not started from a row are stopped by the run's own token.
    const stop = new vscode.CancellationTokenSource()
    const stops = [asked, run.token].map((token) => token.onCancellationRequested(() => stop.cancel()))
    if (asked.isCancellationRequested) stop.cancel()
    try {
      await this.runTests(controller, request, run, stop.token)
    } finally {
      run.end()
      for (const one of stops) one.dispose()
      this.running--
    }
    // A person who stops hanging tests does not want them to run again.
    if (stop.token.isCancellationRequested) this.changed.clear()
    if (!this.isRunning) await this.runChanged(controller)
  }

  private async runTests(
    controller: vscode.TestController,
    request: vscode.TestRunRequest,
    run: vscode.TestRun,
    token: vscode.CancellationToken,
  ): Promise<void> {
    const unsaved = notTested()
    if (unsaved !== undefined) run.appendOutput(`${unsaved}\r\n`)
    const asked: vscode.TestItem[] = []
    if (request.include !== undefined) asked.push(...request.include)
    else controller.items.forEach((item) => asked.push(item))
    const chosen = asked.filter((item) => request.exclude?.includes(item) !== true)
    // No test is run twice in one run.
    const isRunByOthers = ({ id, parent }: vscode.TestItem): boolean => {
      const others = parent === undefined ? (this.testedBy.get(id) ?? []) : []
      return others.length > 0 && others.every((other) => other !== id && chosen.some((one) => one.parent === undefined && one.id === other))
    }
    for (const item of chosen.filter((item) => !isRunByOthers(item))) {
      if (token.isCancellationRequested) break
      const system = item.parent ?? item
      this.ran.add(system.id)
      // Only tests are counted: a system has the state of its tests, and one of its own when there
      // were none to run.
      if (item.parent !== undefined) run.started(item)
      try {
        const what = item.parent === undefined ? { system: system.id } : { system: system.id, test: this.nameOf(item) }
        const report = await this.server.run<TestReport>('runTests', what, undefined, token)
        run.appendOutput(`${testText(report)}\n`.replace(/\r?\n/g, '\r\n'))
        void tellOfTests(this.server, report).catch(complain)
        for (const outcome of report.tests) this.record(controller, run, system, outcome)
        if (item.parent === undefined && report.tests.length === 0) {
          if (report.success) run.passed(item)
          else run.errored(item, new vscode.TestMessage(testText(report)))
        }
      } catch (error) {
        run.errored(item, new vscode.TestMessage(error instanceof Error ? error.message : String(error)))
      }
    }
  }

  private record(controller: vscode.TestController, run: vscode.TestRun, system: vscode.TestItem, outcome: TestOutcome): void {
    const id = `${system.id}/${outcome.suite ?? ''}/${outcome.name}`
    const uri = outcome.file == null ? system.uri : vscode.Uri.file(outcome.file)
    const item = system.children.get(id) ?? controller.createTestItem(id, shortName(outcome.name), uri)
    this.names.set(id, outcome.name)
    if (outcome.status === 'passed' || outcome.status === 'skipped') this.failed.delete(id)
    else this.failed.add(id)
    // Without a place of its own, a test is at its system's definition.
    const line = outcome.line == null ? (outcome.file == null ? system.range : undefined) : new vscode.Range(outcome.line - 1, 0, outcome.line - 1, 0)
    if (line !== undefined) item.range = line
    system.children.add(item)
    const messages = outcome.failures.map(({ message, expected, actual }) => {
      const said = expected != null && actual != null ? vscode.TestMessage.diff(message, expected, actual) : new vscode.TestMessage(message)
      if (uri !== undefined && line !== undefined) said.location = new vscode.Location(uri, line)
      return said
    })
    const duration = outcome.milliseconds ?? undefined
    if (outcome.status === 'passed') run.passed(item, duration)
    else if (outcome.status === 'skipped') run.skipped(item)
    else if (outcome.status === 'failed') run.failed(item, messages, duration)
    else run.errored(item, messages, duration)
  }
}

/** A test's name without its package, as a source would have it. */
const shortName = (name: string): string => name.replace(/^(?:[^\s|"]|\|[^|]*\|)+?::?(?=[^:])/, '').replace(/^[^a-z|]+$/, (upper) => upper.toLowerCase())
