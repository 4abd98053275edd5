// Two requests of which the older one is answered last, what takes another's place meanwhile, and
// requests that come together. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { Approvals } from '../src/approval.js'
import { Debugger } from '../src/debugger.js'
import { Documents } from '../src/documents.js'
import { Inspector } from '../src/inspector.js'
import type { Approval, Decision, LogEntry, Stopped } from '../src/lsp_ext.js'
import { Recordings } from '../src/recordings.js'
import { offerNext } from '../src/replaced.js'
import { Results } from '../src/results.js'
import { Server } from '../src/server.js'
import { goToSymbol } from '../src/source.js'
import { structure } from '../src/structure.js'
import { Tests } from '../src/testing.js'
import { TracedView } from '../src/traced.js'
import { LogTree } from '../src/trees.js'
import { tell } from '../src/views.js'
import { clients } from './fakes/languageclient.js'
import { cursor, open, range } from './fakes/editors.js'
import { answer, asked, fakeServer, settle } from './fakes/server.js'
import { commands, debug, Document, EventEmitter, lists, Position, Range, seen, SourceBreakpoint, TabInputTextDiff, tests, Uri, window, workspace } from './fakes/vscode.js'

const server = fakeServer()
const texts: string[] = []
const documents = {
  open: (name: string) => Promise.resolve(texts.push(name)), set: (name: string) => Uri.from({ scheme: 'consort', path: `/${name}` }),
} as unknown as Documents
const never = { onCancellationRequested: () => undefined } as never

beforeEach(() => {
  asked.questions.length = texts.length = lists.length = 0
  for (const list of Object.values(seen)) list.length = 0
  commands.run = () => undefined
  window.tabGroups.all = []
})

// Documents and the focus

test('of two symbols that are gone to, the one that was asked for last is shown', async () => {
  open('(a)')
  const place = (line: number): object => ({ definitions: [{ location: { uri: `file:///${line}.lisp`, range: range(line, 0, 1) } }] })
  const first = assert.rejects(goToSymbol(server, 'one'), /You have moved on/)
  const second = goToSymbol(server, 'two')
  await answer(1, 'sourceLocation', place(2))
  await answer(0, 'sourceLocation', place(1))
  await Promise.all([first, second])
  assert.deepEqual(seen.shown, ['file:///2.lisp'])
})

test('a description is shown after all when the later one has failed', async () => {
  void tell(server, documents, 'describe', 'one')
  void tell(server, documents, 'disassemble', 'two')
  await answer(1, 'disassemble', { error: 'no such name' })
  await answer(0, 'describe', { name: 'one', text: '' })
  assert.deepEqual([texts, seen.messages], [['describe/one.txt'], ['Consort: no such name']])
})

test('documents are shown in the order in which they were opened', async () => {
  const shown = new Documents()
  const opens: (() => void)[] = []
  const { openTextDocument } = workspace
  workspace.openTextDocument = (uri) => new Promise((resolve) => opens.push(() => resolve(Object.assign(new Document(uri.path, ''), { uri }))))
  const both = [shown.open('one.txt', '1', { language: 'commonlisp' }), shown.open('two.txt', '2', { language: 'commonlisp' })]
  await settle()
  // As far as they are asked for, the later one comes first.
  for (; opens.length > 0; await settle()) opens.pop()?.()
  await Promise.all(both)
  assert.deepEqual(seen.shown, ['consort:///one.txt', 'consort:///two.txt'])
  workspace.openTextDocument = openTextDocument
  shown.dispose()
})

test('of two texts about inspected values, the one that was asked for last is shown', async () => {
  const inspector = new Inspector(server, documents)
  await inspector.open('one', { text: '1', type: null, reference: 1 })
  void inspector.table()
  void inspector.describe()
  await answer(1, 'inspectDescribe', { text: '', error: null })
  await answer(0, 'inspectTable', { columns: [], rows: [], total: 0 })
  assert.deepEqual(texts, ['inspector/description.txt'])
  // In the order of the requests, each is shown.
  void inspector.table()
  await answer(0, 'inspectTable', { columns: [], rows: [], total: 0 })
  assert.deepEqual(texts, ['inspector/description.txt', 'inspector/table.txt'])
  inspector.dispose()
})

test('of two symbols that are described, the one that was asked for last is shown', async () => {
  void tell(server, documents, 'describe', 'one')
  void tell(server, documents, 'disassemble', 'two')
  await answer(1, 'disassemble', { name: 'two', text: '' })
  await answer(0, 'describe', { name: 'one', text: '' })
  assert.deepEqual(texts, ['disassemble/two.txt'])
})

