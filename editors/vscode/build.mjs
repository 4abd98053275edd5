// build.mjs [tests]: bundle the extension and its webview into dist/, or the unit tests into
// dist/test/.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import esbuild from 'esbuild'
import { enter } from './syntaxes/enter.mjs'
import { grammar } from './syntaxes/grammar.mjs'

writeFileSync('syntaxes/commonlisp.tmLanguage.json', JSON.stringify(grammar, null, 1) + '\n')
const configuration = JSON.parse(readFileSync('language-configuration.json', 'utf8'))
writeFileSync('language-configuration.json', JSON.stringify({ ...configuration, onEnterRules: enter }, null, 1) + '\n')
mkdirSync('dist', { recursive: true })
if (process.argv[2] === 'tests') {
  const tests = readdirSync('test').filter((file) => file.endsWith('.test.ts')).map((file) => `test/${file}`)
  await esbuild.build({
    entryPoints: tests, outdir: 'dist/test', outExtension: { '.js': '.mjs' }, bundle: true, platform: 'node', format: 'esm',
    packages: 'external', sourcemap: 'inline', logLevel: 'warning',
    // These run in VS Code only; the fakes have what the tests come to.
    logOverride: { 'import-is-undefined': 'silent' },
    alias: { vscode: './test/fakes/vscode.ts', 'vscode-languageclient/node': './test/fakes/languageclient.ts' },
  })
} else {
  await Promise.all([
    esbuild.build({
      entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js', bundle: true, platform: 'node', format: 'cjs', target: 'node20',
      external: ['vscode'], minify: true, keepNames: true, logLevel: 'warning',
    }),
    esbuild.build({
      entryPoints: ['src/webview/profile.ts'], outfile: 'dist/profile.js', bundle: true, platform: 'browser', format: 'iife',
      target: 'es2022', minify: true, logLevel: 'warning', loader: { '.css': 'text' },
    }),
  ])
}
