// Whose a frame of a backtrace is, and where the next one was called.
import assert from 'node:assert/strict'
import test from 'node:test'
import { calleeOf, callIn, frameOf, operationIn } from '../src/frames.js'

test('whose a frame is', () => {
  assert.deepEqual(frameOf('(SHOP::PRICE 3 "a)")'), { name: 'SHOP::PRICE' })
  assert.deepEqual(frameOf('((FLET SHOP::ONE :IN SHOP::PRICE) 3)'), { name: 'SHOP::PRICE' })
  assert.deepEqual(frameOf('((LAMBDA (X) :IN (SETF SHOP::PRICE)) 3)'), { name: '(SETF SHOP::PRICE)' })
  assert.deepEqual(frameOf('((SETF SHOP::PRICE) 1 2)'), { name: '(SETF SHOP::PRICE)' })
  assert.deepEqual(frameOf('((SB-PCL::FAST-METHOD SHOP::PRICE (SHOP::BOOK)) #<unused> 1)'), { name: 'SHOP::PRICE', method: '(SHOP::BOOK)' })
  assert.deepEqual(frameOf('((:METHOD SHOP::PRICE :AROUND (T)) 1)'), { name: 'SHOP::PRICE', method: ':AROUND (T)' })
  assert.deepEqual(frameOf('(|a b|::|c d| 1)'), { name: '|a b|::|c d|' })
})

test('frames that have no source', () => {
  for (const frame of ['(/ 1 0)', '(CAR 1)', '(SB-KERNEL:FOO 1)', '("foreign function: memcpy")', '((LAMBDA ()))', 'x']) assert.equal(frameOf(frame), undefined, frame)
})

test('what the innermost frame was doing, by the message', () => {
  assert.equal(operationIn('arithmetic error DIVISION-BY-ZERO signalled\nOperation was (/ 44 0).'), '(/ 44 0)')
  assert.equal(operationIn('The function COMMON-LISP-USER::MISSING is undefined.'), '(COMMON-LISP-USER::MISSING)')
  assert.equal(operationIn('The value NIL is not of type NUMBER'), undefined)
})

test('what a frame calls is found in its definition, and not in its strings, comments or its own name', () => {
  const form = '(defun share (total)\n  "(/ 1 2)" ; (/ 3 4)\n  #| (/ 5 6) |# (list #\\( (/ total 2)))'
  assert.equal(form.slice(callIn(form, calleeOf('(/ 1 0)') ?? '')), '/ total 2)))')
  assert.equal(callIn(form, 'share'), undefined)
  assert.equal(callIn('(defun f () (shop:price 1))', calleeOf('(SHOP::PRICE 1)') ?? ''), 13)
  assert.equal(callIn("(defun f () (mapcar #'price 1))", 'price'), 22)
})
