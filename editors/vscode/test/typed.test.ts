// Names that are typed into an input box, texts that are shown in part, and reasons of failures.
// `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { Documents } from '../src/documents.js'
import type { EvalResult } from '../src/lsp_ext.js'
import { Recordings } from '../src/recordings.js'
import { hover } from '../src/results.js'
import { goToSymbol } from '../src/source.js'
import { readIn } from '../src/status.js'
import { Tests } from '../src/testing.js'
import { loadSystem, type SystemsTree } from '../src/trees.js'
import { Expansions, named } from '../src/views.js'
import { open, range } from './fakes/editors.js'
import { answer, asked, fakeServer, settle } from './fakes/server.js'
import { Document, Selection, tests as explorer, Uri, window, workspace } from './fakes/vscode.js'

const server = fakeServer()
const { showInputBox } = window

beforeEach(() => {
  asked.questions.length = 0
  window.showInputBox = showInputBox
})

/** An editor in a package, with the cursor on no name, and what is typed into the next box. */
function typing(text: string): void {
  const { editor } = open('(in-package :shop)\n\n')
  editor.selection = new Selection(1, 0, 1, 0)
  Object.assign(Document.prototype, { getWordRangeAtPosition: () => undefined })
  window.showInputBox = () => Promise.resolve(text)
}

test('a typed name is read in the package at the cursor, unless it has its own', async () => {
  typing('price')
  assert.deepEqual(await named('Describe'), { name: 'price', package: 'SHOP' })
  void goToSymbol(server, 'price', readIn('price'))
  assert.deepEqual(asked.questions[0]?.argument, { symbol: 'price', package: 'SHOP' })
  typing('bank:price')
  assert.deepEqual(await named('Describe'), { name: 'bank:price' })
  window.activeTextEditor = undefined
  assert.deepEqual(await named('Describe'), { name: 'bank:price' })
})

test('a test whose name is typed is looked for in the package at the cursor', async () => {
  typing('prices')
  const tests = new Tests(server, new Recordings(server))
  void tests.recordTest()
  await settle()
  assert.deepEqual(asked.questions[0]?.argument, { test: 'prices', package: 'SHOP' })
  tests.dispose()
})

test('an expansion that is not whole says so', async () => {
  open('(a)')
  let shown = ''
  const expansions = new Expansions(server, { open: (_: string, text: string) => (shown = text) } as unknown as Documents)
  void expansions.expand('one')
  await answer(0, 'macroexpand', { expansion: '(list 1', expanded: true, omitted: 7, error: null, range: range(0, 0, 3) })
  assert.equal(shown, '(list 1\n;; 7 more characters were left out.\n')
})

test('a result that a link opens in part says so', () => {
  const result = (length: number): EvalResult =>
    ({ status: 'ok', values: ['x'.repeat(length)], stdout: '', stderr: '', omitted: 0, warnings: [], error: null, timing: null, package: 'SHOP' })
  const opened = (length: number): string => (JSON.parse(decodeURIComponent(/consort\.editor\.openResult\?([^)]*)/.exec(hover(result(length)).value)?.[1] ?? '')) as string[])[0] ?? ''
  assert.equal(opened(50_000), 'x'.repeat(50_000))
  assert.match(opened(50_003), /^x{50000}\n;; … 3 more characters\. "Consort: Open the Last Result" shows all/)
})

test('tests of a system that does not compile say why', async () => {
  workspace.findFiles = () => Promise.resolve([Uri.file('/shop.asd')])
  const tests = new Tests(server, {} as never)
  await settle()
  workspace.findFiles = () => Promise.resolve([])
  const done = tests.runSystem('shop')
  await settle()
  await answer(0, 'runTests', { success: false, text: '[ERROR] COMPILE-FILE-ERROR', output: '\nERROR in DEFUN F: malformed.', tests: [] })
  await done
  const text = 'ERROR in DEFUN F: malformed.\n\n[ERROR] COMPILE-FILE-ERROR'
  assert.deepEqual([explorer.message, explorer.output], [text, `${text.replaceAll('\n', '\r\n')}\r\n`])
  tests.dispose()
})

test('what the compiler says is shown when a system is not loaded', async () => {
  const said: string[] = []
  const output = { append: (text: string) => said.push(text), show: (keepsFocus: boolean) => said.push(`shown ${keepsFocus}`) }
  const logging = { ...server, log: { info: () => undefined } } as unknown as typeof server
  const load = (): Promise<boolean> => loadSystem(logging, { refresh: () => undefined } as SystemsTree, { name: 'shop', uri: Uri.file('/shop.asd') as never }, output as never)
  for (const loaded of [true, false]) {
    const done = load()
    await settle()
    await answer(0, 'loadSystem', { loaded, stdout: '', stderr: 'malformed', error: null })
    assert.equal(await done, loaded)
  }
  assert.deepEqual(said, ['malformed', 'malformed', 'shown true'])
})
