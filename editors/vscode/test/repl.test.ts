// Texts that are sent to the REPL, and what is typed at its prompt. `vscode` is a fake here
// (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { Stopped } from '../src/lsp_ext.js'
import { Repl } from '../src/repl.js'
import type { Server } from '../src/server.js'
import { Screen } from './fakes/screen.js'
import { answer, asked, fakeServer, settle } from './fakes/server.js'
import { EventEmitter, seen, window } from './fakes/vscode.js'

const UP = '\x1b[A', DOWN = '\x1b[B', LEFT = '\x1b[D'
const changed = new EventEmitter<void>()
const stops = new EventEmitter<Stopped>()
/** Begins the evaluation that was submitted last. */
let begin: (() => void) | undefined
const fake = fakeServer()
const run = (name: string, argument: Record<string, unknown>, told?: { begun?: () => void }): Promise<unknown> => {
  begin = told?.begun
  return fake.ask(name as never, argument as never)
}
const server = Object.assign(fake, { onChange: changed.event, onStopped: stops.event, run }) as unknown as Server
const memory = { get: (_: string, otherwise: unknown) => otherwise, update: () => Promise.resolve() } as never
const evaluated = (name = 'CL-USER'): object => ({ values: ['1'], warnings: [], error: null, timing: null, stdout: '', stderr: '', package: name })
const codes = (): unknown[] => asked.questions.map(({ argument }) => argument['code'])

beforeEach(() => {
  asked.questions.length = 0
  seen.messages.length = 0
})

/** An open REPL. `last` is the last line on the screen, with what is typed there. */
function repl(): { repl: Repl; write: (keys: string) => void; last: () => string; all: () => string } {
  const screen = new Screen(200)
  const one = new Repl(server, memory)
  one.show()
  const pty = window.pty as { onDidWrite(take: (text: string) => void): void; open(size: undefined): void; handleInput(keys: string): void }
  pty.onDidWrite((text) => screen.write(text))
  pty.open(undefined)
  const all = (): string => screen.text
  return { repl: one, write: (keys) => pty.handleInput(keys), all, last: () => all().split('\n').at(-1) ?? '' }
}

test('a text that is sent to the REPL is evaluated alone, and what is half typed there is given back', async () => {
  const { repl: one, write, last } = repl()
  write(`(half "${LEFT}`)
  one.send('(sent)\r\n')
  assert.deepEqual(codes(), ['(sent)'])
  assert.doesNotMatch(last(), /half/)
  await answer(0, 'eval', evaluated())
  assert.equal(last(), 'CL-USER> (half "')
  // The cursor is where it was.
  write(`x${LEFT}${LEFT}\x05")\r`)
  assert.deepEqual(codes(), ['(half x"")'])
  one.dispose()
})

test('what is typed comes back after all that was sent, with the keys of meanwhile behind it', async () => {
  const { repl: one, write, last } = repl()
  write('(half')
  one.send('(one)')
  one.send('(two)')
  write(' typed')
  for (const code of ['(one)', '(two)']) {
    assert.deepEqual(codes(), [code])
    await answer(0, 'eval', evaluated())
  }
  assert.equal(last(), 'CL-USER> (half typed')
  one.dispose()
})

test('what is typed comes back when the sent text is interrupted or fails', async () => {
  const { repl: one, write, last } = repl()
  write('(half')
  one.send('(loop)')
  write('\x03')
  await answer(1, 'interrupt', {})
  await answer(0, 'eval', Promise.reject(new Error('interrupted')))
  assert.equal(last(), 'CL-USER> (half')
  one.dispose()
})

test('what is typed at the prompt is no line for the sent code that reads one', async () => {
  const { repl: one, write, last } = repl()
  write('(half')
  one.send('(read-line)')
  const line = one.input({ command: 'consort.eval', prompt: '' } as never, { onCancellationRequested: () => ({ dispose: () => undefined }) } as never)
  await settle()
  write('line\r')
  assert.deepEqual(await line, { text: 'line' })
  await answer(0, 'eval', evaluated())
  assert.equal(last(), 'CL-USER> (half')
  one.dispose()
})

test('an entry of the history that was chosen, and the draft behind it, come back', async () => {
  const { repl: one, write, last } = repl()
  write('(old)\r')
  await answer(0, 'eval', evaluated())
  write(`(draft${UP}`)
  assert.equal(last(), 'CL-USER> (old)')
  one.send('(sent)')
  await answer(0, 'eval', evaluated())
  assert.equal(last(), 'CL-USER> (old)')
  write(DOWN)
  assert.equal(last(), 'CL-USER> (sent)')
  write(DOWN)
  assert.equal(last(), 'CL-USER> (draft')
  one.dispose()
})

