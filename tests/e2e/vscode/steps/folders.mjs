// A window with several folders: one image for all of them, also for an agent in the second.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent } from '../agent.mjs'

export default async function ({ workbench, place, step }) {
  await step('an agent that is started in the second folder meets the image of the window', async () => {
    const second = join(place, 'second')
    mkdirSync(second, { recursive: true })
    writeFileSync(join(second, 'second.asd'), '(defsystem "second")\n')
    writeFileSync(join(second, 'own.lisp'), '(defun of-the-second () :second)\n')
    writeFileSync(join(place, 'two.code-workspace'), JSON.stringify({ folders: [{ path: 'telegraph' }, { path: 'second' }] }))
    await workbench.workspace('two.code-workspace')
    try {
      await workbench.ready()
      await workbench.scratch('(defparameter *met* :in-the-window)')
      await workbench.status().filter({ hasText: 'Lisp in telegraph' }).waitFor()
      await workbench.evaluate('scratch.lisp', '*met*', '*MET*')
      const agent = await Agent.startIn(second)
      try {
        const { content } = await agent.call('evaluate-lisp', { code: 'cl-user::*met*' })
        assert.match(content[0].text, /:IN-THE-WINDOW/)
        const read = await agent.call('lisp-read-file', { path: 'own.lisp' })
        assert.match(read.content[0].text, /of-the-second/)
      } finally {
        await agent.end()
      }
    } finally {
      await workbench.folder('telegraph')
    }
  })
}
