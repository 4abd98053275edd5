// e2e.mjs BASE PLACE OUT: a person's use of the extension, step by step, in the user interface. No
// step needs another.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import activation from './steps/activation.mjs'
import approval from './steps/approval.mjs'
import backtrace from './steps/backtrace.mjs'
import beginning from './steps/beginning.mjs'
import debugging from './steps/debugger.mjs'
import evaluation from './steps/evaluation.mjs'
import expansion from './steps/expansion.mjs'
import fixing from './steps/fixing.mjs'
import folders from './steps/folders.mjs'
import inspecting from './steps/inspector.mjs'
import lasting from './steps/lasting.mjs'
import names from './steps/names.mjs'
import profile from './steps/profile.mjs'
import program from './steps/program.mjs'
import frozen from './steps/frozen.mjs'
import hostile from './steps/hostile.mjs'
import recording from './steps/recording.mjs'
import repl from './steps/repl.mjs'
import testing from './steps/testing.mjs'
import trees from './steps/trees.mjs'
import typing from './steps/typing.mjs'
import { Steps } from './steps.mjs'
import { Workbench } from './workbench.mjs'

const [base, place, out] = process.argv.slice(2)
const workbench = await Workbench.open(base, place, out)
const steps = new Steps(workbench, place)
const workspace = join(place, 'telegraph')

/** The output of `consort status` for the workspace. */
const status = () => JSON.parse(execFileSync(process.env.CONSORT_BIN, ['status', '--json'], { cwd: workspace, encoding: 'utf8' }))
/** Loads the example into the image, unless it is there. */
async function loaded() {
  await workbench.ready()
  if (status().image.facts?.systems?.includes('telegraph') === true) return
  await workbench.ran('loading telegraph', () => workbench.probe.execute('consort.editor.loadSystem', { name: 'telegraph' }))
  assert.ok(status().image.facts.systems.includes('telegraph'), 'telegraph was not loaded')
}

/** The tools of the steps in steps/. */
const about = { workbench, page: workbench.page, place, step: steps.step, status, loaded }

await workbench.folder('telegraph')
for (const part of [fixing, evaluation, repl, lasting, expansion, profile, recording, frozen, approval, names, backtrace, debugging, testing, trees, inspecting, typing, folders, hostile, activation, program, beginning]) await part(about)
await steps.step('no outside host was asked', async () => assert.deepEqual([...workbench.outside], []))

await workbench.context.close()
process.exitCode = steps.finish() ? 0 : 1
