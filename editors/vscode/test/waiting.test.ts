// Keys and texts that come while the one before waits for its answer: of the macro stepper, and of
// the REPL. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { MacroStepper } from '../src/macro_stepper.js'
import { begun } from '../src/macrosteps.js'
import { Repl } from '../src/repl.js'
import { cursor, open, range } from './fakes/editors.js'
import { answer, asked, fakeServer, settle } from './fakes/server.js'
import { closed, Document, Editor, EventEmitter, seen, window, workspace } from './fakes/vscode.js'

const server = fakeServer()

beforeEach(() => {
  asked.questions.length = 0
  for (const list of Object.values(seen)) list.length = 0
})

// The macro stepper

function stepper(text: string): { stepper: MacroStepper; editor: Editor } {
  const { document, editor } = open(text)
  const stepper = new MacroStepper(server)
  const copies = (stepper as unknown as { copies: Map<string, object> }).copies
  copies.set(document.uri.toString(), { original: document, version: 1, selection: editor.selection, steps: begun(text) })
  return { stepper, editor }
}
const calls = { calls: [range(0, 0, 1), range(1, 0, 1), range(2, 0, 1)], error: null }

test('a macro call is not gone to by a person who has moved the cursor', async () => {
  const { stepper: steps, editor } = stepper('(a)\n(b)\n(c)')
  const done = steps.go(true)
  editor.selection = cursor(2, 2)
  await answer(0, 'macroCalls', calls)
  await done
  assert.deepEqual(editor.selection, cursor(2, 2))
  steps.dispose()
})

test('a key of the macro stepper begins where the one before has led', async () => {
  const { stepper: steps, editor } = stepper('(a)\n(b)\n(c)')
  const done = [steps.go(true), steps.go(true), steps.step()]
  await answer(0, 'macroCalls', calls)
  await answer(0, 'macroCalls', calls)
  assert.deepEqual(editor.selection, cursor(2, 0))
  assert.deepEqual(asked.questions.map(({ name, argument }) => [name, argument['position']]), [['macrostep', { line: 2, character: 0 }]])
  await answer(0, 'macrostep', { expansion: null, expanded: false, error: null })
  await Promise.all(done)
  steps.dispose()
})

/** Has `openTextDocument` and `showTextDocument` show copies; returns what is undone at the end. */
function showCopies(steps: MacroStepper): () => void {
  const { openTextDocument } = workspace
  const { showTextDocument } = window
  workspace.openTextDocument = (uri) => {
    const copy = new Document(uri.path, steps.provideTextDocumentContent(uri as never))
    Object.assign(copy, { uri })
    return Promise.resolve(copy)
  }
  window.showTextDocument = (shown) => {
    const editor = new Editor(shown as Document, cursor(0, 0))
    window.activeTextEditor = editor
    return Promise.resolve(editor as never)
  }
  return () => {
    workspace.openTextDocument = openTextDocument
    window.showTextDocument = showTextDocument
  }
}

/** A stepper whose first key has made a copy, with the text `(b)`. */
async function stepped(): Promise<{ steps: MacroStepper; undo: () => void }> {
  open('(a)')
  const steps = new MacroStepper(server)
  const undo = showCopies(steps)
  const first = steps.step()
  await answer(0, 'macrostep', { expansion: '(b)', expanded: true, omitted: 0, error: null, range: range(0, 0, 3) })
  await first
  return { steps, undo }
}

test('a second key in the text goes to the copy that the first one makes', async () => {
  const { editor } = open('(a)')
  const steps = new MacroStepper(server)
  const undo = showCopies(steps)
  const done = [steps.step(), steps.step()]
  // A carriage return alone ends a line, as in a document.
  await answer(0, 'macrostep', { expansion: '(b\r "c")', expanded: true, omitted: 0, error: null, range: range(0, 0, 3) })
  await settle()
  assert.notEqual(window.activeTextEditor, editor)
  assert.deepEqual(asked.questions.map(({ name, argument }) => [name, argument['text']]), [['macrostep', '(b\n "c")']])
  await answer(0, 'macrostep', { expansion: null, expanded: false, error: null })
  await Promise.all(done)
  undo()
  steps.dispose()
})

