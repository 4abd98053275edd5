// An agent asks to change running code: the person sees the code, allows or denies it, uses the new
// definition, and undoes it.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Agent } from '../agent.mjs'
import { OtherEditor } from '../other_editor.mjs'

export default async function ({ workbench, page, place, step, loaded }) {
  await step('an agent asks, the person sees the code and allows; another is denied; undo brings the old one back', async () => {
    await workbench.scratch('(defun pace () :slow)\n\n(pace)')
    await workbench.evaluate('scratch.lisp', 'defun pace', 'PACE')
    const pace = async (value) => {
      await workbench.file('scratch.lisp')
      await workbench.evaluate('scratch.lisp', /^\(pace\)/, value)
    }
    const agent = await Agent.start(join(place, 'telegraph'))
    try {
      assert.ok((await agent.tools()).includes('code_replace_function'))
      const replace = (value) => agent.call('code_replace_function', { function: 'cl-user::pace', new_code: `(defun pace ()\n  "From the agent."\n  ${value})`, package: 'CL-USER' })
      const notice = page.locator('.notification-toast', { hasText: 'Allow for this session' })
      /**
       * Answers by the link with these words. The notification counts down, and is redrawn
       * meanwhile.
       */
      const answer = (words) => workbench.clicked(`the answer ${words}`, notice.locator('a', { hasText: words }), async () => (await notice.count()) === 0)
      // In an object, so that awaiting it waits for the question and not for its answer.
      const begin = async (value) => {
        const answered = replace(value)
        await notice.waitFor()
        await workbench.until('the code', async () => /"From the agent\."/.test(await workbench.text('approval')) && (await workbench.text('approval')).includes(value))
        return { answered }
      }
      const first = await begin(':fast')
      // All answers are visible.
      for (const words of [/^Allow$/, /^Allow for this session$/, /^Deny$/]) await notice.locator('a', { hasText: words }).waitFor()
      // The definition that would be replaced is beside the new one.
      await workbench.until('the definition of now', async () => /\(defun pace \(\) :slow\)/.test(await workbench.text('before')))
      await page.locator('.monaco-diff-editor').first().waitFor()
      await page.mouse.move(640, 795)
      await workbench.until('no hover', async () => (await page.locator('.monaco-hover:not(.hidden)').filter({ visible: true }).count()) === 0)
      await workbench.both('8-approval')
      await answer(/^Allow$/)
      assert.notEqual((await first.answered).isError, true)
      await pace(':FAST')
      // A notification reports the change, with an undo button.
      await workbench.ran('the undo', () => workbench.press('CL-USER::PACE replaced', 'Undo'))
      await pace(':SLOW')
      const second = await begin(':faster')
      await answer(/^Allow$/)
      assert.notEqual((await second.answered).isError, true)
      await pace(':FASTER')
      // Written into the file in place of the old definition, which can be undone.
      await workbench.press('CL-USER::PACE replaced', 'Write to file')
      await workbench.until('the definition in the file', async () => /\(defun pace \(\)\s+"From the agent\."\s+:faster\)/.test(await workbench.text('scratch.lisp')))
      await workbench.file('scratch.lisp')
      await page.keyboard.press('Control+z')
      await workbench.until('the definition of before', async () => /\(defun pace \(\) :slow\)/.test(await workbench.text('scratch.lisp')))
      await workbench.ran('the undo', () => workbench.command('Consort: Undo the Last Reload'))
      await pace(':SLOW')
      const third = await begin(':stolen')
      await answer(/^Deny$/)
      assert.equal((await third.answered).isError, true)
      await pace(':SLOW')
    } finally {
      await agent.end()
    }
  }, 'undoReload')

  await step('a question that another editor answers goes away, and it is said who answered', async () => {
    const workspace = join(place, 'telegraph')
    await workbench.scratch('(defun pace () :slow)')
    await workbench.evaluate('scratch.lisp', 'defun pace', 'PACE')
    const agent = await Agent.start(workspace)
    const other = await OtherEditor.start(workspace)
    try {
      const notice = page.locator('.notification-toast', { hasText: 'Allow for this session' })
      for (const [decision, word] of [['deny', 'refused'], ['allow', 'allowed']]) {
        const answered = agent.call('code_replace_function', { function: 'cl-user::pace', new_code: `(defun pace () :${word})`, package: 'CL-USER' })
        answered.catch(() => undefined)
        await notice.waitFor()
        await workbench.until('the question in the other editor', () => other.asked !== undefined)
        other.decide(decision)
        assert.equal((await answered).isError === true, decision === 'deny')
        await notice.waitFor({ state: 'detached' })
        await workbench.told(`${word} it): Replace the function cl-user::pace`)
        await page.locator('.monaco-diff-editor').first().waitFor({ state: 'detached' })
      }
    } finally {
      await other.end()
      await agent.end()
    }
  })

  await step('the text that is read stays where it is while an agent asks', async () => {
    const lines = Array.from({ length: 200 }, (_, i) => `(defun step-${i} (x) "Has a documentation string." (+ x ${i}))`)
    await workbench.scratch(['(defun pace () :slow)', ...lines].join('\n\n'))
    await page.keyboard.press('Control+Home')
    const agent = await Agent.start(join(place, 'telegraph'))
    try {
      await agent.call('evaluate-lisp', { code: '(defun pace () :slow)', package: 'CL-USER' })
      await workbench.file('scratch.lisp')
      const beginning = JSON.stringify(await workbench.top('scratch.lisp'))
      // Scrolling is smooth, and takes a moment; an editor that is just being shown drops it.
      let before
      await workbench.until('the text to rest', async () => {
        const last = JSON.stringify(before)
        before = await workbench.top('scratch.lisp')
        const rests = JSON.stringify(before) === last
        if (last === undefined || (rests && last === beginning)) await page.keyboard.press('PageDown')
        return rests && last !== beginning
      })
      const notice = page.locator('.notification-toast', { hasText: 'Allow for this session' })
      const width = async () => Math.round((await workbench.editor('scratch.lisp').boundingBox()).width)
      const whole = await width()
      const answered = agent.call('code_replace_function', { function: 'cl-user::pace', new_code: '(defun pace () :other)', package: 'CL-USER' })
      // A step may fail before the answer, and then nobody handles the rejection.
      answered.catch(() => undefined)
      await notice.waitFor()
      await page.locator('.monaco-diff-editor').first().waitFor()
      // The text is laid out anew when another editor is beside it.
      await workbench.until('half of the width', async () => (await width()) < whole)
      const stays = (when) => workbench.until(`the text where it was ${when}`, async () => {
        assert.deepEqual(await workbench.top('scratch.lisp'), before)
        return true
      })
      await stays('while the question stands there')
      await workbench.clicked('the answer', notice.locator('a', { hasText: /^Deny$/ }), async () => (await notice.count()) === 0)
      assert.equal((await answered).isError, true)
      await page.locator('.monaco-diff-editor').first().waitFor({ state: 'detached' })
      await workbench.until('all of the width', async () => (await width()) === whole)
      await stays('after the answer')
    } finally {
      await agent.end()
    }
  })

  await step('an agent is told where the person is', async () => {
    await loaded()
    await workbench.file('code.lisp')
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
