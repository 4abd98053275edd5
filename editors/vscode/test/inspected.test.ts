import assert from 'node:assert/strict'
import test from 'node:test'
import { comparisonText, definitionItems, descriptionText, tableText } from '../src/inspected.js'

const value = (text: string): { text: string; type: null; reference: number } => ({ text, type: null, reference: 0 })

test('a table has columns that are as wide as their cells', () => {
  const table = { total: 5, columns: ['NAME', 'PRICE'], rows: [{ label: '0', cells: [value('"a\u202ec"'), null] }, { label: '1', cells: [value('"漢"'), value('12')] }] }
  assert.equal(
    tableText('*goods*', table),
    ['*goods*, the first 2 of 5 rows', '', '   name          price', '─  ────────────  ─────', '0  "a\\u{202e}c"', '1  "漢"          12'].join('\n'),
  )
})

test('differences name the way to the part', () => {
  const found = { differences: [{ path: ['PRICE', '0'], one: value('1'), other: value('not there') }], partial: true }
  assert.equal(
    comparisonText('a = (1)', 'b = ()', found),
    ['- a = (1)', '+ b = ()', '', 'PRICE › 0', '  - 1', '  + not there', '', 'The values are too large to be compared whole: there may be more.'].join('\n'),
  )
  assert.match(comparisonText('a', 'b', { differences: [], partial: false }), /have the same parts/)
})

test('a description is shown as it was printed, and why it did not end', () => {
  assert.equal(descriptionText({ text: '#<GOOD>\n  [object]\u202e\n\n', error: null }), '#<GOOD>\n  [object]\\u{202e}')
  assert.equal(descriptionText({ text: '#<GOOD>\n', error: 'SIMPLE-ERROR: no' }), '#<GOOD>\n; It did not end: SIMPLE-ERROR: no')
  assert.equal(descriptionText({ text: '', error: 'SIMPLE-ERROR: no' }), '; It did not end: SIMPLE-ERROR: no')
})

test('definitions are told apart by kind, name, file and line', () => {
  const range = { start: { line: 3, character: 9 }, end: { line: 3, character: 13 } }
  const definition = { kind: 'method', name: 'price (good)', uri: 'file:///w/my%20shop.lisp', range }
  assert.deepEqual(definitionItems({ definitions: [definition] }), [{ label: 'method price (good)', description: 'my shop.lisp:4', definition }])
  assert.deepEqual(definitionItems({ definitions: [] }), [])
})
