// Tests that need no editor: results in words, ranges, settings, the binary, the queue, the
// profile's tree.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { findBinary } from '../src/binary.js'
import { configurations } from '../src/configurations.js'
import { treeOf, totals } from '../src/folded.js'
import { bytesText, columns, doneText, errorText, fenced, inlineText, label, markdown, plain, resultText } from '../src/format.js'
import type { Approval, EvalResult, LogEntry } from '../src/lsp_ext.js'
import { projectFiles, wrongName } from '../src/project.js'
import { Queue } from '../src/queue.js'
import { complete } from '../src/reader.js'
import { installationOn } from '../src/install.js'
import { rangeAfter } from '../src/ranges.js'
import { FILE_ONLY, SERVER_KEYS, serverSettings } from '../src/settings.js'
import { systemsIn } from '../src/systems.js'

const ok: EvalResult = {
  status: 'ok', values: ['3'], stdout: '', stderr: '', omitted: 0, warnings: [], error: null, timing: null, package: 'CL-USER',
}

test('the columns of a line', () => {
  assert.equal(columns('(list 1)', 8), 8)
  assert.equal(columns('a\t\tb', 4), 9)
  assert.equal(columns('漢字 λ', 8), 6)
})

test('an entry of the log that has no code', () => {
  const entry: LogEntry = { number: 1, time: '', client: 'Code', frontend: 'lsp', tool: 'consort.loadSystem', code: null, about: 'shop', status: 'ok', outcome: 'done', ms: 1234 }
  assert.equal(doneText(entry), 'Load system shop, 1.2 s')
  assert.equal(doneText({ ...entry, tool: 'run-tests', about: null, ms: 8 }), 'Run tests')
})

test('a value at the end of the line', () => {
  assert.equal(inlineText(ok, 80), '⇒ 3')
  assert.equal(inlineText({ ...ok, values: [] }, 80), '⇒ no value')
  assert.equal(inlineText({ ...ok, values: ['(1\n  2)', '4'] }, 80), '⇒ (1 2) ; 4')
  assert.equal(inlineText({ ...ok, values: ['x'.repeat(100)] }, 10), `⇒ ${'x'.repeat(9)}…`)
  assert.equal(inlineText({ ...ok, stdout: '\nhello ' }, 80), '⇒ 3  │ hello')
  assert.equal(inlineText({ ...ok, warnings: ['w'] }, 80), '⚠ ⇒ 3')
  const frame = { text: '(/ 1 0)', name: '/', method: null, role: 'standard' as const, args: ['1', '0'], file: null, line: null }
  const error = { type: 'DIVISION-BY-ZERO', message: 'no', operation: '/', backtrace: [frame] }
  const failed: EvalResult = { ...ok, status: 'error', values: [], error }
  assert.equal(inlineText(failed, 80), '✗ DIVISION-BY-ZERO: no')
  assert.match(resultText(failed), /Backtrace\n0: \(\/ 1 0\)/)
  assert.equal(inlineText({ ...failed, status: 'interrupted', error: null }, 80), '✗ interrupted')
})

test('a fence that its text cannot end', () => {
  assert.equal(fenced('a', 'x'), '```x\na\n```')
  assert.equal(fenced('```', 'x'), '````x\n```\n````')
})

test('a name of an agent is no link and no icon', () => {
  assert.equal(plain('[Deny](command:consort.editor.approve) $(check)'), '[Deny]\\u{28}command:consort.editor.approve) $\\u{28}check)')
  assert.equal(plain('(list [a] (b))'), '(list [a] (b))')
})

