// package.json and the code say the same.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { keySheet, SLIME, STEPPER, STRICT } from '../src/keys.js'
import { COMMANDS } from '../src/lsp_ext.js'

interface Manifest {
  contributes: {
    commands: { command: string; title: string; category: string }[]
    keybindings: { command: string; key: string; when?: string }[]
    menus: Record<string, { command: string; when?: string }[]>
    languages: { id: string; extensions: string[] }[]
    breakpoints: { language: string }[]
    debuggers: { type: string; languages: string[]; initialConfigurations: { type: string; request: string; evaluate?: string }[]; configurationAttributes: { launch: { properties: { evaluate: { enum: string[] } } } } }[]
    walkthroughs: { steps: { media: { markdown: string } }[] }[]
  }
}
const { contributes } = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest
const source = readdirSync('src').filter((file) => file.endsWith('.ts')).map((file) => readFileSync(`src/${file}`, 'utf8')).join('\n')
const declared = new Set(contributes.commands.map(({ command }) => command))

test('every command is registered, and every registered one is declared', () => {
  const registered = new Set([
    ...[...source.matchAll(/(?<!\.)(?:command|evaluate|reload|trace)\('([\w.]+)'/g)].map((match) => `consort.editor.${match[1]}`),
    ...[...source.matchAll(/registerCommand\('(consort\.editor\.[\w.]+)'/g)].map((match) => match[1] ?? ''),
    ...[...(/ACTIONS = \{([^}]*)\}/.exec(source)?.[1] ?? '').matchAll(/^ {2}(\w+):/gm)].map((match) => `consort.editor.structure.${match[1]}`),
  ])
  assert.deepEqual([...declared].sort(), [...registered].sort())
  for (const { category } of contributes.commands) assert.equal(category, 'Consort')
})

test('the state for tests is registered, and offered to nobody', () => {
  assert.match(source, /registerCommand\('_consort\.state'/)
  assert.doesNotMatch(JSON.stringify(contributes), /_consort\.state/)
})

test('menus and keys name commands that exist, and no key twice', () => {
  for (const entry of [...Object.values(contributes.menus).flat(), ...contributes.keybindings]) assert.ok(declared.has(entry.command), entry.command)
  const keys = contributes.keybindings.map(({ key }) => key)
  assert.equal(new Set(keys).size, keys.length, 'a key is bound twice')
})

test('an evaluation that waits for the start is interrupted by the key that its line names', () => {
  for (const { key, when } of contributes.keybindings.filter(({ command, key }) => command === 'consort.editor.interrupt' && key.startsWith('ctrl+alt+l'))) assert.match(when ?? '', /consort\.image == starting/, key)
})

test('conditions name commands of the server that are known', () => {
  const text = JSON.stringify(contributes)
  for (const [, name] of text.matchAll(/consort\.can\.(\w+)/g)) assert.ok((COMMANDS as readonly string[]).includes(name ?? ''), name)
})

test('files that are named exist, and the languages have all extensions', () => {
  for (const step of contributes.walkthroughs.flatMap(({ steps }) => steps)) assert.ok(existsSync(step.media.markdown))
  assert.deepEqual(contributes.languages.flatMap(({ extensions }) => extensions).sort(), ['.asd', '.cl', '.lisp', '.lsp', '.ros', '.sexp'])
})

test('nothing names a host to load from', () => {
  assert.doesNotMatch(source, /https?:\/\//)
})

test('activation waits for nothing and is not asked for by every window', () => {
  const { activationEvents } = JSON.parse(readFileSync('package.json', 'utf8')) as { activationEvents: string[] }
  assert.deepEqual(activationEvents.filter((event) => !/^(onLanguage:|workspaceContains:|onDebug\w+:consort$)/.test(event)), [])
  const extension = readFileSync('src/extension.ts', 'utf8')
  const activate = extension.slice(extension.indexOf('export function activate'))
  assert.match(activate, /^export function activate/, 'activate is not async')
  assert.match(activate, /void server\.start\(\)\n.*activated in/)
  // Activation reads no file and starts no program, except for finding the binary.
  const sync = readdirSync('src').filter((file) => file.endsWith('.ts') && /\b(readFileSync|readdirSync|execSync|execFileSync|spawnSync)\b/.test(readFileSync(`src/${file}`, 'utf8')))
  assert.deepEqual(sync, [])
})

test("SLIME's keys are an option, and the sheet has all that are on", () => {
  const slime = contributes.keybindings.filter(({ when }) => when?.includes(SLIME) === true)
  // The palette shows the last key of a command where no condition is true.
  assert.deepEqual(contributes.keybindings.slice(0, slime.length), slime)
  assert.ok(slime.some(({ key, command }) => key === 'ctrl+c ctrl+c' && command === 'consort.editor.evalTopLevelForm'))
  // No key of VS Code's own is taken without the option.
  for (const { key, when } of contributes.keybindings) assert.ok(/^(?:ctrl\+alt\+l |alt\+enter$)/.test(key) || when?.includes(SLIME) === true || when?.includes(STRICT) === true || when?.includes(STEPPER) === true || when === 'focusedView == consort.restarts', key)
  const [plain, both] = [keySheet(contributes, false), keySheet(contributes, true)]
  assert.doesNotMatch(plain, /^(?:Delete|Backspace) /m)
  assert.match(keySheet(contributes, false, true), /^Delete +/m)
  assert.match(plain, /^Alt\+Enter +Evaluate the Top-Level Form$/m)
  assert.match(plain, /^0 to 9 +Debug: Invoke a Restart by Number$/m)
  // Beside a text there is no room for much.
  assert.ok(plain.split('\n').every((line) => line.search(/ {2}/) <= 22), plain)
  assert.match(both, /^Alt\+Enter, Ctrl\+C Ctrl\+C +Evaluate the Top-Level Form$/m)
  assert.match(both, /^Ctrl\+Alt\+L E, Ctrl\+X Ctrl\+E /m)
})

test('what has nothing to act on is not in the palette, and no key of it is taken', () => {
  const palette = new Map(contributes.menus['commandPalette']?.map(({ command, when }) => [command.replace('consort.editor.', ''), when ?? '']))
  const conditions: [RegExp, RegExp][] = [
    [/^(?:copy|open)Result$/, /consort\.evaluated/],
    [/^stepRecording$/, /consort\.recorded/],
    // Of the value that is inspected.
    [/^inspect(?!$|Result|Back)/, /consort\.inspected/],
    [/^expand(?:Further|Back|InPlace)$/, /resourcePath =~ \/\^\.expansion\//],
    // Texts that are shown beside the editor are Lisp, too.
    [/^structure\.(?!move|select)|^evalToComment$|^moveDefinition$/, /!editorReadonly/],
  ]
  for (const [which, condition] of conditions) {
    const found = [...declared].map((command) => command.replace('consort.editor.', '')).filter((command) => which.test(command))
    assert.ok(found.length > 0, String(which))
    for (const command of found) assert.match(palette.get(command) ?? '', condition, command)
  }
  // Each command that begins by looking for the cursor in Lisp says so.
  const bodies = source.split(/^ {2}(?=(?:command|reload)\('[\w.]+')/m).slice(1).map((body) => body.replace(/^\}[^]*/m, ''))
  const needy = bodies.filter((body) => /\b(?:placeHere|lispEditor|chosenText)\b/.test(body)).map((body) => /'([\w.]+)'/.exec(body)?.[1] ?? '')
  assert.ok(needy.includes('undefine') && needy.includes('compileForm') && !needy.includes('undoReload'), String(needy))
  for (const command of needy) assert.match(palette.get(command) ?? '', /editorLangId/, command)
  // The first key of a chord is lost for everything else: in other texts, Ctrl+C copies.
  for (const { key, when } of contributes.keybindings.filter(({ key }) => /^ctrl\+[a-z] /.test(key))) assert.match(when ?? '', /^editorTextFocus && editorLangId/, key)
})

test("the macro stepper's keys are for its own read-only copies", () => {
  assert.equal(STEPPER, `resourceScheme == ${/STEPPER = '([\w-]+)'/.exec(readFileSync('src/macro_stepper.ts', 'utf8'))?.[1]}`)
  const own = contributes.keybindings.filter(({ when }) => when?.includes(STEPPER) === true)
  assert.deepEqual(own.map(({ key }) => key), ['e', 'c', 'n', 'p', 'q'])
  for (const { when } of own) assert.match(when ?? '', /^editorTextFocus && /)
})

test('the debugger of the manifest is the one that is registered, for the same languages', () => {
  const code = readFileSync('src/debugger.ts', 'utf8')
  const [own, ...others] = contributes.debuggers
  assert.deepEqual(others, [])
  assert.equal(own?.type, /const TYPE = '(\w+)'/.exec(code)?.[1])
  assert.deepEqual(own?.languages, [...(/LANGUAGES = \[([^\]]*)\]/.exec(readFileSync('src/server.ts', 'utf8'))?.[1] ?? '').matchAll(/'(\w+)'/g)].map(([, name]) => name))
  const values = [...(/EVALUATE[^{]*\{([^}]*)\}/.exec(code)?.[1] ?? '').matchAll(/'?([\w-]+)'?:/g)].map(([, name]) => name)
  assert.deepEqual(own?.configurationAttributes.launch.properties.evaluate.enum, values)
  for (const { type, evaluate } of own?.initialConfigurations ?? []) {
    assert.equal(type, own?.type)
    assert.ok(evaluate === undefined || values.includes(evaluate), evaluate)
  }
  // A language with a debugger has breakpoints.
  assert.deepEqual(contributes.breakpoints.map(({ language }) => language), own?.languages)
})

test('a debugger is refused in a folder that is not trusted, before the program is looked for', () => {
  const adapter = /private adapter\(\)[^]*?\n {2}\}/.exec(readFileSync('src/debugger.ts', 'utf8'))?.[0] ?? ''
  assert.match(adapter, /isTrusted\) throw[^]*server\.program\(\)/)
})