const recorded = (recording: number): object => ({ text: '', recording: { recording, calls: 1, outcome: { values: [String(recording)], error: null }, answer: { rows: [], total: 0 } } })

test('a recording does not take the place of one that was asked for later', async () => {
  open('(a)')
  const recordings = new Recordings(server)
  void recordings.recordForm()
  void recordings.recordForm()
  await answer(1, 'record', recorded(2))
  await answer(0, 'record', recorded(1))
  assert.deepEqual([lists.length, seen.messages], [1, ['Consort: recording 1: ⇒ 1']])
})

test('an answer about a recording does not take the place of a list that is open by then', async () => {
  open('(a)')
  const recordings = new Recordings(server)
  void recordings.recordForm()
  await answer(0, 'record', recorded(1))
  lists[0]?.accept('Calls')
  await settle()
  void recordings.recordForm()
  await answer(1, 'record', recorded(2))
  await answer(0, 'recordingQuery', { answer: { rows: [], total: 0 } })
  assert.equal(lists.length, 2)
})

// Edits

test('a structural edit that is not made moves no cursor', async () => {
  const { editor } = open('(a) (b)')
  editor.edit = () => Promise.resolve(false)
  const done = structure(server, 'slurpForward')
  await answer(0, 'structure', { edits: [{ range: range(0, 2, 3), newText: '' }], selection: range(0, 3, 3) })
  await done
  assert.deepEqual(editor.selection, cursor(0, 1))
})

// Approval

const question = (id: number, more: object = {}): Approval => ({
  id, client: 'agent 1', tool: 'code_replace_function', class: 'modify-running-code', what: 'change f', deadlineSeconds: 60, ...more,
})
/** Asks; the decision is in the object that is returned, once there is one. */
function ask(from: Server, approval: Approval): { decision?: Decision } {
  const got: { decision?: Decision } = {}
  void from.approve(approval, never).then((decision) => (got.decision = decision))
  return got
}

test('a link, a button or a key decides the question that was shown, and not the one in its place', async () => {
  const approvals = new Approvals(server, documents)
  const first = ask(server, question(1))
  // Of a class whose outcome is not waited for once it is allowed.
  const second = ask(server, question(2, { class: 'evaluate' }))
  await settle()
  server.approvalOver(1, 'somebody refused it')
  const approve = commands.registered.get('consort.editor.approve')
  // The code of the second question is not shown yet.
  approve?.()
  approve?.(1)
  approve?.(Uri.from({ scheme: 'consort', path: '/approval/1/code_replace_function.lisp' }))
  await settle()
  assert.deepEqual([first.decision, second.decision], ['deny', undefined])
  approve?.(2)
  await settle()
  assert.equal(second.decision, 'allow')
  approvals.dispose()
})

test('a question that is over is taken back, and it is said who answered', async () => {
  const approvals = new Approvals(server, documents)
  const { withProgress } = window
  // VS Code runs the task once it has opened the notification.
  const opening: (() => Promise<void>)[] = []
  window.withProgress = ((_: unknown, run: (progress: object, token: object) => Promise<void>) => {
    opening.push(() => run({ report: () => undefined }, never))
  }) as never
  ask(server, question(1))
  await settle()
  server.approvalOver(1, 'Neovim allowed it')
  ask(server, question(2))
  await settle()
  // One that the person has not seen is not spoken of.
  ask(server, question(3))
  server.approvalOver(3, 'Neovim refused it')
  const [first, second] = opening.map((open) => open())
  // Closes at once.
  await first
  server.approvalOver(2, 'the agent has left')
  await second
  assert.deepEqual(seen.messages, ['Neovim allowed it', 'the agent has left'].map((why) => `Consort: no answer is needed any more (${why}): change f`))
  // The request is cancelled, and the reason comes afterwards.
  let cancel = (): void => undefined
  void server.approve(question(4), { onCancellationRequested: (run: () => void) => (cancel = run) } as never)
  await settle()
  cancel()
  server.approvalOver(4, 'Neovim allowed it')
  assert.equal(seen.messages.length, 3)
  window.withProgress = withProgress
  approvals.dispose()
})