test('a blank text that is sent evaluates nothing of what is typed', () => {
  const { repl: one, write, last } = repl()
  write('(typed)')
  one.send(' \n')
  assert.deepEqual(codes(), [])
  assert.equal(last(), 'CL-USER> (typed)')
  one.dispose()
})

test('a text without its end is evaluated as it was sent: nothing is left behind the prompt', async () => {
  const { repl: one, write, last } = repl()
  write('(half')
  one.send('(list 1')
  one.send('(two)')
  assert.deepEqual(codes(), ['(list 1'])
  await answer(0, 'eval', evaluated())
  assert.deepEqual(codes(), ['(two)'])
  await answer(0, 'eval', evaluated())
  assert.equal(last(), 'CL-USER> (half')
  one.dispose()
})

test('after a restart the prompt names the package of the new image, and what is typed stays', async () => {
  const { repl: one, write, last } = repl()
  write('(in-package :shop)\r')
  await answer(0, 'eval', evaluated('SHOP'))
  write('(half')
  assert.equal(last(), 'SHOP> (half')
  server.condition = { state: 'ready', pid: 2, image: 'new', lisp: 'SBCL' }
  changed.fire()
  assert.equal(last(), 'CL-USER> (half')
  one.dispose()
})

test('an interrupt that fails says why', async () => {
  const { repl: one, write, all } = repl()
  write('(loop)\r')
  write('\x03')
  await answer(1, 'interrupt', Promise.reject(new Error('it lacks consort.interrupt')))
  assert.match(all(), /Not interrupted: it lacks consort\.interrupt/)
  await answer(0, 'eval', evaluated())
  one.dispose()
})

test('a stop of a thread that code started is not told as one of the evaluation in the REPL', async () => {
  const { repl: one, write, all } = repl()
  const stopped = (thread: number, text: string): void => stops.fire({ stop: thread, thread, reason: 'error', text })
  write('(serve)\r')
  stopped(4, 'of one that runs before')
  begin?.()
  stopped(1_000_000_007, 'of a thread')
  assert.doesNotMatch(all(), /of |Stopped here/)
  stopped(5, 'of the code')
  assert.match(all(), /of the code\n; Stopped here: /)
  await answer(0, 'eval', evaluated())
  one.dispose()
})

test('the REPL opens in the package of the file, and stays there for what is typed', async () => {
  const { repl: one, write, last } = repl()
  one.show(false, 'SHOP')
  assert.match(String(codes()[0]), /enter-package "SHOP"/)
  write('(half')
  await answer(0, 'eval', { ...evaluated('SHOP'), values: [] })
  assert.equal(last(), 'SHOP> (half')
  // From a file without a package, and from one of the same package, it stays.
  one.show()
  one.show(false, 'SHOP')
  assert.deepEqual(codes(), [])
  one.dispose()
})

test('a text that is sent is evaluated in its package, or is told that this is not loaded', async () => {
  const { repl: one, last, all } = repl()
  one.send('(price 1)', 'SHOP')
  one.send('(price 2)', 'SHOP')
  one.send('(cost)', 'MISSING')
  assert.equal(codes().length, 1)
  await answer(0, 'eval', { ...evaluated('SHOP'), values: [] })
  for (const code of ['(price 1)', '(price 2)']) {
    assert.deepEqual(codes(), [code])
    await answer(0, 'eval', evaluated('SHOP'))
  }
  assert.match(all(), /SHOP> \(price 1\)\n1\nSHOP> \(price 2\)\n1\n/)
  await answer(0, 'eval', { ...evaluated('SHOP'), values: [':MISSING'] })
  assert.match(all(), /; The package MISSING is not loaded: "Consort: Load a System" loads it\./)
  assert.deepEqual(codes(), ['(cost)'])
  await answer(0, 'eval', evaluated('SHOP'))
  assert.equal(last(), 'SHOP>')
  one.dispose()
})

test('a call is prepared with the cursor at its first argument', async () => {
  const { repl: one, write, last } = repl()
  const call = one.call({ uri: 'file:///a.lisp' }, undefined)
  await answer(0, 'callTemplate', { text: '(price item 1)', name: 'price', arguments: ['item', '1'] })
  await call
  write('apple ')
  assert.equal(last(), 'CL-USER> (price apple item 1)')
  one.dispose()
})
