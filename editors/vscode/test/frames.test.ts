// Frames of a backtrace: those that have a source, and the place where the next one was called.
import assert from 'node:assert/strict'
import test from 'node:test'
import { backtraceLines, briefly, calleeOf, callIn, frameAt, sourced } from '../src/frames.js'
import type { LispError, StackFrame } from '../src/lsp_ext.js'

const frame = (name: string | null, role: StackFrame['role'] = 'program', more: Partial<StackFrame> = {}): StackFrame => ({
  text: `(${name ?? '(LAMBDA ())'} 1)`, name, method: null, role, args: ['1'], file: null, line: null, ...more,
})
const error = (operation: string | null, ...backtrace: StackFrame[]): LispError => ({ type: 'ERROR', message: 'no', operation, backtrace })

test('a frame of a program has a source, the others have none', () => {
  const method = frame('SHOP::PRICE', 'program', { method: ':AROUND (T)', file: '/w/shop.lisp', line: 3 })
  const all = error(null, method, frame('/', 'standard'), frame('ERROR', 'signal'), frame('SB-KERNEL:FOO', 'internal'), frame(null))
  assert.deepEqual(sourced(all, 0), { text: '(SHOP::PRICE 1)', name: 'SHOP::PRICE', method: ':AROUND (T)', file: '/w/shop.lisp', line: 3 })
  for (const index of [1, 2, 3, 4, 5]) assert.equal(sourced(all, index), undefined, String(index))
})

test('what a frame was calling', () => {
  const all = error('/', frame('SHOP::PRICE'), frame('(SETF SHOP::PRICE)'), frame('|a b|::|c d|'), frame(null), frame('MAIN'))
  assert.deepEqual([0, 1, 2, 3, 4].map((index) => calleeOf(all, index)), ['/', 'price', 'price', '|c d|', undefined])
  assert.equal(calleeOf(error('COMMON-LISP-USER::MISSING', frame('F')), 0), 'missing')
  assert.equal(calleeOf(error(null, frame('F')), 0), undefined)
})

test('what a frame calls is found in its definition, and not in its strings, comments or its own name', () => {
  const form = '(defun share (total)\n  "(/ 1 2)" ; (/ 3 4)\n  #| (/ 5 6) |# (list #\\( (/ total 2)))'
  assert.equal(form.slice(callIn(form, '/')), '/ total 2)))')
  assert.equal(callIn(form, 'share'), undefined)
  assert.equal(callIn('(defun f () (shop:price 1))', 'price'), 13)
  assert.equal(callIn("(defun f () (mapcar #'price 1))", 'price'), 22)
})

test('a line of a shown backtrace stands for its frame', () => {
  const names = Array.from({ length: 12 }, (_, index) => frame(`F${index}`, 'program', { text: `(F "a${index}\nb" ${'x'.repeat(200)})` }))
  const all = error(null, ...names)
  for (const [index, text] of backtraceLines(all).entries()) {
    const line = text.split('\n')[0] ?? ''
    assert.deepEqual(frameAt(all, line), { index, start: `${index}: `.length })
    assert.deepEqual(frameAt(briefly(all) ?? all, `  ${line}`), { index, start: `  ${index}: `.length })
  }
  for (const line of ['', '12: (F', '1: (G 1)', 'ERROR: no']) assert.equal(frameAt(all, line), undefined, line)
})

test('a link to a result carries no long arguments', () => {
  const long = error(null, frame('F', 'program', { text: 'x'.repeat(1000), args: ['x'.repeat(200)] }))
  assert.deepEqual(briefly(long)?.backtrace, [{ ...long.backtrace[0], text: 'x'.repeat(100), args: [] }])
  assert.equal(briefly(null), null)
})
