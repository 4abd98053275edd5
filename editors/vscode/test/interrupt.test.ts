// The answers to an interrupt that a person is told. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { registerEvaluationCommands } from '../src/evaluation_commands.js'
import { answer, fakeServer } from './fakes/server.js'
import { seen } from './fakes/vscode.js'

const server = fakeServer()
const commands = new Map<string, () => unknown>()
registerEvaluationCommands({ server } as never, (name, run) => commands.set(name, run as () => unknown))

beforeEach(() => {
  seen.messages.length = 0
})

async function interrupt(interrupted: number): Promise<string[]> {
  const done = commands.get('interrupt')?.()
  await answer(0, 'interrupt', { interrupted })
  await done
  return seen.messages.splice(0)
}

test('an interrupt while Lisp starts says whether it ended the code that is loaded', async () => {
  server.condition = { state: 'starting', what: 'loading shop.lisp' } as never
  assert.deepEqual(await interrupt(1), ['Interrupted'])
  const advice = 'Consort: Lisp is still starting (loading shop.lisp). If that does not end, change the file that it loads and run the command "Consort: Restart Lisp".'
  assert.deepEqual(await interrupt(0), [advice])
  server.condition = { state: 'ready' } as never
  assert.deepEqual([await interrupt(1), await interrupt(0)], [['Interrupted'], ['Nothing was running']])
})
