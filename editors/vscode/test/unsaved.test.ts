// Unsaved changes when a system is tested, loaded or reloaded. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { compileAndLoad } from '../src/compiling.js'
import { Tests } from '../src/testing.js'
import { loadSystem, type SystemsTree } from '../src/trees.js'
import { open } from './fakes/editors.js'
import { answer, asked, fakeServer, settle } from './fakes/server.js'
import { CancellationTokenSource, choices, Document, Range, seen, TestRunRequest, tests, Uri, workspace, type TestItem } from './fakes/vscode.js'

const server = fakeServer()
const system = { name: 'shop', uri: Uri.file('/shop.asd') as never }
const passed = { success: true, text: 'all 0 tests passed', tests: [] }

beforeEach(() => {
  asked.questions.length = 0
  for (const list of Object.values(seen)) list.length = 0
  choices.button = undefined
})

/** A file with unsaved changes, and another document with such. */
function edited(): Document {
  const { document } = open('(a)', '/shop.lisp')
  const other = Object.assign(new Document('/notes.txt', ''), { languageId: 'plaintext', isDirty: true })
  workspace.textDocuments.push(other)
  document.isDirty = true
  return document
}

async function explorer(): Promise<Tests> {
  workspace.findFiles = () => Promise.resolve([Uri.file('/shop.asd')])
  const explorer = new Tests(server, {} as never)
  await settle()
  workspace.findFiles = () => Promise.resolve([])
  return explorer
}

test('files are saved before a system is tested', async () => {
  const document = edited()
  const all = await explorer()
  const done = all.runSystem('shop')
  await settle()
  assert.deepEqual([document.isDirty, workspace.textDocuments[1]?.isDirty], [false, true])
  await answer(0, 'runTests', passed)
  await done
  assert.deepEqual([seen.messages, tests.output], [[], 'all 0 tests passed\r\n'])
  all.dispose()
})

test('tests that one system runs for another run once, and are at their system', async () => {
  const { readFile } = workspace.fs
  const text = '(defsystem "shop"\n  :in-order-to ((test-op (test-op "shop/tests"))))\n\n(defsystem "shop/tests")'
  workspace.fs.readFile = () => Promise.resolve(new TextEncoder().encode(text))
  const all = await explorer()
  await settle()
  const systems = ['shop', 'shop/tests'].map((id) => tests.items.get(id)) as TestItem[]
  assert.deepEqual(systems.map(({ range }) => (range as Range).start.line), [0, 3])
  const { controller } = all as unknown as { controller: object }
  const done = (all as unknown as { runAsked(...what: object[]): Promise<void> }).runAsked(controller, new TestRunRequest(systems), new CancellationTokenSource().token)
  await settle()
  assert.deepEqual(asked.questions.map(({ argument }) => argument['system']), ['shop/tests'])
  await answer(0, 'runTests', passed)
  await done
  assert.deepEqual(asked.questions, [])
  all.dispose()
  workspace.fs.readFile = readFile
})

test('where files are not saved before tests, those with changes are named, and a button tests them', async () => {
  const { getConfiguration } = workspace
  workspace.getConfiguration = () => ({ get: () => false as never, inspect: () => undefined })
  const document = edited()
  const all = await explorer()
  choices.button = 'Save and Test Again'
  const done = all.runSystem('shop')
  await settle()
  await answer(0, 'runTests', passed)
  await done
  const text = 'Files are tested as saved, without the unsaved changes in shop.lisp.'
  assert.deepEqual(seen.messages, [`Consort: ${text}`])
  await settle()
  assert.equal(document.isDirty, false)
  await answer(0, 'runTests', passed)
  assert.deepEqual([seen.messages.length, tests.output], [1, 'all 0 tests passed\r\n'])
  workspace.getConfiguration = getConfiguration
  all.dispose()
})

test('the output of tests names the files with changes that were not tested', async () => {
  const all = await explorer()
  edited()
  const { run, controller } = all as unknown as { run(controller: object, request: object, token: object): Promise<void>; controller: object }
  const done = run.call(all, controller, { include: [tests.items.get('shop')] }, new CancellationTokenSource().token)
  await settle()
  await answer(0, 'runTests', passed)
  await done
  assert.equal(tests.output, 'Files are tested as saved, without the unsaved changes in shop.lisp.\r\nall 0 tests passed\r\n')
  // Nobody asked for this run.
  assert.deepEqual(seen.messages, [])
  all.dispose()
})

test('files are saved before a system is loaded', async () => {
  const document = edited()
  void loadSystem(server, { refresh: () => undefined } as SystemsTree, system, {} as never)
  await settle()
  assert.deepEqual(seen.messages, [])
  assert.deepEqual([document.isDirty, asked.questions[0]?.name], [false, 'loadSystem'])
})

test('files are saved before a system or package is reloaded, and not before a form is compiled', async () => {
  for (const [name, dirty] of [['reloadSystem', false], ['reloadPackage', false], ['compileForm', true]] as const) {
    const document = edited()
    void compileAndLoad(server, name, {})
    await settle()
    assert.deepEqual([document.isDirty, asked.questions.shift()?.name], [dirty, name])
  }
})
