// Answers that come late, or in another order than that of the questions, with a server that
// answers when it is told to. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { Approvals } from '../src/approval.js'
import { compileAndLoad } from '../src/compiling.js'
import { Debugger } from '../src/debugger.js'
import { DifferenceMarks } from '../src/differences.js'
import type { Documents } from '../src/documents.js'
import { chosenText, Evaluator, placeHere } from '../src/evaluate.js'
import { Inspector } from '../src/inspector.js'
import { MacroStepper } from '../src/macro_stepper.js'
import { moveDefinition } from '../src/moving.js'
import { Recordings } from '../src/recordings.js'
import type { Results } from '../src/results.js'
import { complain, Refused, Server as RealServer, type Server } from '../src/server.js'
import { definitionPlace, goToSymbol } from '../src/source.js'
import { deleteStrictly, structure } from '../src/structure.js'
import { TracedView } from '../src/traced.js'
import { undefine } from '../src/undefine.js'
import { Expansions } from '../src/views.js'
import { cursor, open, range } from './fakes/editors.js'
import { State } from './fakes/languageclient.js'
import { answer, asked, fakeServer, settle } from './fakes/server.js'
import { choices, debug, Position, Range, seen, Selection, SourceBreakpoint, window, workspace } from './fakes/vscode.js'

const server = fakeServer()
/** The documents that are shown: the last text of each name. */
const texts = new Map<string, string>()
const documents = { open: (name: string, text: string) => texts.set(name, text), set: () => ({}) } as unknown as Documents

const above = new Range(0, 0, 0, 0)
const value = (text: string, at?: object): object => ({ status: 'ok', values: [text], error: null, range: at })

beforeEach(() => {
  asked.questions.length = 0
  asked.ready = Promise.resolve()
  for (const list of Object.values(seen)) list.length = 0
  texts.clear()
})

// Evaluation

const shown: [unknown, unknown][] = []
const results = { pending: () => ({ end: () => undefined, failed: () => undefined }), show: (_: unknown, at: unknown, result: { values: string[] }) => shown.push([at, result.values[0]]) } as unknown as Results
const evaluator = (): Evaluator => new Evaluator(server, results, { append: () => undefined } as never)

test('a comment with the value is written behind the form, wherever that is by then', async () => {
  const { document, editor } = open('(a)\n(b)')
  editor.selection = cursor(0, 3)
  const done = evaluator().evaluateToComment()
  await settle()
  document.edit(above, '(new)\n')
  await answer(0, 'evalForm', value('42', range(0, 0, 3)))
  await done
  assert.equal(document.getText(), '(new)\n(a) ;=> 42\n(b)')
})

test('a comment is not written into a form that was edited', async () => {
  const { document, editor } = open('(a)\n(b)')
  editor.selection = cursor(0, 3)
  const done = evaluator().evaluateToComment()
  await settle()
  document.edit(new Range(0, 1, 0, 2), 'c')
  await answer(0, 'evalForm', value('42', range(0, 0, 3)))
  await done
  assert.equal(document.getText(), '(c)\n(b)')
  assert.match(seen.messages[0] ?? '', /^Consort: 42\. It was not written/)
})

test('a comment that cannot be written is told of, and so is a text without a form', async () => {
  const { editor } = open('(a)')
  editor.edit = () => Promise.resolve(false)
  const done = evaluator().evaluateToComment()
  await settle()
  await answer(0, 'evalForm', value('42', range(0, 0, 3)))
  await done
  assert.deepEqual(seen.messages, ['Consort: 42. It was not written: the file cannot be edited.'])
  seen.messages.length = 0
  open('')
  await evaluator().evaluateToComment()
  await new Expansions(server, documents).expand('one')
  assert.equal(chosenText(() => 'top-level'), undefined)
  assert.deepEqual(seen.messages, Array(3).fill('Consort: there is no form here.'))
  seen.messages.length = 0
  window.activeTextEditor = undefined
  assert.equal(placeHere(), undefined)
  assert.deepEqual(seen.messages, ['Consort: open a Common Lisp file first.'])
  assert.deepEqual(asked.questions, [])
})

