// Where the box for the name of an extracted function or variable opens.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { extractedAt, type Replacement } from '../src/extracted.js'

/** The new text, with ‸ at the place of the box. `[from, to]` in the text are replaced in order. */
function shown(text: string, selected: string, replacements: [old: string, text: string][]): string {
  let from = 0
  const edits = replacements.map(([old, text_]): Replacement => {
    const start = text.indexOf(old, from)
    from = start + old.length
    return old === '' ? { start: 0, end: 0, text: text_ } : { start, end: from, text: text_ }
  })
  const at = extractedAt(edits, text.indexOf(selected))
  const changed = [...edits].reverse().reduce((now, { start, end, text }) => now.slice(0, start) + text + now.slice(end), text)
  return at === undefined ? changed : `${changed.slice(0, at)}‸${changed.slice(at)}`
}

test('the name of an extracted function is asked for at its call', () => {
  const text = '(defun cost (x)\n  (sum (* x 2)))'
  assert.equal(shown(text, '(* x 2)', [['', '(defun cost-part (x)\n  (* x 2))\n\n'], ['(* x 2)', '(cost-part x)']]), '(defun cost-part (x)\n  (* x 2))\n\n(defun cost (x)\n  (sum (‸cost-part x)))')
})

test('the name of an extracted variable is asked for where it is used or bound', () => {
  assert.equal(shown('(f (g 1))', '(g 1)', [['(f (g 1))', '(let ((g (g 1)))\n  (f g))']]), '(let ((‸g (g 1)))\n  (f g))')
  assert.equal(shown('((a 1)\n (b (g 2)))', '(g 2)', [['', '(g2 (g 2))\n '], ['(g 2)', 'g2']]), "(g2 (g 2))\n ((a 1)\n (b ‸g2))")
})

test('nothing is asked where nothing has a new name', () => {
  assert.equal(shown('(f (g 1))', '(g 1)', [['(g 1)', '2']]), '(f 2)')
})