test('a key of a stepper that was quit makes no other copy', async () => {
  const { steps, undo } = await stepped()
  const done = [steps.step(), steps.step()]
  await steps.quit()
  await answer(0, 'macrostep', { expansion: '(c)', expanded: true, omitted: 0, error: null, range: range(0, 0, 3) })
  await Promise.all(done)
  assert.deepEqual(asked.questions, [])
  undo()
  steps.dispose()
})

test('a key in the text waits for none of a copy whose tab was closed', async () => {
  const { steps, undo } = await stepped()
  void steps.step() // without an answer
  const copy = window.activeTextEditor?.document
  window.activeTextEditor = window.visibleTextEditors[0]
  if (copy !== undefined) closed.fire(copy)
  void steps.step()
  assert.deepEqual(asked.questions.map(({ argument }) => argument['text']), ['(b)', '(a)'])
  undo()
  steps.dispose()
})

test('an expansion that does not end keeps no key of another text waiting, and a key of before is told of', async () => {
  open('(a)')
  const steps = new MacroStepper(server)
  void steps.step()
  const waiting = steps.step()
  open('(b)', '/b.lisp')
  void steps.step()
  assert.deepEqual(asked.questions.map(({ argument }) => argument['text']), ['(a)', '(b)'])
  await answer(0, 'macrostep', { expansion: null, expanded: false, error: null })
  await waiting
  assert.deepEqual(seen.messages, ['No macro is called here', 'Consort: You have moved on since you asked. Ask again for the answer.'])
  steps.dispose()
})

// The REPL

/** The terminal of a REPL, and what it has written. */
function repl(of = server): { repl: Repl; write: (keys: string) => void; written: () => string } {
  let written = ''
  const repl = new Repl(of, { get: (_: string, otherwise: unknown) => otherwise, update: () => Promise.resolve() } as never)
  repl.show()
  const pty = window.pty as { onDidWrite(take: (text: string) => void): void; open(size: undefined): void; handleInput(keys: string): void }
  pty.onDidWrite((text) => (written += text))
  // Sent before the terminal is there.
  repl.send('(one)')
  repl.send('(two)')
  pty.open(undefined)
  return { repl, write: (keys) => pty.handleInput(keys), written: () => written }
}
const evaluated = { values: ['1'], warnings: [], error: null, timing: null, stdout: '', stderr: '', package: 'CL-USER' }

test('a text that is sent to the REPL while it evaluates is evaluated afterwards', async () => {
  const { repl: one } = repl()
  const codes = (): unknown[] => asked.questions.map(({ argument }) => argument['code'])
  assert.deepEqual(codes(), ['(one)'])
  one.send('(three)')
  for (const code of ['(one)', '(two)', '(three)']) {
    assert.deepEqual(codes(), [code])
    await answer(0, 'eval', evaluated)
  }
  assert.deepEqual(codes(), [])
  one.dispose()
})

test('an interrupt ends what was sent to the REPL too, and says so', async () => {
  const { repl: one, write, written } = repl()
  write('\x03')
  assert.match(written(), /The input that was sent meanwhile is not evaluated/)
  await answer(1, 'interrupt', {})
  await answer(0, 'eval', evaluated)
  assert.deepEqual(asked.questions, [])
  one.dispose()
})

test('the REPL says that its evaluation waits at an error, and how it goes on', async () => {
  const stops = new EventEmitter<object>()
  let begun = (): void => undefined
  const run = (_: string, __: object, listener?: { begun(): void }): Promise<never> => {
    begun = () => listener?.begun()
    return new Promise(() => undefined)
  }
  const { repl: one, written } = repl({ ...server, run, onStopped: stops.event } as never)
  // The evaluation of a file that was before it.
  stops.fire({ stop: 1, thread: 1, reason: 'error', text: 'ANOTHER' })
  begun()
  stops.fire({ stop: 2, thread: 1, reason: 'error', text: 'UNBOUND-VARIABLE: The variable Y is unbound.' })
  assert.match(written(), /UNBOUND-VARIABLE: The variable Y is unbound\.[^]*chooses a restart, Ctrl\+C ends/)
  assert.doesNotMatch(written(), /ANOTHER/)
  one.dispose()
})

test('a text that is sent to the REPL while code reads a line is no such line', async () => {
  const { repl: one, write } = repl()
  const line = one.input({ command: 'consort.eval', prompt: '' } as never, { onCancellationRequested: () => ({ dispose: () => undefined }) } as never)
  await settle()
  one.send('(three)')
  write('typed\r')
  assert.deepEqual(await line, { text: 'typed' })
  one.dispose()
})
