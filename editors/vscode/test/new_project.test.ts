// The place that is proposed for a new project. `vscode` is a fake here (build.mjs).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newProject } from '../src/new_project.js'
import { Uri, window, workspace } from './fakes/vscode.js'

test('a new project is proposed beside the one that is open, not in it', async () => {
  const proposed: (string | undefined)[] = []
  Object.assign(window, {
    showInputBox: () => Promise.resolve('shop'),
    showOpenDialog: ({ defaultUri }: { defaultUri?: Uri }) => Promise.resolve(void proposed.push(defaultUri?.path)),
  })
  await newProject({} as never)
  Object.assign(workspace, { workspaceFolders: [{ uri: Uri.file('/work/telegraph') }] })
  await newProject({} as never)
  assert.deepEqual(proposed, [undefined, '/work/telegraph/..'])
})