test('nothing that others wrote is more than text, wherever it is shown', () => {
  const nasty = JSON.parse(readFileSync(join(process.cwd(), '../../tests/fixtures/nasty.json'), 'utf8')) as string[]
  assert.equal(nasty.length, 20)
  const acts = /(?![\n\t])\p{Cc}|[\u00ad\u2028-\u202e\u2060-\u2069\u200b-\u200f\ufeff]|[\u{e0000}-\u{e007f}]/u
  for (const text of nasty) {
    for (const shown of [plain(text), label(text), markdown(text), fenced(text, 'text')]) assert.doesNotMatch(shown, acts)
    for (const shown of [plain(text), label(text)]) {
      assert.ok(!shown.includes('](') && !shown.includes('$('), shown)
    }
    assert.ok(!label(text).includes('\n'))
    // Every character that Markdown, or icons in it, know has a backslash before it.
    assert.doesNotMatch(markdown(text).replace(/\\[\\`*_{}[\]()#+.!|<>~$&-]/g, ''), /[`*_[\]<>~|!#$&]/)
    const block = fenced(text, 'text').split('\n')
    const fence = block.at(-1) ?? ''
    assert.ok(/^`{3,}$/.test(fence) && block.slice(1, -1).every((line) => !line.includes(fence)), block.join('|'))
  }
  assert.equal(label('x'.repeat(300)).length, 200)
})

test('SBCL is installed by the one command of this system', () => {
  const command = (platform: string, release: string): string => installationOn(platform, release).command
  assert.equal(command('darwin', ''), 'brew install sbcl')
  assert.equal(command('linux', 'NAME="Debian GNU/Linux"\nID=debian\n'), 'sudo apt-get install sbcl')
  assert.equal(command('linux', 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'), 'sudo dnf install sbcl')
  assert.equal(command('linux', 'ID=manjaro\nID_LIKE=arch\n'), 'sudo pacman -S sbcl')
})

test('an error of a command says why, where, and what was not put back', () => {
  assert.equal(errorText('no'), 'no')
  const data = { type: 'COMPILATION_ERROR', message: 'The LET binding spec (X 1 2) is malformed.' }
  assert.equal(errorText('Compilation failed', { ...data, location: { file: '/w/shop.lisp', line: 16, column: 3 } }), 'Compilation failed: The LET binding spec (X 1 2) is malformed (shop.lisp:16)')
  assert.equal(errorText('Compilation failed', { ...data, location: { line: 2, column: 1 } }), 'Compilation failed: The LET binding spec (X 1 2) is malformed (line 2)')
  assert.equal(errorText('Compilation failed', { ...data, location: { file: '/w/shop.lisp' } }), 'Compilation failed: The LET binding spec (X 1 2) is malformed (shop.lisp)')
  assert.equal(errorText('Loading failed.', { not_undone: ['function F', 'class C'] }), 'Loading failed. Could not be put back: function F, class C.')
})

test('bytes in words', () => {
  assert.deepEqual([0, 1023, 1024, 10 * 1024 * 1024].map(bytesText), ['0 bytes', '1023 bytes', '1.0 KB', '10 MB'])
})

test('a result stays until its form is edited, and moves with it', () => {
  const range = { start: { line: 2, character: 0 }, end: { line: 3, character: 5 } }
  const change = (l1: number, c1: number, l2: number, c2: number, text: string) => ({
    range: { start: { line: l1, character: c1 }, end: { line: l2, character: c2 } }, text,
  })
  assert.deepEqual(rangeAfter(range, change(5, 0, 5, 0, 'x')), range, 'below')
  assert.deepEqual(rangeAfter(range, change(3, 5, 3, 5, '\n')), range, 'a new line at its end')
  assert.equal(rangeAfter(range, change(3, 5, 3, 5, 'x')), undefined, 'text at its end')
  assert.equal(rangeAfter(range, change(3, 1, 3, 2, '')), undefined, 'inside')
  assert.equal(rangeAfter(range, change(0, 0, 9, 0, '')), undefined, 'around')
  assert.deepEqual(rangeAfter(range, change(0, 0, 0, 0, 'a\nb\n')), { start: { line: 4, character: 0 }, end: { line: 5, character: 5 } })
  assert.deepEqual(rangeAfter(range, change(0, 0, 1, 0, '')), { start: { line: 1, character: 0 }, end: { line: 2, character: 5 } })
  const inLine = { start: { line: 1, character: 4 }, end: { line: 1, character: 8 } }
  assert.deepEqual(rangeAfter(inLine, change(1, 0, 1, 2, 'abc')), { start: { line: 1, character: 5 }, end: { line: 1, character: 9 } })
})

test('settings are those that docs/configuration.md documents, with the same defaults', () => {
  const page = readFileSync('../../docs/configuration.md', 'utf8')
  const documented = new Map([...page.matchAll(/^\| `([a-z]+\.[a-z_-]+)` \| `(.+?)` \|/gm)].map((row) => [row[1] ?? '', JSON.parse(row[2] ?? '') as unknown]))
  assert.ok(documented.size >= 11)
  // Tables that are newer than the rest: a page of an older server does not have them at all.
  const missing = ['approval.', 'lenses.'].filter((table) => ![...documented.keys()].some((key) => key.startsWith(table)))
  const known = SERVER_KEYS.filter((key) => !missing.some((table) => key.startsWith(table)))
  assert.deepEqual([...documented.keys()].sort(), [...known].sort())
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
    contributes: { configuration: { properties: Record<string, { default: unknown; scope?: string; markdownDescription?: string }> } }
  }
  const properties = manifest.contributes.configuration.properties
  for (const [key, value] of documented) {
    const property = properties[`consort.${key}`]
    if (FILE_ONLY.has(key)) assert.equal(property, undefined, `${key} belongs into a file`)
    else assert.deepEqual(property?.default, value, key)
  }
  for (const [key, property] of Object.entries(properties)) {
    assert.ok((property.markdownDescription ?? '') !== '', `${key} is not documented`)
    if (key.startsWith('consort.approval.')) assert.equal(property.scope, 'application', `a workspace may not set ${key}`)
  }
})

test('the server gets what a person set, and nothing else', () => {
  const set: Record<string, object> = {
    'check.notes': { defaultValue: false, workspaceValue: true },
    'check.debounce_ms': { defaultValue: 200 },
    'eval.timeout_s': { globalValue: 5, workspaceValue: 7 },
    'lisp.heap': { globalValue: '1GB' },
    'check.memory_mb': { workspaceValue: 65536 },
    'check.deadline_s': { globalValue: 30, workspaceValue: 3600 },
    'approval.eval': { workspaceValue: 'allow' },
    'approval.edit-file': { globalValue: 'deny', workspaceValue: 'allow' },
  }
  const sent = { check: { notes: true, deadline_s: 30 }, eval: { timeout_s: 5 }, approval: { 'edit-file': 'deny' } }
  assert.deepEqual(serverSettings((key) => set[key]), sent)
})

test('the binary: the setting alone when there is one, else PATH, else the bundled one', () => {
  const place = mkdtempSync(join(tmpdir(), 'consort-vscode-'))
  try {
    const program = (...path: string[]): string => {
      const file = join(place, ...path)
      mkdirSync(join(file, '..'), { recursive: true })
      writeFileSync(file, '')
      chmodSync(file, 0o755)
      return file
    }
    const bundled = program('extension', 'bin', 'consort')
    const path = program('bin', 'consort')
    const own = program('own', 'consort')
    const extension = join(place, 'extension')
    const nothing = { PATH: join(place, 'empty'), HOME: join(place, 'home') }
    const environment = { ...nothing, PATH: `${join(place, 'empty')}:${join(place, 'bin')}` }
    assert.deepEqual(findBinary('', undefined, extension, environment), { path, how: 'PATH' })
    assert.deepEqual(findBinary('', undefined, extension, nothing), { path: bundled, how: 'bundled' })
    assert.deepEqual(findBinary(own, undefined, extension, environment), { path: own, how: 'setting' })
    assert.deepEqual(findBinary('${workspaceFolder}/own/consort', place, extension, environment), { path: own, how: 'setting' })
    assert.deepEqual(findBinary('own/consort', place, extension, environment), { path: own, how: 'setting' })
    assert.deepEqual(findBinary('consort', place, extension, environment), { path, how: 'setting' })
    assert.equal(findBinary('/not/there', undefined, extension, environment), undefined)
    const cargo = program('home', '.cargo', 'bin', 'consort')
    assert.deepEqual(findBinary('', undefined, extension, nothing), { path: cargo, how: 'PATH' })
    assert.deepEqual(findBinary('~/.cargo/bin/consort', undefined, extension, nothing), { path: cargo, how: 'setting' })
  } finally {
    rmSync(place, { recursive: true })
  }
})

test('questions wait in a queue, and silence is a no', async () => {
  let now = 0
  let changes = 0
  const queue = new Queue(() => changes++, () => now)
  const question = (id: number, deadlineSeconds: number): Approval => ({ id, client: 'a', tool: 't', class: 'eval', what: 'w', deadlineSeconds })
  const one = queue.ask(question(1, 10))
  const two = queue.ask(question(2, 20))
  const three = queue.ask(question(3, 120))
  const four = queue.ask(question(4, 120))
  assert.equal(queue.length, 4)
  const first = queue.first
  assert.ok(first)
  first.decide('allow-session')
  first.decide('deny')
  assert.equal(await one, 'allow-session', 'the first decision counts')
  assert.equal(queue.first?.approval.id, 2)
  now = 19_500
  assert.equal(queue.first !== undefined && queue.secondsLeft(queue.first), 1)
  now = 20_000
  queue.expire()
  assert.equal(await two, 'deny')
  queue.withdraw(4)
  assert.equal(await four, 'deny')
  queue.first?.decide('allow')
  assert.equal(await three, 'allow')
  assert.equal(queue.first, undefined)
  assert.ok(changes >= 8)
})

test('folded stacks become a tree', () => {
  const tree = treeOf(['main;f;g 3', 'main;f 2', 'main;f;f;g 1', 'nonsense', 'a b;c 4'])
  assert.equal(tree.value, 10)
  const counts = totals(tree)
  assert.deepEqual(counts.get('f'), { self: 2, total: 6 })
  assert.deepEqual(counts.get('g'), { self: 4, total: 4 })
  assert.deepEqual(counts.get('a b'), { self: 0, total: 4 })
})

test('the systems of a definition file', () => {
  const text = '(asdf:defsystem "one" :depends-on ())\n; (defsystem "no")\n(defsystem #:Two/Tests)\n  (asdf:defsystem :three)'
  assert.deepEqual(systemsIn(text).map(({ name }) => name), ['one', 'two/tests', 'three'])
})

test('configurations for agents', () => {
  const all = configurations('/my programs/consort', '/w')
  assert.equal(all[0]?.text, "claude mcp add consort -- '/my programs/consort' mcp --workspace /w")
  for (const { where, text } of all) if (where.endsWith('.json')) JSON.parse(text)
})

test('a new project is whole', () => {
  const files = projectFiles('my-project')
  assert.deepEqual(Object.keys(files), ['my-project.asd', 'package.lisp', 'my-project.lisp', 'tests.lisp'])
  assert.deepEqual(systemsIn(files['my-project.asd'] ?? ''), [
    { name: 'my-project', line: 0, testedBy: ['my-project/tests'] }, { name: 'my-project/tests', line: 8, testedBy: [] },
  ])
  for (const [name, text] of Object.entries(files)) assert.ok(complete(text), name)
  for (const name of ['My', '-a', 'a/b', '', 'a b', '../a', 'a-']) assert.notEqual(wrongName(name), undefined, name)
  assert.equal(wrongName('my-project'), undefined)
  // A file of the project, or a package of Lisp, would be replaced.
  for (const name of ['package', 'tests']) assert.match(wrongName(name) ?? '', new RegExp(`has a file ${name}\\.lisp`))
  for (const name of ['asdf', 'uiop', 'cl', 'sb-ext', 'common-lisp']) assert.match(wrongName(name) ?? '', new RegExp(`has a package ${name}$`))
  for (const name of ['packages', 'test', 'sbcl-tools', 'my-asdf']) {
    assert.equal(wrongName(name), undefined)
    assert.equal(Object.keys(projectFiles(name)).length, 4)
  }
})