test('a question whose code cannot be shown is decided by its keys', async () => {
  const broken = { open: () => Promise.reject(new Error('no editor')), set: documents.set.bind(documents) } as unknown as Documents
  const approvals = new Approvals(server, broken)
  const got = ask(server, question(1))
  await settle()
  assert.deepEqual(seen.messages, ['Consort: no editor'])
  commands.registered.get('consort.editor.deny')?.()
  await settle()
  assert.equal(got.decision, 'deny')
  approvals.dispose()
})

test('a decision about a question that is over has no effect, and that is said', async () => {
  const approvals = new Approvals(server, documents)
  ask(server, question(1))
  await settle()
  let choose = (_: unknown): void => undefined
  window.showQuickPick = (items: unknown[]) => new Promise((resolve) => (choose = () => resolve(items[0])))
  const done = (commands.registered.get('consort.editor.approvals')?.() ?? Promise.resolve()) as Promise<void>
  await settle()
  server.approvalOver(1, 'somebody refused it')
  choose(undefined)
  await done
  assert.match(seen.messages.join(), /decided meanwhile/)
  approvals.dispose()
})

test('the code of a question that is decided while it is being opened does not stay', async () => {
  const { document } = open('(defun f ())')
  const approvals = new Approvals(server, documents)
  let opened = (): void => undefined
  commands.run = (name, left, right) => {
    if (name !== 'vscode.diff') return undefined
    return new Promise<void>((resolve) => {
      opened = () => {
        window.tabGroups.all = [{ tabs: [{ input: new TabInputTextDiff(left as Uri, right as Uri) }] }]
        resolve()
      }
    })
  }
  ask(server, question(1, { code: '(defun f () 1)', arguments: { function: 'f' } }))
  await settle()
  const definition = { kind: 'function', location: { uri: document.uri.toString(), range: range(0, 0, 1) }, form: range(0, 0, 12) }
  await answer(0, 'sourceLocation', { definitions: [definition] })
  server.approvalOver(1, 'somebody refused it')
  opened()
  await settle()
  assert.deepEqual(window.tabGroups.all, [{ tabs: [] }])
  approvals.dispose()
})

test('the notes about a call that stand above its code are not shown as a change', async () => {
  const { document } = open('(defun f ())')
  const texts = new Map<string, string>()
  const set = (name: string, text: string): Uri => (texts.set(name.split('/')[0] ?? '', text), Uri.from({ scheme: 'consort', path: `/${name}` }))
  const approvals = new Approvals(server, { ...documents, set } as unknown as Documents)
  ask(server, question(1, { code: ';; Package: CL-USER\n;; With function: f\n(defun f () 1)', arguments: { function: 'f' } }))
  await settle()
  const definition = { kind: 'function', location: { uri: document.uri.toString(), range: range(0, 0, 1) }, form: range(0, 0, 12) }
  await answer(0, 'sourceLocation', { definitions: [definition] })
  await settle()
  assert.equal(texts.get('before'), ';; Package: CL-USER\n;; With function: f\n(defun f ())\n')
  assert.equal(texts.get('approval'), ';; Package: CL-USER\n;; With function: f\n(defun f () 1)\n')
  server.approvalOver(1, 'somebody refused it')
  approvals.dispose()
})

test('questions of a server that has ended are over', async () => {
  let change = (): void => undefined
  const ending = { ...fakeServer(), started: true, onChange: (run: () => void) => ((change = run), { dispose: () => undefined }) } as unknown as Server
  const approvals = new Approvals(ending, documents)
  const got = ask(ending, question(1))
  change()
  await settle()
  assert.equal(got.decision, undefined)
  ;(ending as { started: boolean }).started = false
  change()
  await settle()
  assert.equal(got.decision, 'deny')
  approvals.dispose()
})

test('the outcome of a call is not that of the same tool for another agent or another function', async () => {
  let log = (_: Partial<LogEntry>): void => undefined
  const logging = { ...fakeServer(), onLogEntry: (run: typeof log) => ((log = run), { dispose: () => undefined }) } as unknown as Server
  const done = offerNext(logging, question(1, { arguments: { function: 'f' } }), undefined)
  const entry = { frontend: 'mcp', tool: 'code_replace_function', client: 'agent 1', about: 'f', status: 'ok' } as const
  log({ ...entry, client: 'agent 2' })
  log({ ...entry, about: 'g' })
  await settle()
  assert.deepEqual(seen.messages, [])
  log(entry)
  await done
  assert.match(seen.messages.join(), /F replaced/)
})

