import assert from 'node:assert/strict'
import test from 'node:test'
import { isPlain } from '../src/plain.js'

test('only what has no delimiter beside it is deleted without a question', () => {
  const line = '(ab c) #\\a "d" x'
  const plain = [...line].map((char, at) => (isPlain(line, at) ? char : '-')).join('')
  assert.equal(plain, '--b -----------x')
  assert.equal(isPlain(line, -1), false)
  assert.equal(isPlain(line, line.length), false)
})
