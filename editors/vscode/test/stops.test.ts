// The stops of programs in words, and which of them a person is told of.
import assert from 'node:assert/strict'
import test from 'node:test'
import { firstRestarts, formsOf, restartOf, restartRows, restartTitle, Stops, stopText, type Restart } from '../src/stops.js'

const restart = (index: number, name: string | null, report = `Do ${index}.`, takes = false): Restart => ({ index, name, report, arguments: takes })

test('each restart has its number, and a nameless one its report', () => {
  const rows = restartRows([restart(0, 'CONTINUE'), restart(1, null, 'Go\n on'), restart(2, 'USE-VALUE', 'Use a value.', true)])
  assert.deepEqual(rows.map(({ label }) => label), ['0: CONTINUE', '1: Go on', '2: USE-VALUE'])
  assert.deepEqual(rows.map(({ description }) => description), ['Do 0.', 'Go on', 'Use a value. (takes arguments)'])
  assert.equal(restartTitle(restart(3, 'X'.repeat(99))).length, 40)
})

test('restarts of the same name are told apart by what they do', () => {
  const restarts = [restart(0, 'ABORT', 'Go back to the stop at level 1.'), restart(1, 'CONTINUE', 'Continue.'), restart(2, 'ABORT', 'End the evaluation.')]
  assert.deepEqual(firstRestarts(restarts).map(({ title }) => title), ['0: ABORT: Go back to the stop at level 1.', '1: CONTINUE', '2: ABORT: End the evaluation.'])
})

test('a digit takes its restart, and nothing else does', () => {
  const restarts = Array.from({ length: 12 }, (_, index) => restart(index, `R${index}`))
  assert.deepEqual(['0', '9'].map((typed) => restartOf(typed, restarts)?.name), ['R0', 'R9'])
  assert.deepEqual(['', '10', 'R1', ' 1', '٣'].map((typed) => restartOf(typed, restarts)), [undefined, undefined, undefined, undefined, undefined])
  assert.equal(restartOf('5', restarts.slice(0, 5)), undefined)
})

test('names of restarts and conditions are no links and no icons', () => {
  const evil = '[Yes](command:consort.editor.approve) $(check)'
  const shown = '[Yes]\\u{28}command:consort.editor.approve) $\\u{28}check)'
  assert.equal(stopText(evil, 'Stopped'), shown)
  const [row] = restartRows([restart(0, '$(x)](', evil)])
  assert.deepEqual([row?.label, row?.description], ['0: $\\u{28}x)]\\u{28}', shown])
  // Cut first and made plain afterwards: no half of an escape.
  assert.equal(restartTitle(restart(0, `${'x'.repeat(36)}$(`)), `0: ${'x'.repeat(36)}…`)
})

test('a pause has no condition, and is named', () => {
  assert.equal(stopText(undefined, 'Paused'), 'Paused')
  assert.equal(stopText('E: a\n  b', 'x'), 'E: a b')
})

test('forms that a person types, one by one', () => {
  assert.deepEqual(formsOf(" 1 '(a b) \"c d\" #'f ; no more"), ['1', "'(a b)", '"c d"', "#'f"])
  assert.deepEqual(formsOf(''), [])
  for (const half of ['(list 1', '"a', "'", '|a']) assert.equal(formsOf(half), undefined, half)
})

test('of several sessions that know a stop, one speaks of it', () => {
  const stops = new Stops()
  assert.equal(stops.stopped('a', 7).first, true)
  assert.equal(stops.stopped('b', 7).first, false)
  // A stop within it is told by the same, and the one around it when that was left.
  const nested = stops.stopped('a', 7)
  assert.equal(nested.first, true)
  assert.equal(stops.stopped('b', 7).first, false)
  assert.equal(stops.has(nested.stop), true)
  // The thread goes on and stops again; b hears of it later.
  stops.continued('a', 7)
  assert.equal(stops.has(nested.stop), false)
  assert.equal(stops.stopped('a', 7).first, true)
  stops.continued('b', 7)
  assert.equal(stops.stopped('b', 7).first, false)
  // A session that ended speaks no more.
  stops.ended('a')
  assert.equal(stops.stopped('b', 7).first, true)
})

test('the stop that is meant: of the thread that is shown, of its session, the newest', () => {
  const stops = new Stops()
  assert.equal(stops.find(), undefined)
  const [one, two, three] = [stops.stopped('a', 1).stop, stops.stopped('a', 2).stop, stops.stopped('b', 3).stop]
  assert.equal(stops.find('a', 1), one)
  assert.equal(stops.find('a', 9), two)
  assert.equal(stops.find('c', 1), three)
  stops.continued('b', 3)
  assert.equal(stops.find(), two)
  stops.ended('a')
  assert.equal(stops.find('a', 1), undefined)
})