test('a change that is not the last any more is not undone by its button', async () => {
  const logs = new EventEmitter<Partial<LogEntry>>()
  const logging = { ...fakeServer(), onLogEntry: logs.event } as unknown as Server
  const entry = { frontend: 'mcp', tool: 'code_replace_function', client: 'agent 1', about: 'f', status: 'ok' } as const
  const other = { ...entry, frontend: 'lsp', tool: 'consort.compileForm', about: null } as const
  const edit = { frontend: 'mcp', tool: 'lisp-edit-form' } as const
  let press = (_: string | undefined): void => undefined
  const show = window.showInformationMessage
  window.showInformationMessage = () => new Promise((resolve) => (press = resolve))
  for (const [since, isUndone] of [
    [[], true],
    [[{ ...other, tool: 'consort.evalForm' }, { ...other, status: 'error' }], true],
    [[{ ...other, ...edit, outcome: 'Dry run, nothing was changed.' }, { ...other, ...edit, outcome: 'Replaced F in a.lisp: line 1.' }], true],
    [[{ ...other, ...edit, outcome: 'Replaced F in a.lisp: line 1.\nReloaded code of a.lisp' }], false],
    [[{ ...other, ...edit, status: 'error', outcome: 'Replaced F, G in a.lisp: lines 1-2.\nReloaded code of a.lisp\nG: no' }], false],
    [[{ ...other, ...edit, outcome: 'Replaced F in a...' }], false],
    [[other], false],
    [[entry], false],
    [[{ ...other, tool: 'consort.undoReload' }], false],
  ] as const) {
    seen.messages.length = seen.commands.length = 0
    const done = offerNext(logging, question(1, { arguments: { function: 'f' } }), undefined)
    logs.fire(other) // before the call
    logs.fire(entry)
    await settle()
    for (const one of since) logs.fire(one)
    press('Undo')
    await done
    assert.deepEqual(seen.commands, isUndone ? ['consort.editor.undoReload'] : [])
    assert.equal(/Not undone: something else/.test(seen.messages.join()), !isUndone)
  }
  window.showInformationMessage = show
})

// The debugger

test('stops that come together begin one session, and another session does not have the breakpoints set', async () => {
  debug.breakpoints = [new SourceBreakpoint()]
  const stops = new EventEmitter<Stopped>()
  const lisp = new Debugger({ ...fakeServer(), onStopped: stops.event } as unknown as Server)
  stops.fire({ stop: 1, thread: 1, reason: '', text: '' })
  stops.fire({ stop: 2, thread: 2, reason: '', text: '' })
  let isReady = false
  const ready = lisp.ready().then(() => (isReady = true))
  await settle()
  assert.equal(seen.sessions.length, 1)
  // The REPL may be in the panel.
  assert.equal((seen.sessions[0] as { internalConsoleOptions?: string }).internalConsoleOptions, 'neverOpen')
  const { createDebugAdapterTracker: track } = debug.tracker as {
    createDebugAdapterTracker(session: object): { onDidSendMessage(message: object): void; onExit(): void }
  }
  const other = track({ id: '1', configuration: {} })
  other.onDidSendMessage({ type: 'response', command: 'configurationDone' })
  other.onExit()
  await settle()
  assert.equal(isReady, false)
  track({ id: '2', configuration: { automatic: true } }).onDidSendMessage({ type: 'response', command: 'configurationDone' })
  await ready
  debug.breakpoints = []
  lisp.dispose()
})

// Lists

test('a search for systems that ends late leaves the tests of a run in the list', async () => {
  const finds: ((found: Uri[]) => void)[] = []
  workspace.findFiles = () => new Promise((resolve) => finds.push(resolve))
  const explorer = new Tests(server, {} as never)
  const discover = (explorer as unknown as { discover(controller: object): Promise<void> }).discover.bind(explorer)
  const { controller } = explorer as unknown as { controller: object }
  const second = discover(controller)
  await settle()
  finds[0]?.([Uri.file('/shop.asd')])
  await settle()
  const run = tests.items.get('shop')
  assert.ok(run)
  finds[1]?.([Uri.file('/shop.asd')])
  await second
  assert.equal(tests.items.get('shop'), run)
  explorer.dispose()
  workspace.findFiles = () => Promise.resolve([])
})