test('the value of a file is at its last form, not at one that is never read', async () => {
  open('(a)\n(b)\n\n#+(or)\n(c)\n')
  const done = evaluator().evaluate('buffer')
  await settle()
  await answer(0, 'evalBuffer', value('B'))
  await done
  assert.deepEqual(shown.pop(), [new Range(1, 0, 1, 3), 'B'])
})

test('an evaluation that a person has interrupted is told as no error, also when its text has changed', async () => {
  const { document } = open('(a)')
  const done = evaluator().evaluate('top-level')
  await settle()
  document.edit(above, '(new)\n')
  await answer(0, 'evalForm', { ...value('', undefined), status: 'interrupted', error: { type: 'INTERRUPTED', message: 'Stopped' } })
  await done
  assert.deepEqual(seen.messages, [])
})

test('nothing is evaluated at a place of a text that is another when the server is there', async () => {
  const { document } = open('(a)')
  let start = (): void => undefined
  asked.ready = new Promise((resolve) => (start = resolve))
  const done = evaluator().evaluate('form')
  document.edit(above, '(new)\n')
  start()
  await done
  assert.deepEqual(asked.questions, [])
  assert.deepEqual(seen.messages, ['Consort: The text has changed meanwhile: nothing was evaluated.'])
})

// Forms that differ

test('what differs is not loaded from the places of another text', async () => {
  const { document } = open('(a)\n(b)')
  const marks = new DifferenceMarks(server, evaluator(), { path: '/' } as never)
  const done = marks.load(document as never)
  document.edit(above, '(new)\n')
  await answer(0, 'differences', { version: 1, forms: [{ range: range(0, 0, 3), state: 'new' }] })
  await done
  assert.deepEqual(asked.questions, [])
  assert.match(seen.messages[0] ?? '', /0 forms evaluated/)
  marks.dispose()
})

test('marks are those of the newest image', async () => {
  const { editor } = open('(a)')
  const marks = new DifferenceMarks(server, evaluator(), { path: '/' } as never)
  const mark = (marks as unknown as { mark(): Promise<void> }).mark.bind(marks)
  void mark()
  void mark()
  await answer(1, 'differences', { version: 1, forms: [] })
  await answer(0, 'differences', { version: 1, forms: [{ range: range(0, 0, 3), state: 'new' }] })
  assert.deepEqual(editor.decorations, [])
  marks.dispose()
})

// Expansions

const expansion = (text: string): object => ({ expansion: text, expanded: true, error: null, range: range(0, 0, 3) })
const expanded = (): string => (texts.get('expansion/macroexpansion.lisp') ?? '').trimEnd()

test('the expansion that was asked for last is shown, and goes into the text', async () => {
  const { editor } = open('(a)\n(b)')
  const expansions = new Expansions(server, documents)
  void expansions.expand('one')
  editor.selection = cursor(1, 1)
  void expansions.expand('one')
  await answer(1, 'macroexpand', { ...expansion('(of b)'), range: range(1, 0, 3) })
  await answer(0, 'macroexpand', expansion('(of a)'))
  assert.equal(expanded(), '(of b)')
  void expansions.inPlace()
  await settle()
  assert.deepEqual([asked.questions[0]?.argument['position'], asked.questions[0]?.argument['inPlace']], [{ line: 1, character: 1 }, true])
})

test('an expansion that was gone back from is not shown, and the way to the shown one is its own', async () => {
  open('(a)')
  const expansions = new Expansions(server, documents)
  void expansions.expand('one')
  await answer(0, 'macroexpand', expansion('(one)'))
  void expansions.further()
  await settle()
  await answer(0, 'macroexpand', expansion('(two)'))
  void expansions.further()
  await settle()
  await expansions.back()
  await answer(0, 'macroexpand', expansion('(three)'))
  assert.equal(expanded(), '(one)')
  void expansions.inPlace()
  await settle()
  assert.deepEqual(asked.questions[0]?.argument['steps'], [])
})

test('the form of an expansion is that of the text that was expanded', async () => {
  const { document } = open('(a)\n(b)')
  const expansions = new Expansions(server, documents)
  void expansions.expand('one')
  document.edit(above, '(n)\n')
  await answer(0, 'macroexpand', expansion('(one)'))
  assert.equal(expanded(), '')
  await expansions.inPlace()
  assert.deepEqual(asked.questions, [])
})

