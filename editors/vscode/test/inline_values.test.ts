import assert from 'node:assert/strict'
import test from 'node:test'
import { namesIn } from '../src/inline_values.js'

const names = (text: string): string[] => namesIn(text, 3).map(({ line, character, name }) => `${line}:${character} ${name}`)

test('the names of a definition, once a line, without strings, comments, keywords and numbers', () => {
  assert.deepEqual(names('(defun half (x &key (by 2)) ; x\n  "doc of x"\n  (let ((y (/ x by)))\n    (list y #\\y x :y x 1.5 -3 #|y\n y|# Y)))'), [
    '3:1 defun', '3:7 half', '3:13 x', '3:21 by',
    '5:3 let', '5:9 y', '5:12 /', '5:14 x', '5:16 by',
    '6:5 list', '6:10 y', '6:16 x',
    '7:5 Y',
  ])
})

test('texts that end in the midst of something', () => {
  for (const text of ['"abc', '#|', '#', '#\\', '|a', '"\\', ';']) assert.deepEqual(names(text), [])
  assert.deepEqual(names('a"\n'), ['3:0 a'])
})
