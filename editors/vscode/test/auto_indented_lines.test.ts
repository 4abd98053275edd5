// Lines that were begun with Enter, while other changes come.
import assert from 'node:assert/strict'
import test from 'node:test'
import { AutoIndentedLines, type AutoIndentedLine, type Change } from '../src/auto_indented_lines.js'

const change = (line: number, character: number, text: string, until = { line, character }): Change => ({ start: { line, character }, end: until, text })
function after(...changes: Change[][]): AutoIndentedLine[] {
  const lines = new AutoIndentedLines()
  for (const one of changes) lines.changed(one)
  return [...lines.all]
}
const enter = [change(1, 12, '\n  ')]

test('a line that was begun with Enter is known, with its white space', () => {
  assert.deepEqual(after(enter), [{ line: 2, blank: '  ' }])
  assert.deepEqual(after(enter, [change(2, 2, '(')], [change(2, 3, ')')]), [{ line: 2, blank: '  ' }])
  assert.deepEqual(after(enter, [change(2, 7, '\n    ')]), [{ line: 2, blank: '  ' }, { line: 3, blank: '    ' }])
})

test('lines move with what is typed above them', () => {
  assert.deepEqual(after(enter, [change(0, 0, ';\n;\n')]), [{ line: 4, blank: '  ' }])
  assert.deepEqual(after(enter, [change(0, 0, '', { line: 1, character: 0 })]), [{ line: 1, blank: '  ' }])
})

test('the next Enter removes the white space of a line that stays empty', () => {
  const removal = change(2, 0, '', { line: 2, character: 2 })
  assert.deepEqual(after(enter, [change(2, 2, '\n  '), removal]), [{ line: 3, blank: '  ' }])
  assert.deepEqual(after(enter, [change(2, 2, '\n  '), removal], [change(3, 2, '(')]), [{ line: 3, blank: '  ' }])
})

test('white space that was changed since is the person\'s', () => {
  assert.deepEqual(after(enter, [change(2, 0, '    ', { line: 2, character: 2 })]), [])
  assert.deepEqual(after(enter, [change(2, 1, '', { line: 2, character: 2 })]), [])
  assert.deepEqual(after(enter, [change(1, 5, '', { line: 2, character: 4 })]), [])
  assert.deepEqual(after(enter, [change(2, 2, 'x'), change(5, 0, 'x')]), [])
})

test('a line that an answer to Enter has moved is still known', () => {
  const lines = new AutoIndentedLines()
  lines.changed([change(1, 12, '\n  ')])
  assert.equal(lines.indented(2, '        '), true)
  lines.changed([change(2, 8, '(')])
  assert.deepEqual([...lines.all], [{ line: 2, blank: '        ' }])
  assert.equal(lines.indented(3, '  '), false)
})

test('text that is pasted begins no line', () => {
  assert.deepEqual(after([change(1, 12, '\n  (list 1)')]), [])
  assert.deepEqual(after(enter, [change(2, 2, '(list 1\n      2)')]), [])
})