// The debugger

test('an expansion that is not put in the place of its form is told of', async () => {
  const { editor } = open('(m)')
  editor.selection = cursor(0, 1)
  const expansions = new Expansions(server, documents)
  void expansions.expand('one')
  await answer(0, 'macroexpand', { expansion: '(x)', expanded: true, range: range(0, 0, 3) })
  for (const [applied, told] of [[true, []], [false, [/^Consort: The form was not replaced by its expansion\./]]] as const) {
    void expansions.inPlace()
    await settle()
    await answer(0, 'macroexpand', { expansion: '(x)', expanded: true, range: range(0, 0, 3), applied })
    assert.equal(seen.messages.length, told.length)
    told.forEach((one, at) => assert.match(seen.messages[at] ?? '', one))
  }
  // The file is no longer there.
  seen.messages.length = 0
  const { openTextDocument } = workspace
  workspace.openTextDocument = () => Promise.reject(new Error('cannot open a.lisp'))
  await expansions.inPlace()
  workspace.openTextDocument = openTextDocument
  assert.deepEqual(seen.messages, ['Consort: cannot open a.lisp'])
})

test('evaluations that begin together wait for the same debug session', async () => {
  debug.breakpoints = [new SourceBreakpoint()]
  const lisp = new Debugger(server)
  let ends = 0
  const first = lisp.ready().then(() => ends++)
  const second = lisp.ready().then(() => ends++)
  await settle()
  assert.equal(seen.sessions.length, 1)
  const { createDebugAdapterTracker: track } = debug.tracker as { createDebugAdapterTracker(session: object): { onDidSendMessage(message: object): void } }
  const tracker = track({ id: '1', configuration: { automatic: true } })
  // The session is there, and has not set the breakpoints.
  const third = lisp.ready().then(() => ends++)
  await settle()
  assert.equal(ends, 0)
  tracker.onDidSendMessage({ type: 'response', command: 'configurationDone' })
  await Promise.all([first, second, third])
  debug.breakpoints = []
})

// Views

test('a value that was evaluated is not gone to when another is inspected by then', async () => {
  open('(a)')
  const inspector = new Inspector(server, documents)
  const inspected = (text: string): { text: string; type: null; reference: number } => ({ text, type: null, reference: 1 })
  await inspector.open('one', inspected('1'))
  const done = inspector.evaluate()
  await settle()
  await inspector.open('two', inspected('2'))
  await answer(0, 'inspectEval', { status: 'ok', error: null, values: [inspected('3')] })
  await done
  assert.deepEqual((await inspector.getChildren()).map(({ name }) => name), ['two'])
  assert.deepEqual(seen.messages, ['⇒ 3'])
})

test('the value that was asked for last is inspected, also when the one before comes after it', async () => {
  const { editor } = open('(f)')
  editor.selection = new Selection(0, 0, 0, 3)
  const inspector = new Inspector(server, documents)
  const result = (text: string): object => ({ status: 'ok', error: null, values: [text], references: [1] })
  const both = [inspector.ask(), inspector.ask()]
  await settle()
  await answer(1, 'eval', result('SECOND'))
  await answer(0, 'eval', result('FIRST'))
  await Promise.all(both)
  assert.deepEqual((await inspector.getChildren()).map((one) => one.value.text), ['SECOND'])
  await inspector.back()
  assert.deepEqual((await inspector.getChildren()).map((one) => one.value.text), ['FIRST'])
})

test('a text that does not compile is loaded anyway if it is as it was', async () => {
  const { document } = open('(let ((x 1 2)) x)')
  const uri = document.uri.toString()
  const refused = (): Promise<never> => Promise.reject(new Refused('malformed', 'COMPILATION_ERROR'))
  const requests: object[] = []
  const compiler = (answers: (() => Promise<unknown>)[]): Server =>
    ({ ...fakeServer(), run: (_: string, what: object) => (requests.push(what), answers.shift()?.()) }) as unknown as Server
  choices.button = 'Load Anyway'
  const report = { what: 'code' }
  assert.equal(await compileAndLoad(compiler([refused, () => Promise.resolve(report)]), 'compileFile', { uri }), report)
  assert.deepEqual(requests, [{ uri }, { uri, anyway: true }])
  choices.button = undefined
  assert.equal(await compileAndLoad(compiler([refused]), 'compileFile', { uri }), undefined)
})

