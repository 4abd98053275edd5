import assert from 'node:assert/strict'
import test from 'node:test'
import { complete, definesPackage, formAt, lastFormRead, packageAt, packageNear, read, topLevelFormAt } from '../src/reader.js'

/** A text with `|` (written ‸) where the cursor is. */
function at(marked: string): [text: string, offset: number] {
  const offset = marked.indexOf('‸')
  return [marked.replace('‸', ''), offset]
}

const COMPLETE = [
  '', '42', '(+ 1 2)', '(list #\\( #\\))', '"a ( string"', '#| ( |#', '; (', "'(a b)", '(a |( b|)', '#\\"', '#(1 2)', '#+sbcl (a) #-(or b c) (d)',
  '(list "\\"")', "#'car", '#p"x"', ')',
]
const INCOMPLETE = ['(', '(+ 1', '"abc', '#| open', "'", '(a "b)', '|abc', '`(a ,', '#| a #| b |#', '(list #\\)', '#+sbcl', '(let ((a 1)', "#'"]
for (const text of COMPLETE) test(`${JSON.stringify(text)} is complete`, () => assert.equal(complete(text), true))
for (const text of INCOMPLETE) test(`${JSON.stringify(text)} is incomplete`, () => assert.equal(complete(text), false))

const FORMS: [marked: string, form: string | undefined, top: string | undefined][] = [
  ['(a (b c)‸ d)', '(b c)', '(a (b c) d)'],
  ['(a (b c) d)‸', '(a (b c) d)', '(a (b c) d)'],
  ['(a b‸c d)', 'bc', '(a bc d)'],
  ['(a  ‸ b)', '(a   b)', '(a   b)'],
  ["(a '‸(b))", "'(b)", "(a '(b))"],
  ['(a)\n‸\n(b)', '(a)', '(a)'],
  ['‸(a)\n(b)', '(a)', '(a)'],
  ['(a ";‸ (" b)', '";  ("', '(a "; (" b)'],
  ['(a) ; c (‸', '(a)', '(a)'],
  ['(a #\\(‸ b)', '#\\(', '(a #\\( b)'],
  ["#+sbcl (a b‸)", 'b', '#+sbcl (a b)'],
]
for (const [marked, form, top] of FORMS) {
  test(`the forms at the cursor of ${JSON.stringify(marked)}`, () => {
    const [text, offset] = at(marked)
    const found = formAt(text, offset)
    assert.equal(found && text.slice(found.start, found.end), form?.replace(';  (', '; ('))
    const above = topLevelFormAt(text, offset)
    assert.equal(above && text.slice(above.start, above.end), top)
  })
}

test('a form that is never read is not the last one that is', () => {
  for (const [text, last] of [
    ['(a)\n(b)\n\n;; Try it.\n#+(or)\n(c)\n', '(b)'],
    ['(a)\n#+nil(c)\n#-(and) (d)', '(a)'],
    ['(a)\n#+sbcl (c)', '#+sbcl (c)'],
    ['#+(or) (c)', undefined],
  ] as const) {
    const found = lastFormRead(text)
    assert.equal(found && text.slice(found.start, found.end), last)
  }
})

test('a file defines a package or only uses it', () => {
  for (const text of ['(defpackage :shop\n  (:use :cl))', '(in-package :cl-user)\n(DEFPACKAGE "SHOP")', "(uiop:define-package #:shop)"]) assert.equal(definesPackage(text, 'SHOP'), true, text)
  for (const text of ['(in-package :shop)', '(defpackage :shop/tests (:use :cl))', ';; (defpackage :shop)', '(defpackage "shop")']) assert.equal(definesPackage(text, 'SHOP'), false, text)
})

test('a list that is never closed ends before the next one at the margin', () => {
  for (const [marked, form] of [
    ['(a)\n\n(defun f (x)\n  (g x)\n\n(defun h (x)\n  x)\n\n(h 1)‸', '(h 1)'],
    ['(defun f (x)\n  (g x)\n\n(defun h (x)\n  ‸x)\n\n(h 1)', '(defun h (x)\n  x)'],
    ['(defun f (x)\n  (g‸ x)\n\n(defun h (x)\n  x)', '(defun f (x)\n  (g x)'],
    ['(f\n(g\n(h‸)\n', '(h)'],
    ['(f "\n(g)"\n  (h‸)', '(f "\n(g)"\n  (h)'],
  ] as const) {
    const [text, offset] = at(marked)
    const found = topLevelFormAt(text, offset)
    assert.equal(found && text.slice(found.start, found.end), form)
  }
})

test('a text that is nested deeper than calls may be is read', () => {
  const text = `${'(a '.repeat(20_000)}\n(b)`
  const found = topLevelFormAt(text, text.length)
  assert.equal(found && text.slice(found.start, found.end), '(b)')
})

test('what is never closed is said', () => {
  assert.deepEqual(read('(a (b').open, [0, 3])
  assert.equal(read('(a "b').inside, 'string')
})

test('reading never fails and comes to an end', () => {
  const alphabet = ['(', ')', '"', '\\', '|', '#', ';', '\n', "'", '`', ',', '@', 'a', '+', '-', ' ', '1']
  let seed = 7
  const next = (): number => (seed = (seed * 1103515245 + 12345) % 2147483648)
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: next() % 24 }, () => alphabet[next() % alphabet.length]).join('')
    for (const form of read(text).forms) assert.ok(form.start < form.end && form.end <= text.length, JSON.stringify(text))
    for (let offset = 0; offset <= text.length; offset += 5) formAt(text, offset)
  }
})

test('the package at a place', () => {
  const text = '(in-package :one)\n(a)\n(in-package "Two")\n(b)\n(cl:in-package #:three)\n(c)'
  assert.equal(packageAt(text, 0), 'ONE')
  assert.equal(packageAt(text, text.indexOf('(a)')), 'ONE')
  assert.equal(packageAt(text, text.indexOf('(b)')), 'Two')
  assert.equal(packageAt(text, text.length), 'THREE')
  assert.equal(packageAt('(a)', 1), undefined)
  assert.equal(packageNear(`; text\n${text}`, 0), 'ONE')
  assert.equal(packageNear(text, text.length), 'THREE')
  assert.equal(packageNear('(a)', 1), undefined)
})
