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
  const grammar = await registry.loadGrammar('source.commonlisp')
  if (grammar === null) throw new Error('the grammar was not loaded')
  return grammar
}

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
