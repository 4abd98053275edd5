// package.mjs [--bundle [BINARY]]: the extension as a .vsix. With --bundle for this platform only,
// with the program `consort` in it: BINARY, or $CONSORT_BIN, or the release build of this
// repository.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'

const [flag, given] = process.argv.slice(2)
if (flag !== undefined && flag !== '--bundle') {
  console.error('usage: npm run package [-- --bundle [BINARY]]')
  process.exit(2)
}
const run = (program, ...args) => {
  const { status } = spawnSync(program, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
/**
 * As VS Code names platforms; `process.platform` and `process.arch` are the same words for those
 * that Consort runs on.
 */
const target = `${process.platform}-${process.arch}`
const out = flag === undefined ? 'consort.vsix' : `consort-${target}.vsix`

run(process.execPath, 'build.mjs')
copyFileSync('../../LICENSE-MIT', 'LICENSE.txt')
rmSync('bin', { recursive: true, force: true })
try {
  if (flag === '--bundle') {
    const binary = given ?? process.env.CONSORT_BIN ?? '../../target/release/consort'
    if (!existsSync(binary)) {
      console.error(`${binary} is not there. Build it: cargo build --release -p consort`)
      process.exit(2)
    }
    mkdirSync('bin')
    copyFileSync(binary, 'bin/consort')
    chmodSync('bin/consort', 0o755)
  }
  run('npx', '--no-install', 'vsce', 'package', '--no-dependencies', '--allow-missing-repository', '--out', out, ...(flag === undefined ? [] : ['--target', target]))
  console.log(`${out}: ${statSync(out).size} bytes`)
} finally {
  rmSync('bin', { recursive: true, force: true })
}
