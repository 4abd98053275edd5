// "Undo the Last Reload": the reload that the person was told of last, and a question when there is
// a newer one. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { LogEntry } from '../src/lsp_ext.js'
import type { Server } from '../src/server.js'
import { runReload, tellReload, undoReload } from '../src/undo.js'
import { reportText } from '../src/format.js'
import { answer, asked, fakeServer, settle } from './fakes/server.js'
import { choices, seen } from './fakes/vscode.js'

let server: Server
let log: LogEntry[]
beforeEach(() => {
  server = fakeServer()
  server.condition = { state: 'ready', image: '1', pid: 1, lisp: 'SBCL' }
  log = []
  asked.questions.length = 0
  seen.messages.length = 0
  choices.button = undefined
})

function entry(tool: string, more: Partial<LogEntry> = {}): LogEntry {
  const frontend = tool.startsWith('consort.') ? 'lsp' : 'mcp'
  const one = { number: log.length + 1, time: new Date().toISOString(), client: 'agent 1', frontend, tool, code: null, status: 'ok' as const, outcome: null, ms: 1, ...more }
  log.push(one)
  return one
}
const report = (what: string, redefined = [`function ${what}`]): object => ({ what, redefined, new: [], gone: [], files: [], stale: [], layouts: [], not_undone: [], warnings: [], output: '', undoable: 1 })
/** A reload of this editor, which the person is told of, in a millisecond of its own. */
async function compiled(what: string, redefined?: string[]): Promise<void> {
  for (const before = Date.now(); Date.now() === before; );
  const done = runReload(server, 'compileForm', {})
  entry('consort.compileForm', { client: 'VS Code' })
  await answer(0, 'compileForm', report(what, redefined))
  await done
}
/** Asks for an undo, up to its question or its request. */
async function undo(): Promise<{ end: Promise<unknown> }> {
  const end = undoReload(server).catch((error: unknown) => (error as Error).message)
  await settle()
  await answer(0, 'log', { entries: [...log], last: log.length })
  return { end }
}
async function undone(what: string): Promise<void> {
  entry('consort.undoReload', { client: 'VS Code' })
  await answer(0, 'undoReload', report(what))
}

test('the own reload that is the newest is undone; once more, the one before', async () => {
  await compiled('F')
  await compiled('G')
  await compiled('H', [])
  entry('code_compile_string', { status: 'error' })
  for (const what of ['G', 'F']) {
    const { end } = await undo()
    await undone(what)
    assert.equal(((await end) as { what: string }).what, what)
  }
  assert.deepEqual(seen.messages, [])
  // Nothing is left: the server says so.
  void undo()
  await settle()
  assert.equal(asked.questions[0]?.name, 'undoReload')
})

test('what an agent has reloaded since is undone only after a question that names it', async () => {
  await compiled('F')
  entry('code_replace_function', { about: 'g' })
  const first = await undo()
  assert.equal(await first.end, undefined)
  assert.match(seen.messages.join(), /newest reload is Code replace function g \(agent 1, .*\); it is newer than F \(function F\)\./)
  assert.deepEqual(asked.questions, [])
  choices.button = 'Undo It'
  const second = await undo()
  await answer(0, 'log', { entries: [], last: 2 })
  await undone('G')
  assert.equal(((await second.end) as { what: string }).what, 'G')
  const third = await undo()
  await undone('F')
  await third.end
})

test('nothing is undone when something comes while the question waits', async () => {
  entry('code_replace_function', { about: 'g' })
  choices.button = 'Undo It'
  const { end } = await undo()
  assert.deepEqual(asked.questions[0]?.argument, { since: 1 })
  await answer(0, 'log', { entries: [entry('consort.compileFile')], last: 2 })
  assert.match(String(await end), /^Nothing was undone: there was Compile file \(agent 1, /)
  assert.deepEqual(asked.questions, [])
})

test('a reload that somebody has undone, or of an image of before, is not the last one', async () => {
  await compiled('F')
  await compiled('G')
  entry('code_undo', { client: 'agent 2' })
  await (await undo()).end
  assert.match(seen.messages.join(), /G \(function G\) was undone by agent 2/)
  server.condition = { state: 'ready', image: '2', pid: 2, lisp: 'SBCL' }
  seen.messages.length = 0
  await (await undo()).end
  assert.match(seen.messages.join(), /it was not reported to you/)
})

test('an allowed change that the person was told of is undone, and one that came in the moment before is named', async () => {
  tellReload(server, 'G replaced', entry('code_replace_function', { about: 'g' }))
  const first = await undo()
  await undone('the function G')
  await first.end
  assert.deepEqual(seen.messages, [])
  await compiled('F')
  const second = await undo()
  await undone('H')
  await second.end
  assert.match(seen.messages.join(), /H was undone instead of F.*, because it was loaded just before/)
})

test('the report of an undo tells what was put back', () => {
  const text = reportText({ ...report('F'), gone: ['function G'] } as never, true)
  assert.match(text, /^Undone: F\.\n\nPut back:\n  function F\n\nTaken away:\n  function G$/)
})
