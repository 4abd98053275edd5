import assert from 'node:assert/strict'
import test from 'node:test'
import { begun, collapsed, expanded, innermost, neighbour, offsetAt, positionAt, type Steps } from '../src/macrosteps.js'
import type { Range } from '../src/lsp_ext.js'

/** Puts `expansion` in the place of the first `form`. */
const put = (steps: Steps, form: string, expansion: string): Steps => {
  const start = steps.text.indexOf(form)
  assert.ok(start >= 0, `${form} in ${steps.text}`)
  return expanded(steps, start, start + form.length, expansion)
}
const texts = ({ text, placed }: Steps): string[] => placed.map(({ start, end }) => text.slice(start, end))
/** Collapses at the first `words`. */
const back = (steps: Steps, words: string): Steps => {
  const done = collapsed(steps, steps.text.indexOf(words))
  assert.ok(done)
  return done.steps
}

test('expansions stand in the places of their forms, one in another', () => {
  const one = put(begun('(a (m 1) (m 2))'), '(m 1)', '(progn (n 1)\n 2)')
  const two = put(put(one, '(m 2)', '(two)'), '(n 1)', '(inner n)')
  assert.equal(two.text, '(a (progn (inner n)\n 2) (two))')
  assert.deepEqual(texts(two), ['(progn (inner n)\n 2)', '(two)', '(inner n)'])
  assert.equal(innermost(two, two.text.indexOf('inner'))?.before, '(n 1)')
  assert.equal(innermost(two, two.text.indexOf('progn'))?.before, '(m 1)')
  assert.equal(innermost(two, 0), undefined)
})

test('collapsing takes back the innermost expansion, and what is in it', () => {
  const steps = put(put(put(begun('(a (m 1) (m 2))'), '(m 1)', '(progn (n 1))'), '(n 1)', '(inner)'), '(m 2)', '(two)')
  assert.equal(back(steps, 'inner').text, '(a (progn (n 1)) (two))')
  const outer = back(steps, 'progn')
  assert.equal(outer.text, '(a (m 1) (two))')
  assert.deepEqual(texts(outer), ['(two)'])
  assert.equal(back(outer, 'two').text, '(a (m 1) (m 2))')
  assert.equal(collapsed(outer, 1), undefined)
})

test('a whole expansion that is expanded again comes back in steps', () => {
  const steps = put(put(begun('(m)'), '(m)', '(n)'), '(n)', '(o 1)')
  assert.deepEqual(texts(steps), ['(o 1)', '(o 1)'])
  const once = back(steps, '1')
  assert.equal(once.text, '(n)')
  assert.equal(back(once, 'n').text, '(m)')
})

test('expansions in a form that is expanded are there again when it is collapsed', () => {
  const inner = put(begun('x (m (n))'), '(n)', '(nn 1)')
  const outer = put(inner, '(m (nn 1))', '(progn (nn 1) (nn 1))')
  assert.deepEqual(texts(outer), ['(progn (nn 1) (nn 1))'])
  const again = back(outer, 'progn')
  assert.deepEqual([again.text, texts(again)], [inner.text, ['(nn 1)']])
  assert.equal(back(again, '1').text, 'x (m (n))')
})

test('random steps are taken back to the text as it was', () => {
  let seed = 7
  const random = (below: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % below
  for (let round = 0; round < 200; round++) {
    let steps = begun('(m (m) (m (m)) m)\n(m (m))')
    for (let i = 0; i < 6; i++) {
      const opens = [...steps.text.matchAll(/\(m/g)].map(({ index }) => index)
      const start = opens[random(opens.length)]
      if (start === undefined) break
      let end = start
      for (let depth = 0; end === start || depth > 0; end++) depth += { '(': 1, ')': -1 }[steps.text[end] ?? ''] ?? 0
      steps = expanded(steps, start, end, `(p${i} (m)${steps.text.slice(start, end)}\n)`)
      for (const { start, end } of steps.placed) assert.match(steps.text.slice(start, end), /^\(p[^]*\)$/)
    }
    while (steps.placed.length > 0) {
      const some = steps.placed[random(steps.placed.length)]
      const done = collapsed(steps, (some?.start ?? 0) + 1)
      assert.ok(done)
      steps = done.steps
    }
    assert.equal(steps.text, '(m (m) (m (m)) m)\n(m (m))')
  }
})

test('places count lines and UTF-16 code units', () => {
  const { text } = begun('a\r\n𝄞b\rc')
  assert.equal(text, 'a\n𝄞b\nc')
  assert.equal(expanded(begun('(m)'), 0, 3, '"a\r\nb\rc"').text, '"a\nb\nc"')
  for (const [offset, line, character] of [[0, 0, 0], [1, 0, 1], [2, 1, 0], [4, 1, 2], [6, 2, 0], [7, 2, 1]] as const) {
    assert.deepEqual(positionAt(text, offset), { line, character })
    assert.equal(offsetAt(text, { line, character }), offset)
  }
  assert.equal(offsetAt(text, { line: 0, character: 9 }), 1)
  assert.equal(offsetAt(text, { line: 9, character: 0 }), 7)
})

test('the next and the previous macro call, by line and character', () => {
  const at = (line: number, character: number): Range => ({ start: { line, character }, end: { line: 9, character: 0 } })
  const calls = [at(0, 1), at(0, 8), at(0, 12), at(1, 4), at(3, 0)]
  const found = (line: number, character: number, forward: boolean): [number, number] | undefined => {
    const start = neighbour(calls, { line, character }, forward)
    return start && [start.line, start.character]
  }
  assert.deepEqual([found(0, 8, true), found(0, 8, false)], [[0, 12], [0, 1]])
  assert.deepEqual([found(0, 12, true), found(1, 4, false)], [[1, 4], [0, 12]])
  assert.deepEqual([found(2, 1, true), found(2, 1, false)], [[3, 0], [1, 4]])
  assert.deepEqual([found(3, 0, true), found(0, 1, false)], [undefined, undefined])
})