test('a session that was begun for breakpoints ends with the last of them', { timeout: 10_000 }, async () => {
  debug.breakpoints = [new SourceBreakpoint()]
  const lisp = new Debugger(fakeServer())
  void lisp.ready()
  await settle()
  const { createDebugAdapterTracker: track } = debug.tracker as { createDebugAdapterTracker(session: object): { onExit(): void } }
  const session = { id: 'breakpoints', configuration: { automatic: true } }
  const tracker = track(session)
  debug.breakpoints = []
  const stopped = new Promise((resolve) => (debug.stopDebugging = (one) => Promise.resolve(resolve(one))))
  debug.changed.fire({})
  assert.equal(await stopped, session)
  tracker.onExit()
  lisp.dispose()
})

test('the log of another host is followed, which numbers its entries from 1 again', async () => {
  const changes = new EventEmitter<void>()
  const logs = new EventEmitter<object>()
  const following = { ...fakeServer(), condition: { state: 'ready', pid: 1 }, onLogEntry: logs.event, onChange: changes.event } as unknown as Server
  const tree = new LogTree(following)
  changes.fire()
  await settle()
  await answer(0, 'log', { entries: [{ number: 1 }, { number: 2 }] })
  Object.assign(following, { condition: { state: 'starting', what: '' } })
  changes.fire()
  Object.assign(following, { condition: { state: 'ready', pid: 2 } })
  changes.fire()
  await settle()
  await answer(0, 'log', { entries: [{ number: 1 }] })
  logs.fire({ number: 2 })
  assert.deepEqual(tree.getChildren().map(({ number }) => number), [2, 1])
  assert.deepEqual(asked.questions, [])
})

test('values of an image go with it from the inspector', async () => {
  const changes = new EventEmitter<void>()
  const other = { ...fakeServer(), condition: { state: 'ready', pid: 1 }, onChange: changes.event } as unknown as Server
  const inspector = new Inspector(other, documents)
  await inspector.open('one', { text: '1', type: null, reference: 1 })
  changes.fire()
  assert.equal((await inspector.getChildren()).length, 1)
  Object.assign(other, { condition: { state: 'ready', pid: 2 } })
  changes.fire()
  assert.deepEqual(await inspector.getChildren(), [])
  inspector.dispose()
})

test('an entry of the log that is told before the answer stays', async () => {
  const changes = new EventEmitter<void>()
  const logs = new EventEmitter<object>()
  const tree = new LogTree({ ...fakeServer(), onLogEntry: logs.event, onChange: changes.event } as unknown as Server)
  changes.fire()
  await settle()
  logs.fire({ number: 2 })
  logs.fire({ number: 3 })
  await answer(0, 'log', { entries: [{ number: 1 }, { number: 2 }] })
  assert.deepEqual(tree.getChildren().map(({ number }) => number), [3, 2, 1])
})

test('traced calls of an image go with it', async () => {
  const tracing = fakeServer()
  const image = (pid: number): void => void Object.assign(tracing, { condition: { state: 'ready', pid } })
  image(1)
  const traced = new TracedView(tracing)
  const read = (traced as unknown as { read(): Promise<void> }).read.bind(traced)
  const call = (number: number): object => ({ call: number, parent: null, name: 'F', arguments: [], values: [], outcome: 'returned' })
  void read()
  await answer(0, 'tracedCalls', { last: 1, names: ['F'], calls: [call(1)] })
  image(2)
  void read()
  assert.equal(asked.questions[0]?.argument['after'], 0)
  await answer(0, 'tracedCalls', { last: 3, names: ['F'], calls: [call(2), call(3)] })
  assert.deepEqual(traced.getChildren().map((row) => 'call' in row && row.call.call), [2, 3])
  traced.dispose()
})

test('a restart removes the results of before, and not those that have come since', () => {
  const { document } = open('(a)\n(b)')
  const results = new Results()
  const value = (text: string) => ({ status: 'ok', values: [text], error: null, stdout: '', stderr: '', warnings: [], timing: null, omitted: 0, package: '' }) as never
  window.visibleTextEditors = []
  results.show(document.uri as never, new Range(0, 0, 0, 3) as never, value('1'))
  const old = results.present()
  results.show(document.uri as never, new Range(1, 0, 1, 3) as never, value('2'))
  old.clear()
  const { shown } = results as unknown as { shown: { range: Range }[] }
  assert.deepEqual(shown.map(({ range }) => range.start), [new Position(1, 0)])
  results.dispose()
})

