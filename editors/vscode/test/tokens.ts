// Tokens of a text under the grammar, as VS Code computes them.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import oniguruma from 'vscode-oniguruma'
import textmate from 'vscode-textmate'

const require = createRequire(import.meta.url)

async function load(): Promise<textmate.IGrammar> {
  const wasm = readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm'))
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength) as ArrayBuffer)
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns: string[]) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text: string) => new oniguruma.OnigString(text),
    }),
    loadGrammar: () => Promise.resolve(textmate.parseRawGrammar(readFileSync('syntaxes/commonlisp.tmLanguage.json', 'utf8'), 'g.json')),
  })
  const { contributes } = JSON.parse(readFileSync('package.json', 'utf8')) as { contributes: { grammars: { scopeName: string; tokenTypes?: Record<string, string> }[] } }
  const given = contributes.grammars.find(({ scopeName }) => scopeName === 'source.commonlisp')?.tokenTypes ?? {}
  const tokenTypes = Object.fromEntries(Object.entries(given).map(([scope, type]) => [scope, TYPES.indexOf(type)]))
  const grammar = await registry.loadGrammarWithConfiguration('source.commonlisp', 1, { tokenTypes })
  if (grammar === null) throw new Error('the grammar was not loaded')
  return grammar
}

/** VS Code's standard token types, by their numbers. */
const TYPES = ['other', 'comment', 'string', 'regex']

let grammar: Promise<textmate.IGrammar> | undefined

/** Each line, followed by its tokens that have a scope of their own: `column text scope`. */
export async function tokens(text: string): Promise<{ line: number; text: string; scope: string }[]> {
  const loaded = await (grammar ??= load())
  let state: textmate.StateStack = textmate.INITIAL
  const found: { line: number; text: string; scope: string }[] = []
  text.split('\n').forEach((line, number) => {
    const result = loaded.tokenizeLine(line, state)
    state = result.ruleStack
    for (const token of result.tokens) {
      const scope = (token.scopes.at(-1) ?? '').replace(/\.commonlisp$/, '')
      const word = line.slice(token.startIndex, token.endIndex)
      if (word.trim() !== '' && scope !== 'source') found.push({ line: number + 1, text: word, scope })
    }
  })
  return found
}

/** The standard token type of the character at an offset of a text of one line. */
async function typeAt(line: string, offset: number): Promise<string | undefined> {
  const { tokens } = (await (grammar ??= load())).tokenizeLine2(line, textmate.INITIAL)
  let metadata = 0
  for (let index = 0; index < tokens.length && (tokens[index] ?? 0) <= offset; index += 2) metadata = tokens[index + 1] ?? 0
  return TYPES[(metadata >> 8) & 3]
}

/**
 * Returns true if VS Code closes a pair whose opening character is typed at the end of a line: it
 * asks for the type of the token there, and for that of a letter in the character's place.
 */
export async function closesPair(line: string, open: string): Promise<boolean> {
  const { autoClosingPairs } = JSON.parse(readFileSync('language-configuration.json', 'utf8')) as { autoClosingPairs: { open: string; notIn: string[] }[] }
  const pair = autoClosingPairs.find((pair) => (line + open).endsWith(pair.open))
  const types = [await typeAt(line, line.length - 1), await typeAt(`${line}a`, line.length)]
  return pair !== undefined && types.every((type) => !pair.notIn.includes(type ?? ''))
}
