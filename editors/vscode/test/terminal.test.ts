// The line editor, before a small terminal that understands what it writes.
import assert from 'node:assert/strict'
import test from 'node:test'
import { endsWithPrompt, indentation, LineEditor } from '../src/line_editor.js'
import { complete } from '../src/reader.js'
import { Screen } from './fakes/screen.js'

function session(columns = 40, history: string[] = []) {
  const screen = new Screen(columns)
  const submitted: string[] = []
  let interrupted = 0
  const editor = new LineEditor(
    {
      write: (text) => screen.write(text),
      submit: (text) => submitted.push(text),
      complete,
      completions: (prefix) => ['defun', 'defmacro', 'defmethod', 'car'].filter((name) => name.startsWith(prefix)),
      interrupt: () => interrupted++,
      end: () => undefined,
    },
    history,
  )
  editor.resize(columns)
  editor.begin('> ')
  return { screen, submitted, editor, interrupted: () => interrupted }
}
const UP = '\x1b[A', DOWN = '\x1b[B', LEFT = '\x1b[D', HOME = '\x01', END = '\x05', RUBOUT = '\x7f'

test('a whole form is submitted', () => {
  const { editor, submitted, screen } = session()
  editor.input('(+ 1 2)\r')
  assert.deepEqual(submitted, ['(+ 1 2)'])
  assert.equal(screen.text, '> (+ 1 2)')
})

test('an incomplete form goes on in the next line, indented', () => {
  const { editor, submitted, screen } = session()
  editor.input('(list 1\r2)')
  assert.equal(screen.text, '> (list 1\n    2)')
  assert.equal(screen.row, 1)
  editor.input('\r')
  assert.deepEqual(submitted, ['(list 1\n  2)'])
})

test('what is typed in the middle', () => {
  const { editor, submitted } = session()
  editor.input(`(a c)${LEFT}${LEFT}b ${HOME}'${END}${RUBOUT})\r`)
  assert.deepEqual(submitted, ["'(a b c)"])
})

