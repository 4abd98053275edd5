// Names of the image and of files in notifications, where VS Code makes links and icons of text.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { referencesByKind } from '../src/names.js'
import { cursor, open } from './fakes/editors.js'
import { answer, fakeServer, settle } from './fakes/server.js'
import { seen } from './fakes/vscode.js'

test('a name makes no link and no icon in a notification', async () => {
  const { editor } = open('(f)')
  editor.selection = cursor(0, 1)
  const asked = referencesByKind(fakeServer())
  await settle()
  await answer(0, 'references', { name: '[Deny](command:workbench.action.reloadWindow)$(gear)', kinds: [], references: [] })
  await asked
  const message = seen.messages.at(-1) ?? ''
  assert.match(message, /nothing refers to/)
  assert.doesNotMatch(message, /\]\(|\$\(/)
})