test('loading anyway is offered where the text can be read, by a command that does it', async () => {
  const { document } = open('(f)')
  const uri = document.uri.toString()
  const offered = async (ask: Parameters<typeof compileAndLoad>[1], what: object, unreadable?: boolean): Promise<string[]> => {
    seen.buttons.length = 0
    const refusing = new RealServer({} as never, {} as never)
    const data = { type: 'COMPILATION_ERROR', message: 'Package NO does not exist', unreadable }
    const client = { state: State.Running, sendRequest: () => Promise.reject(Object.assign(new Error('Compilation failed'), { data })) }
    Object.assign(refusing, { client, announced: new Set([`consort.${ask}`]) })
    assert.equal(await compileAndLoad(refusing, ask, what), undefined)
    return [...seen.buttons]
  }
  const first = { uri, position: { line: 0, character: 1 } }
  assert.deepEqual(await offered('compileForm', first), ['Load Anyway'])
  assert.deepEqual(await offered('compileForm', first, true), [])
  assert.deepEqual(await offered('compileFile', { uri }), ['Load Anyway'])
  assert.deepEqual(await offered('compileFile', { uri }, true), [])
  assert.deepEqual(await offered('reloadSystem', { system: 'shop' }), [])
})

test('the error of a command has its reason, and a button that goes to its place', async () => {
  const { document } = open('(f)\n(\u{1d400} x)', '/shop.lisp')
  const refusing = new RealServer({} as never, {} as never)
  const data = { type: 'COMPILATION_ERROR', message: 'Undefined variable: X', location: { file: '/shop.lisp', line: 2, column: 4 } }
  const client = { state: State.Running, sendRequest: () => Promise.reject(Object.assign(new Error('Compilation failed'), { data })) }
  Object.assign(refusing, { client, announced: new Set(['consort.compileFile', 'consort.recompileCallers']) })
  const text = 'Consort: Compilation failed: Undefined variable: X (shop.lisp:2)'
  const { showTextDocument } = window
  let selection: unknown
  window.showTextDocument = ((_: unknown, options: { selection: unknown }) => (selection = options.selection)) as never
  choices.button = 'Go to It'
  assert.equal(await compileAndLoad(refusing, 'compileFile', { uri: document.uri.toString() }), undefined)
  const at = new Position(1, 4)
  assert.deepEqual([seen.messages, seen.buttons, selection], [[text], ['Go to It', 'Load Anyway'], new Range(at, at)])
  // Also where the command is another.
  seen.messages.length = seen.buttons.length = 0
  complain(await refusing.ask('recompileCallers', {}).catch((error: unknown) => error))
  assert.deepEqual([seen.messages, seen.buttons], [[text], ['Go to It']])
  await settle()
  choices.button = undefined
  window.showTextDocument = showTextDocument
})

test('traced calls that were forgotten do not come back', async () => {
  const traced = new TracedView(server)
  const read = (traced as unknown as { read(): Promise<void> }).read.bind(traced)
  void read()
  void traced.clear()
  await answer(1, 'tracedCalls', {})
  await answer(0, 'tracedCalls', { last: 1, names: ['F'], calls: [{ call: 1, parent: null, name: 'F', arguments: [], values: [], outcome: 'returned' }] })
  assert.deepEqual(traced.getChildren(), [])
  traced.dispose()
})

// Edits

test('a key of one editor deletes nothing in another', async () => {
  const { editor } = open('"a"')
  void deleteStrictly(server, 'deleteForward')
  const second = deleteStrictly(server, 'deleteForward')
  const other = open('"b"', '/b.lisp')
  other.editor.selection = editor.selection
  await settle()
  for (const { answer } of asked.questions.splice(0)) answer({ edits: [], selection: null })
  await second
  assert.deepEqual(asked.questions, [])
  assert.deepEqual(seen.commands, [])
})

