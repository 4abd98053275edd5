// A debug configuration as it becomes at a place of a text. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Debugger } from '../src/debugger.js'
import type { RestartsView } from '../src/restarts_view.js'
import { cursor, open } from './fakes/editors.js'
import { fakeServer, settle } from './fakes/server.js'
import { commands, debug, Selection, window } from './fakes/vscode.js'

interface Provider {
  resolveDebugConfiguration(folder: undefined, configuration: object): object | undefined
  resolveDebugConfigurationWithSubstitutedVariables(folder: undefined, configuration: object): object | undefined
}
const lisp = new Debugger(fakeServer())
const provider = debug.provider as Provider

function completed(configuration: object): object | undefined {
  const whole = provider.resolveDebugConfiguration(undefined, configuration)
  return whole && provider.resolveDebugConfigurationWithSubstitutedVariables(undefined, whole)
}

test('F5 without a launch.json gives the form and its place, where the host looks for a test', () => {
  const { editor } = open('(in-package :shop)\n(test prices\n  (is t))\n')
  editor.selection = cursor(2, 3)
  const { name, ...rest } = completed({}) as { name: string }
  assert.deepEqual(rest, { type: 'consort', request: 'launch', file: '/a.lisp', line: 3, code: '(test prices\n  (is t))', package: 'SHOP' })
  assert.match(name, /Test at the Cursor/)
  // A selection is code, and so is what a configuration says.
  editor.selection = new Selection(2, 2, 2, 8)
  assert.deepEqual(completed({ type: 'consort', request: 'launch' }), { type: 'consort', request: 'launch', code: '(is t)', package: 'SHOP' })
  editor.selection = cursor(2, 3)
  assert.equal('line' in (completed({ type: 'consort', request: 'launch', evaluate: 'top-level' }) ?? {}), false)
})

test('a configuration for a test has its place or its name', () => {
  const { editor } = open('(test prices)')
  editor.selection = cursor(0, 2)
  const wanted = { type: 'consort', request: 'launch', evaluate: 'test' }
  assert.deepEqual(completed(wanted), { ...wanted, file: '/a.lisp', line: 1 })
  const named = { type: 'consort', request: 'launch', test: 'shop/tests::prices' }
  assert.deepEqual(completed(named), named)
  assert.equal(completed({ type: 'consort', request: 'launch', evaluate: 'nothing' }), undefined)
})

test('the view of restarts has those of the stop that is shown, and a digit takes one', async () => {
  const { createDebugAdapterTracker: track } = debug.tracker as {
    createDebugAdapterTracker(session: object): { onDidSendMessage(message: object): void; onExit(): void }
  }
  const restarts = [{ index: 0, name: 'GO-ON', report: 'Go on.', arguments: false, stop: 7 }, { index: 1, name: 'ABORT', report: 'End.', arguments: false, stop: 7 }]
  const asked: object[] = []
  const customRequest = (command: string, given: object): Promise<object> => {
    if (command === 'consort/invokeRestart') asked.push(given)
    return Promise.resolve({ restarts })
  }
  const tracker = track({ id: 'restarts', configuration: {}, customRequest })
  const { view } = lisp as unknown as { view: RestartsView }
  const told = (event: string): Promise<void> => {
    tracker.onDidSendMessage({ type: 'event', event, body: { threadId: 3, reason: 'step' } })
    return view.read()
  }
  assert.deepEqual(view.getChildren(), [])
  await told('stopped')
  assert.deepEqual(view.getChildren().map(({ name }) => name), ['GO-ON', 'ABORT'])
  await commands.registered.get('consort.editor.invokeRestartNumber')?.(1)
  await commands.registered.get('consort.editor.invokeRestartNumber')?.(5)
  assert.deepEqual(asked, [{ threadId: 3, stop: 7, index: 1, name: 'ABORT' }])
  await told('continued')
  assert.deepEqual(view.getChildren(), [])
  tracker.onExit()
})

test('the notification of a stop closes when the stop was left, by whatever', async () => {
  const { createDebugAdapterTracker: track } = debug.tracker as {
    createDebugAdapterTracker(session: object): { onDidSendMessage(message: object): void; onExit(): void }
  }
  const restarts = [{ index: 0, name: 'GO-ON', report: 'Go on.', arguments: false, stop: 7 }]
  const asked: object[] = []
  const customRequest = (command: string, given: object): Promise<object> => {
    if (command === 'consort/invokeRestart') asked.push(given)
    return Promise.resolve({ restarts })
  }
  const texts: string[] = []
  let open = 0
  const { withProgress } = window
  const recorded = (_: unknown, run: (progress: object, token: object) => Promise<void>): Promise<void> => {
    open++
    const report = ({ message }: { message: string }): void => void texts.push(message)
    return run({ report }, { onCancellationRequested: () => undefined }).finally(() => open--)
  }
  Object.assign(window, { withProgress: recorded })
  try {
    const tracker = track({ id: 'noticed', configuration: {}, customRequest })
    const told = (event: string): Promise<void> => {
      tracker.onDidSendMessage({ type: 'event', event, body: { threadId: 4, reason: 'exception', text: 'E: no [x' } })
      return settle()
    }
    await told('stopped')
    assert.equal(open, 1)
    // A bracket that is not closed does not take the link's title.
    assert.match(texts[0] ?? '', /^E: no \\u\{5b\}x {2}\[0: GO-ON\]\(command:consort\.editor\.restartOfStop\?\S+\) {2}· {2}\[Choose a Restart…\]/)
    const given = JSON.parse(decodeURIComponent(/restartOfStop\?(\S+)\)/.exec(texts[0] ?? '')?.[1] ?? '')) as unknown[]
    const follow = commands.registered.get('consort.editor.restartOfStop') as (...given: unknown[]) => Promise<void>
    await follow(...given)
    assert.deepEqual(asked, [{ threadId: 4, stop: 7, index: 0, name: 'GO-ON' }])
    await told('continued')
    assert.equal(open, 0)
    await follow(...given)
    assert.equal(asked.length, 1)
    await told('stopped')
    tracker.onExit()
    await settle()
    assert.equal(open, 0)
  } finally {
    Object.assign(window, { withProgress })
  }
  lisp.dispose()
})
