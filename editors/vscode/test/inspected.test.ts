import assert from 'node:assert/strict'
import test from 'node:test'
import { comparisonText, tableText } from '../src/inspected.js'

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
