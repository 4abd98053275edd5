// The indentation of a new line: by the text alone, and by the rules for Enter, which agree.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { unbalanced } from '../src/balance.js'
import { indentation } from '../src/indent.js'

const after = (text: string): number | undefined => indentation(`${text}\n`, text.length + 1)
const WANTED: [string, number][] = [
  ['(defun shout (word)', 2],
  ['(defun shout (word)\n  (when word', 4],
  ['(defun shout (word)\n  "What (it does."\n  (list word', 8],
  ['(let ((a 1)', 6],
  ['(let* ((a 1)', 7],
  ['(let ((a 1))', 2],
  ['(if (ready)', 4],
  ['(cond ((a) 1)', 6],
  ['(list', 1],
  ['(setf a 1', 6],
  ['(defvar *a* 1)', 0],
  ['(defun f ()\n  (g))', 0],
  ["(defparameter *a*\n  '(1 2", 4],
  ['(with-open-file (in "a")', 2],
  ['(flet ((f (x)', 9],
  ['(cl:when t', 2],
]

test('a new line stands where its list wants it', () => {
  for (const [text, column] of WANTED) assert.equal(after(text), column, text)
  assert.equal(after('(defun f ()\n  "in a string'), undefined)
  assert.equal(after('#| in a comment'), undefined)
})

test('Enter puts it there at the first keystroke, as far as its line alone says where', () => {
  const { onEnterRules } = JSON.parse(readFileSync('language-configuration.json', 'utf8')) as {
    onEnterRules: { beforeText: string; action: { appendText: string } }[]
  }
  /** As VS Code does it: the first rule that matches the line, or the indentation of the line. */
  const entered = (text: string): number => {
    const line = text.split('\n').at(-1) ?? ''
    const rule = onEnterRules.find(({ beforeText }) => new RegExp(beforeText).test(line))
    return (/^ */.exec(line)?.[0].length ?? 0) + (rule?.action.appendText.length ?? 0)
  }
  const elsewhere = ['(defun f ()\n  (g))', '(flet ((f (x)', "(defparameter *a*\n  '(1 2", '(list', '(cl:when t']
  for (const [text, column] of WANTED.filter(([text]) => !elsewhere.includes(text))) assert.equal(entered(text), column, text)
  assert.equal(entered('(defun done (x) (list x))'), 0)
  assert.equal(entered('  (when (a) (b))'), 2)
  assert.equal(entered('(default 1'), 9)
})

test('a rule for Enter comes to an end on what it does not match', () => {
  const { onEnterRules } = JSON.parse(readFileSync('language-configuration.json', 'utf8')) as { onEnterRules: { beforeText: string }[] }
  const n = 20_000
  for (const line of [`(when ${'(a '.repeat(n)}`, `(when ${'(a) '.repeat(n)})`, `(when ${'((((a)'.repeat(n)}`, `(list ${'"a '.repeat(n)})`])
    assert.equal(onEnterRules.some(({ beforeText }) => new RegExp(beforeText).test(line)), false, line.slice(0, 20))
})

test('what does not balance is found by the text alone, and said as the server says it', () => {
  const said = (text: string): [string, string][] => unbalanced(text).map(({ start, end, message }) => [text.slice(start, end), message])
  assert.deepEqual(unbalanced('(a (b) "c)" #\\( ; ('), [{ start: 0, end: 1, message: 'This list is never closed; one `)` is missing.' }])
  assert.deepEqual(said('(a (b'), [['(', 'This list is never closed; 2 `)` are missing.']])
  assert.deepEqual(said('(a))'), [[')', 'This `)` closes nothing: there is one too many.']])
  assert.deepEqual(said('(a)) )\n(b))'), [[') )', 'These 2 `)` close nothing: there are 2 too many.'], [')', 'This `)` closes nothing: there is one too many.']])
  assert.deepEqual(said('(a \'"b\n)'), [['"b', 'This string never ends: a `"` is missing.']])
  assert.deepEqual(said('(a :|b\n c)'), [['|b', 'This `|` is never closed: a second `|` is missing.']])
  assert.deepEqual(said('|abc'), [['|abc', 'This `|` is never closed: a second `|` is missing.']])
  assert.deepEqual(said('(a)\n#| #| b |# c'), [['#|', 'This comment never ends: a `|#` is missing. Everything after it is commented out.']])
  for (const text of ['(a)\n; (\n#| ( |#', '(a |b)"| #\\| #\\" #\\))', "'", '']) assert.deepEqual(unbalanced(text), [], text)
  // Each is a sentence of the server's.
  const server = readFileSync('../../server/src/ide/structure.rs', 'utf8').replaceAll('\\"', '"') + readFileSync('../../server/src/ide/structure/unclosed.rs', 'utf8')
  for (const text of ['(a))', '"', '|', '#|', '(']) for (const [, message] of said(text)) assert.ok(server.includes(message.replace('one `)` is missing.', '')), message)
})
