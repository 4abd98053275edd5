import assert from 'node:assert/strict'
import { test } from 'node:test'
import { merge } from '../src/keyed.js'

const key = ({ name }: { name: string }): string => name

test('a row that stays keeps its object, with what it is now', () => {
  const first = { name: 'a', loaded: false }
  const second = { name: 'b', loaded: false }
  const { rows, moved, differing } = merge([first, second], [{ name: 'a', loaded: true }, { name: 'b', loaded: false }], key)
  assert.equal(rows[0], first)
  assert.equal(rows[1], second)
  assert.deepEqual(first, { name: 'a', loaded: true })
  assert.deepEqual({ moved, differing }, { moved: false, differing: [first] })
})

test('rows that come, go and move are told', () => {
  const [a, b] = [{ name: 'a' }, { name: 'b' }]
  assert.equal(merge([a, b], [{ name: 'a' }], key).moved, true)
  assert.equal(merge([a], [{ name: 'a' }, { name: 'b' }], key).moved, true)
  const swapped = merge([a, b], [{ name: 'b' }, { name: 'a' }], key)
  assert.deepEqual([swapped.moved, swapped.rows[0] === b, swapped.rows[1] === a], [true, true, true])
  assert.equal(merge([a, b], [{ name: 'a' }, { name: 'b' }], key).moved, false)
})
