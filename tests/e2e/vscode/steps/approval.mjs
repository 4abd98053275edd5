// An agent asks to change running code: the person sees the code, allows or denies, uses what is new, and takes it back.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Agent } from '../agent.mjs'

export default async function ({ workbench, page, place, step, scratch, text, file }) {
  await step('an agent asks, the person sees the code and allows; another is denied; undo brings the old one back', async () => {
    await scratch('(defun pace () :slow)\n\n(pace)')
    await workbench.cursor('scratch.lisp', 'defun pace')
    await page.keyboard.press('Alt+Enter')
    await workbench.shows('scratch.lisp', 'PACE')
    const pace = async (value) => {
      await file('scratch.lisp')
      await workbench.cursor('scratch.lisp', /^\(pace\)/)
      await page.keyboard.press('Alt+Enter')
      await workbench.shows('scratch.lisp', value)
    }
    const agent = await Agent.start(join(place, 'telegraph'))
    try {
      assert.ok((await agent.tools()).includes('code_replace_function'))
      const replace = (value) => agent.call('code_replace_function', { function: 'cl-user::pace', new_code: `(defun pace ()\n  "From the agent."\n  ${value})`, package: 'CL-USER' })
      const answer = replace(':fast')
      const notice = page.locator('.notification-toast', { hasText: 'Allow for this session' })
      await notice.waitFor()
      await workbench.until('the code', async () => (await text('approval')).includes('"From the agent."'))
      // All that can be answered is in the picture.
      for (const words of [/^Allow$/, /^Allow for this session$/, /^Deny$/]) await notice.locator('a', { hasText: words }).waitFor()
      await workbench.both('8-approval', () => page.waitForTimeout(300))
      await notice.locator('a', { hasText: /^Allow$/ }).click()
      assert.notEqual((await answer).isError, true)
      await notice.waitFor({ state: 'detached' })
      await pace(':FAST')
      const denied = replace(':stolen')
      await notice.waitFor()
      await notice.locator('a', { hasText: /^Deny$/ }).click()
      assert.equal((await denied).isError, true)
      await notice.waitFor({ state: 'detached' })
      await pace(':FAST')
      await workbench.command('Consort: Undo the Last Reload')
      await workbench.until('the undo', async () => (await page.locator('.statusbar-item', { hasText: /PACE|undo|put back/i }).count()) > 0)
      await pace(':SLOW')
    } finally {
      await agent.end()
    }
  }, 'Consort: Undo the Last Reload')

  await step('an agent is told where the person is', async () => {
    await file('code.lisp')
    await workbench.cursor('code.lisp', '(defun encode (text)')
    const agent = await Agent.start(join(place, 'telegraph'))
    try {
      await workbench.until('the place', async () => {
        const { content } = await agent.call('editor-context')
        return /code\.lisp/.test(content[0].text) && /\b14\b/.test(content[0].text)
      })
    } finally {
      await agent.end()
    }
  })
}
