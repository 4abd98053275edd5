// The test explorer: a row for each system of the workspace, and below it what its tests said when they ran.
import * as vscode from 'vscode'
import { toRange } from './convert.js'
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
        const report = await this.server.run<TestReport>('runTests', what, ({ text }) => run.appendOutput(text.replace(/\r?\n/g, '\r\n')), token)
        if (report.error != null) throw new Error(`${report.error.type}: ${report.error.message}`)
        for (const outcome of report.tests ?? []) this.record(controller, run, system, outcome)
        if (item.parent === undefined) {
          if ((report.failed ?? 0) > 0) run.failed(item, new vscode.TestMessage(`${report.failed} failed`))
          else run.passed(item)
        }
      } catch (error) {
        run.errored(item, new vscode.TestMessage(error instanceof Error ? error.message : String(error)))
      }
    }
    run.end()
  }

  private record(controller: vscode.TestController, run: vscode.TestRun, system: vscode.TestItem, outcome: TestOutcome): void {
    const id = `${system.id}/${outcome.suite ?? ''}/${outcome.name}`
    const uri = outcome.uri == null ? system.uri : vscode.Uri.parse(outcome.uri)
    const item = system.children.get(id) ?? controller.createTestItem(id, outcome.name, uri)
    if (outcome.range != null) item.range = toRange(outcome.range)
    system.children.add(item)
    const message = new vscode.TestMessage(outcome.message ?? outcome.status)
    if (uri !== undefined && outcome.range != null) message.location = new vscode.Location(uri, toRange(outcome.range))
    const duration = outcome.milliseconds ?? undefined
    if (outcome.status === 'passed') run.passed(item, duration)
    else if (outcome.status === 'skipped') run.skipped(item)
    else if (outcome.status === 'failed') run.failed(item, message, duration)
    else run.errored(item, message, duration)
  }
}