test('a value leaves the mark of a later evaluation of its form', () => {
  const { document } = open('(a)')
  const results = new Results()
  const value = (text: string) => ({ status: 'ok', values: [text], error: null, stdout: '', stderr: '', warnings: [], timing: null, omitted: 0, package: '' }) as never
  window.visibleTextEditors = []
  const uri = document.uri as never
  const at = new Range(0, 0, 0, 3) as never
  const text = (): unknown => (results as unknown as { shown: { after: { contentText: string } }[] }).shown.map(({ after }) => after.contentText)
  const first = results.pending(uri, at, () => 'queued')
  const second = results.pending(uri, at, () => 'queued')
  first.end()
  results.show(uri, at, value('1'))
  assert.deepEqual(text(), ['…'])
  second.cancelled()
  assert.deepEqual(text(), ['⇒ 1  · cancelled, not evaluated again'])
  // An evaluation that fails without a result leaves the one that came meanwhile.
  for (const isLate of [true, false]) {
    const third = results.pending(uri, at, () => 'queued')
    const fourth = results.pending(uri, at, () => 'queued')
    third.end()
    if (isLate) results.show(uri, at, value('3'))
    fourth.failed()
    assert.deepEqual(text(), isLate ? ['⇒ 3'] : [])
  }
  results.dispose()
})

test('a cancelled form leaves the value of another one that ends in its line', () => {
  const { document } = open('(a) (b)')
  const results = new Results()
  const value = { status: 'ok', values: ['1'], error: null, stdout: '', stderr: '', warnings: [], timing: null, omitted: 0, package: '' } as never
  window.visibleTextEditors = []
  const uri = document.uri as never
  results.show(uri, new Range(0, 0, 0, 3) as never, value)
  results.pending(uri, new Range(0, 4, 0, 7) as never, () => 'queued').cancelled()
  const now = (results as unknown as { shown: { after: { contentText: string }; range: Range }[] }).shown
  assert.deepEqual(now.map(({ after, range }) => [after.contentText, range.end.character]), [['⇒ 1', 3]])
  results.dispose()
})

test('a form that waits says so, and how long it runs is counted from its beginning', (context) => {
  context.mock.timers.enable({ apis: ['setInterval', 'Date'] })
  const { document } = open('(a)')
  const results = new Results()
  window.visibleTextEditors = []
  const text = (): string | undefined => (results as unknown as { shown: { after: { contentText: string } }[] }).shown[0]?.after.contentText
  let waits = 'waits for the image'
  const pending = results.pending(document.uri as never, new Range(0, 0, 0, 3) as never, () => waits)
  context.mock.timers.tick(1000)
  assert.match(text() ?? '', /^… waits for the image · \S+ \S+ stops$/)
  waits = 'queued'
  context.mock.timers.tick(1000)
  assert.match(text() ?? '', /^… queued · /)
  pending.begun()
  assert.match(text() ?? '', /^… 0 s · /)
  context.mock.timers.tick(3000)
  assert.match(text() ?? '', /^… 3 s · /)
  pending.end()
  assert.equal(text(), undefined)
  results.dispose()
})

// The server

test('of two starts that come together the later one counts, and what the old server tells does not', async () => {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const starting = new Server({} as never, log as never)
  starting.program = () => ({ path: 'consort', how: 'PATH' })
  void starting.start()
  await settle()
  clients[0]?.isStarted()
  await settle()
  assert.equal(starting.started, true)
  const both = [starting.start(), starting.start()]
  await settle()
  // Two at once would announce the same commands.
  assert.equal(clients.length, 1)
  clients[0]?.isStopped()
  await settle()
  assert.equal(clients.length, 2)
  clients[0]?.tell('consort/imageState', { state: 'idle' })
  assert.equal(starting.condition.state, 'starting')
  clients[1]?.isStarted()
  await Promise.all(both)
  assert.equal(starting.started, true)
  clients[1]?.tell('consort/imageState', { state: 'idle' })
  assert.equal(starting.condition.state, 'idle')
})

test('a server is started after the end of one before has failed', async () => {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const starting = new Server({} as never, log as never)
  starting.program = () => ({ path: 'consort', how: 'PATH' })
  clients.length = 0
  void starting.start()
  await settle()
  clients[0]?.isStarted()
  await settle()
  Object.assign(starting, { announced: new Set(['consort.eval']) })
  commands.run = () => Promise.reject(new Error('no window'))
  await assert.rejects(starting.stop(), /no window/)
  commands.run = () => undefined
  void starting.start()
  await settle()
  assert.equal(clients.length, 2)
})
