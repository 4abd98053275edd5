import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { closesPair, tokens } from './tokens.js'

const EXAMPLES = '../../examples/telegraph'
const FILES: Record<string, string> = {
  tricky: 'test/fixtures/tricky.lisp',
  macros: `${EXAMPLES}/macros.lisp`,
  code: `${EXAMPLES}/code.lisp`,
  system: `${EXAMPLES}/telegraph.asd`,
}

for (const [name, file] of Object.entries(FILES)) {
  test(`the tokens of ${file} are what they were (UPDATE_SNAPSHOTS=1 writes them anew)`, async () => {
    const text = readFileSync(file, 'utf8')
    const lines = text.split('\n')
    const found = await tokens(text)
    const shown = lines.map((line, index) => {
      const own = found.filter((token) => token.line === index + 1 && !token.scope.startsWith('punctuation'))
      return [line, ...own.map((token) => `    ${token.text.trim()}  ${token.scope}`)].join('\n')
    })
    const snapshot = `test/snapshots/${name}.tokens`
    const actual = shown.join('\n')
    if (process.env['UPDATE_SNAPSHOTS'] !== undefined) writeFileSync(snapshot, actual)
    assert.equal(actual, readFileSync(snapshot, 'utf8'))
  })
}

const CASES: [text: string, word: string, scope: string | undefined][] = [
  ['#| a #| b |# c |# d', 'd', undefined],
  ['(defun foo ())', 'foo', 'entity.name.function'],
  ['(cl:defun foo ())', 'foo', 'entity.name.function'],
  ['(defun (setf foo) (x))', 'foo', 'entity.name.function'],
  ['(defclass a:b ())', 'b', 'entity.name.type.class'],
  ['(defstruct (point a))', 'point', 'entity.name.type.class'],
  ['(list #\\" x)', '#\\"', 'constant.character'],
  ["(list '|a;b| x)", 'x', undefined],
  ['(format nil "~{~a~}")', '~{', 'constant.other.placeholder.format'],
  ['(list "~a")', '~a', 'string.quoted.double'],
  ['(if (error "~a" x) "~b")', '~b', 'string.quoted.double'],
  ['(loop for x in y)', 'in', 'keyword.control.loop'],
  ['(list for)', 'for', undefined],
  ['(1+ x)', '1+', 'support.function'],
  ['#-foo x', 'x', undefined],
  ['(x -1.5d0)', '-1.5d0', 'constant.numeric'],
  ['(x a-1)', 'a-1', undefined],
  ['#+(and sbcl) x', '#+', 'keyword.control.conditional.reader'],
]
for (const [text, word, scope] of CASES) {
  test(`${word} in ${text} is ${scope ?? 'unmarked'}`, async () => {
    const token = (await tokens(text)).filter((token) => token.text.trim() === word).at(-1)
    assert.equal(token?.scope, scope)
  })
}

test('a parenthesis or quote is closed by the editor where it begins a list or string', async () => {
  const closed = async (line: string): Promise<string[]> => {
    const found: string[] = []
    for (const open of ['(', '"', '|', ';']) if (await closesPair(line, open)) found.push(open)
    return found
  }
  for (const line of ['(list ', "(list '", '(list #\\a ', '(list #', '(list |a b| ']) assert.deepEqual(await closed(line), line.endsWith('#') ? ['(', '"', '|'] : ['(', '"'], line)
  // Characters, names between bars, strings, comments.
  for (const line of ['#\\', '(list #\\', '(list #\\( #\\', '(list |a b', '"a ', '"a \\', '; a ', '#| a ']) assert.deepEqual(await closed(line), [], line)
})

test('the grammar that is shipped is the one that is written', async () => {
  const source = (await import(new URL('../../syntaxes/grammar.mjs', import.meta.url).href)) as { grammar: object }
  assert.equal(readFileSync('syntaxes/commonlisp.tmLanguage.json', 'utf8'), JSON.stringify(source.grammar, null, 1) + '\n')
})