test('history, and back to the draft', () => {
  const { editor, submitted, screen } = session(40, ['(one)', '(two\n three)'])
  editor.input('draft')
  editor.input(UP)
  assert.match(screen.text, /\(two\n/)
  editor.input(UP + UP)
  assert.equal(screen.text, '> (one)')
  editor.input(DOWN + DOWN + DOWN)
  assert.equal(screen.text, '> draft')
  editor.input(`${UP}\r`)
  assert.deepEqual(submitted, ['(two\n three)'])
})

test('an entry of the history that was changed is there again, until something is submitted', () => {
  const { editor, submitted, screen } = session(40, ['(one)', '(two)'])
  editor.input(`draft${UP} changed${UP}`)
  assert.equal(screen.text, '> (one)')
  editor.input(DOWN)
  assert.equal(screen.text, '> (two) changed')
  editor.input(DOWN)
  assert.equal(screen.text, '> draft')
  editor.input(`${UP}${UP}\r`)
  assert.deepEqual(submitted, ['(one)'])
  editor.begin('> ')
  editor.input(`${UP}${UP}`)
  assert.match(screen.text, /\n> \(two\)$/)
})

test('a line that wraps', () => {
  const { editor, screen, submitted } = session(20)
  const form = '(list 1234567890 1234567890 1234567890)'
  editor.input(form)
  assert.equal(screen.rows.join(''), `> ${form}`)
  for (let i = 0; i < 30; i++) editor.input(LEFT)
  editor.input('x')
  assert.equal(screen.rows.join(''), `> ${form.slice(0, -30)}x${form.slice(-30)}`)
  editor.input('\r')
  assert.equal(submitted.length, 1)
})

test('output while one types stands above the line', () => {
  const { editor, screen } = session()
  editor.input('(half')
  editor.above('from a thread\n')
  assert.equal(screen.text, 'from a thread\n> (half')
})

test('completion: what is common, then the choices', () => {
  const { editor, screen } = session()
  editor.input('(de\t')
  assert.equal(screen.text, '> (def')
  editor.input('m\t')
  assert.equal(screen.text, 'defmacro  defmethod\n> (defm')
  editor.input('ac\t')
  assert.match(screen.text, /> \(defmacro$/)
})

test('keys while it runs: Ctrl-C interrupts, text is kept for later', () => {
  const { editor, submitted, interrupted } = session()
  editor.input('(loop)\r')
  editor.input('(next)\r')
  assert.equal(submitted.length, 1)
  editor.begin('> ')
  assert.deepEqual(submitted, ['(loop)', '(next)'])
  editor.input('\x03')
  assert.equal(interrupted(), 1)
})

test('a pasted text is no command', () => {
  const { editor, submitted } = session()
  editor.input('\x1b[200~(a)\n(b)\x1b[201~')
  assert.deepEqual(submitted, [])
  editor.input('\r')
  assert.deepEqual(submitted, ['(a)\n(b)'])
})

test('indentation', () => {
  assert.equal(indentation('(defun f (x)'), '  ')
  assert.equal(indentation('(a\n  (b'), '    ')
  assert.equal(indentation('(a #\\( "("'), '  ')
  assert.equal(indentation('(a "x'), '')
})

test('completion: an answer that comes later, and one that comes too late', async () => {
  const screen = new Screen(40)
  let answer: (found: string[]) => void = () => undefined
  const editor = new LineEditor({
    write: (text) => screen.write(text), submit: () => undefined, complete, interrupt: () => undefined, end: () => undefined,
    completions: () => new Promise<string[]>((resolve) => (answer = resolve)),
  })
  editor.begin('> ')
  editor.input('(m-v-b\t')
  answer(['multiple-value-bind'])
  await Promise.resolve()
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(screen.text, '> (multiple-value-bind')
  editor.input(' (ca\t')
  editor.input('x')
  answer(['car'])
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(screen.text, '> (multiple-value-bind (cax')
})

test('running code reads a line: what is typed is no form, and is not in the history', () => {
  const { screen, editor, submitted } = session()
  editor.begin('> ')
  editor.input('(read-line)\r')
  const answers: (string | undefined)[] = []
  screen.write('Your name? ')
  editor.ask('Your name? ', (text) => answers.push(text))
  editor.input('(Ada\r')
  assert.equal(answers.at(-1), '(Ada')
  assert.equal(screen.text, '> (read-line)\nYour name? (Ada')
  editor.ask('', (text) => answers.push(text))
  editor.input('\x04')
  editor.ask('', (text) => answers.push(text))
  editor.withdraw()
  assert.equal(answers.length, 3)
  assert.equal(answers.filter((one) => one === undefined).length, 2)
  assert.deepEqual(submitted, ['(read-line)'])
  assert.deepEqual(editor.past, ['(read-line)'])
})

test('a question waits for the output of its prompt, also of a line that has ended', () => {
  assert.ok(endsWithPrompt('', ' '))
  assert.ok(endsWithPrompt('a\nYour name? ', 'Your name? '))
  assert.ok(endsWithPrompt('Your name?\n\n', 'Your name?'))
  assert.ok(!endsWithPrompt('', 'Your name? '))
  assert.ok(!endsWithPrompt('Your na', 'Your name? '))
})

test('Ctrl-C interrupts the code that reads, whatever was typed', () => {
  const { editor, interrupted } = session()
  editor.ask('', () => assert.fail('no answer'))
  editor.input('abc\x03')
  assert.equal(interrupted(), 1)
})

test('each message that comes while code runs has a line of its own', () => {
  const { screen, editor } = session()
  editor.begin('> ')
  editor.input('1\r')
  editor.above('; starting')
  editor.above('; ready')
  assert.equal(screen.text, '> 1\n; starting\n; ready')
})
