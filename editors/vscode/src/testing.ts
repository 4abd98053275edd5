// The test explorer: a row for each system of the workspace, and below it what its tests said when they ran.
import * as vscode from 'vscode'
import type { TestOutcome, TestReport } from './lsp_ext.js'
import type { Server } from './server.js'
import { workspaceSystems } from './trees.js'

export class Tests implements vscode.Disposable {
  private controller: vscode.TestController | undefined
  private readonly subscriptions: vscode.Disposable[]

  constructor(private readonly server: Server) {
    this.subscriptions = [server.onChange(() => this.update())]
    this.update()
  }
  dispose(): void {
    this.controller?.dispose()
    for (const subscription of this.subscriptions) subscription.dispose()
  }

  /** There is no explorer where the server runs no tests. */
  private update(): void {
    if (!this.server.can('runTests') || this.controller !== undefined) return
    const controller = vscode.tests.createTestController('consort', 'Common Lisp')
    this.controller = controller
    controller.refreshHandler = () => this.discover(controller)
    controller.createRunProfile('Run', vscode.TestRunProfileKind.Run, (request, token) => this.run(controller, request, token), true)
    void this.discover(controller)
  }

  private async discover(controller: vscode.TestController): Promise<void> {
    const systems = await workspaceSystems()
    controller.items.replace(systems.map(({ name, uri }) => controller.createTestItem(name, name, uri)))
  }

  private async run(controller: vscode.TestController, request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const run = controller.createTestRun(request)
    const asked: vscode.TestItem[] = []
    if (request.include !== undefined) asked.push(...request.include)
    else controller.items.forEach((item) => asked.push(item))
    for (const item of asked.filter((item) => request.exclude?.includes(item) !== true)) {
      if (token.isCancellationRequested) break
      const system = item.parent ?? item
      run.started(item)
      try {
        const what = item.parent === undefined ? { system: system.id } : { system: system.id, test: item.label }
        const report = await this.server.run<TestReport>('runTests', what, undefined, token)
        run.appendOutput(`${report.text}\n`.replace(/\r?\n/g, '\r\n'))
        for (const outcome of report.tests) this.record(controller, run, system, outcome)
        if (item.parent === undefined) {
          if (report.success) run.passed(item)
          else run.failed(item, new vscode.TestMessage(report.text))
        }
      } catch (error) {
        run.errored(item, new vscode.TestMessage(error instanceof Error ? error.message : String(error)))
      }
    }
    run.end()
  }

  private record(controller: vscode.TestController, run: vscode.TestRun, system: vscode.TestItem, outcome: TestOutcome): void {
    const id = `${system.id}/${outcome.suite ?? ''}/${outcome.name}`
    const uri = outcome.file == null ? system.uri : vscode.Uri.file(outcome.file)
    const item = system.children.get(id) ?? controller.createTestItem(id, outcome.name, uri)
    const line = outcome.line == null ? undefined : new vscode.Range(outcome.line - 1, 0, outcome.line - 1, 0)
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