test('a structural edit does not move a cursor that was moved meanwhile', async () => {
  const { document, editor } = open('(a) (b)')
  const done = structure(server, 'moveForward')
  editor.selection = cursor(0, 6)
  await answer(0, 'structure', { edits: [], selection: range(0, 3, 3) })
  await done
  assert.deepEqual(editor.selection, cursor(0, 6))
  assert.equal(document.version, 1)
})

test('a definition that would be replaced is that of the text as it is', async () => {
  const { document } = open('(defun f ())')
  const place = definitionPlace(server, 'f')
  document.edit(above, '; new\n')
  const definition = (line: number): object => ({ definitions: [{ kind: 'function', location: { uri: 'file:///a.lisp', range: range(line, 0, 1) }, form: range(line, 0, 12) }] })
  await answer(0, 'sourceLocation', definition(0))
  await answer(0, 'sourceLocation', definition(1))
  assert.equal((await place)?.text, '(defun f ())')
})

test('a definition is not moved out of a text that has changed', async () => {
  const { document } = open('(defun f ())')
  choices.next = (items) => {
    document.edit(above, '(defun g ())\n')
    return items[0]
  }
  const done = moveDefinition(server, document as never, { uri: 'file:///a.lisp', position: new Position(0, 1) })
  const refused = assert.rejects(done, /the text has changed meanwhile/)
  await answer(0, 'moveDestinations', { name: 'F', files: [{ path: 'b.lisp', uri: 'file:///b.lisp' }] })
  await refused
  assert.deepEqual(asked.questions, [])
})

// The focus

test('a person who has gone on is asked nothing, and taken nowhere', async () => {
  const location = { uri: 'file:///b.lisp', range: range(0, 0, 1) }
  for (const [begin, what] of [
    [() => undefine(server, {}), { name: 'F', parts: [] }],
    [() => goToSymbol(server, 'f'), { definitions: [{ location }] }],
  ] as const) {
    const { document } = open('(a)')
    let wasAsked = false
    choices.next = () => void (wasAsked = true)
    const refused = assert.rejects(begin(), /You have moved on/)
    document.edit(above, ' ')
    const [question] = asked.questions.splice(0, 1)
    question?.answer(what)
    await refused
    assert.deepEqual([wasAsked, seen.shown], [false, []])
  }
})

test('a recording waits for a person who has gone on', async () => {
  const { document } = open('(a)')
  const done = new Recordings(server).recordForm()
  document.edit(above, ' ')
  const recording = { recording: 1, calls: 1, outcome: { values: ['42'], error: null }, answer: { rows: [], total: 0 } }
  await answer(0, 'record', { text: '', recording })
  await done
  assert.deepEqual([seen.shown, seen.messages], [[], ['Consort: recording 1: ⇒ 42']])
})

test('macro steps do not begin in a text that was edited', async () => {
  const { document } = open('(a)')
  const stepper = new MacroStepper(server)
  const done = stepper.step()
  document.edit(above, ' ')
  await answer(0, 'macrostep', { ...expansion('(b)'), omitted: 0 })
  await done
  assert.deepEqual([seen.shown, seen.messages], [[], ['Consort: You have moved on since you asked. Ask again for the answer.']])
  stepper.dispose()
})

test('a question that was decided meanwhile is not shown', async () => {
  const { document } = open('(defun f ())')
  const approvals = new Approvals(server, documents)
  const approval = { id: 1, client: 'agent', tool: 'redefine', what: 'change f', code: '(defun f () 1)', arguments: { function: 'f' }, deadlineSeconds: 60 }
  void server.approve(approval as never, { onCancellationRequested: () => undefined } as never)
  await settle()
  server.approvalOver(1, 'somebody refused it')
  const definition = { kind: 'function', location: { uri: document.uri.toString(), range: range(0, 0, 1) }, form: range(0, 0, 12) }
  await answer(0, 'sourceLocation', { definitions: [definition] })
  assert.equal(seen.commands.includes('vscode.diff'), false)
  approvals.dispose()
})
