// State that outlives other state: the side bar's systems, an image that is killed, and a window
// that is loaded anew.
import assert from 'node:assert/strict'
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, step, status, loaded }) {
  await step('the side bar: a system is loaded, and who is connected', async () => {
    // Opened by its icon, which hides the view if it is open already.
    const systems = page.locator('.pane-body .monaco-list-row', { hasText: /^telegraph\s*(telegraph\.asd|loaded)/ }).first()
    await workbench.until('the systems', async () => {
      if (await systems.isVisible()) return true
      await page.locator('.activitybar a[aria-label="Common Lisp"], .activitybar [aria-label^="Common Lisp"]').first().click(once)
      return workbench.late(() => systems.isVisible())
    })
    await workbench.ran('loading telegraph', async () => {
      const button = systems.locator('a[aria-label*="Load a System"]')
      await workbench.until('a click on the button', async () => {
        await systems.hover(once)
        await button.click(once)
        return true
      })
    })
    assert.ok(status().image.facts.systems.includes('telegraph'))
    await page.locator('.pane-body .monaco-list-row', { hasText: /^telegraph\s*loaded/ }).first().waitFor()
    await page.locator('.pane-body .monaco-list-row', { hasText: 'Connected' }).first().waitFor()
    await page.locator('.pane-body .monaco-list-row', { hasText: /Load system telegraph/ }).first().waitFor()
  })

  await step('what the server offers is in the palette', async () => {
    for (const title of ['Consort: Open the REPL', 'Consort: Untrace a Function']) {
      await workbench.palette(title)
      await page.keyboard.press('Escape')
      await workbench.quickInput().waitFor({ state: 'hidden' })
    }
  })

  await step('the palette has the commands of an editor only with one, and those of a value or a result with one', async () => {
    /** The rows of the palette for a title. */
    const offered = async (title) => {
      await workbench.until('the palette', async () => {
        if (!(await workbench.quickInput().isVisible())) await page.keyboard.press('F1')
        // One that is always there shows that the list is made.
        return workbench.choosable('>Consort: Doctor', 'Consort: Doctor')
      })
      await workbench.quickInput().locator('input').first().fill(`>${title}`)
      await workbench.until('another list', async () => (await workbench.chosenRow()) !== 'Consort: Doctor')
      const there = (await workbench.chosenRow()) === title
      await page.keyboard.press('Escape')
      await workbench.quickInput().waitFor({ state: 'hidden' })
      return there
    }
    const [form, slurp, part, further] = ['Evaluate the Form at the Cursor', 'Structure: Slurp the Next Form', 'Inspect This Part', 'Expand Further'].map((title) => `Consort: ${title}`)
    for (const title of [form, slurp, part, further]) assert.equal(await offered(title), false, title)
    await workbench.scratch('(when 1 2)')
    await workbench.evaluate('scratch.lisp', '(when', '⇒ 2')
    for (const title of [form, slurp]) assert.ok(await offered(title), title)
    assert.equal(await offered(further), false)
    await workbench.file('scratch.lisp')
    await workbench.command('Consort: Macroexpand')
    await workbench.until('the expansion', async () => (await workbench.text('expansion')).includes('(if 1'))
    await workbench.shown('expansion').locator('.view-line').first().click()
    assert.ok(await offered(further))
    // The expansion cannot be edited.
    assert.equal(await offered(slurp), false)
  })

  await step('the image is killed, and comes back by itself', async () => {
    await loaded()
    const before = status().image.pid
    process.kill(before, 'SIGKILL')
    await workbench.until('another image', () => {
      const { image } = status()
      return image.state === 'ready' && image.pid !== before
    })
    await workbench.knows('the extension to know it', ({ consort }) => consort.condition.state === 'ready' && consort.condition.pid !== before)
    await workbench.file('code.lisp')
    await workbench.status().filter({ hasText: 'TELEGRAPH' }).waitFor()
    await workbench.evaluate('code.lisp', '(write-char', 'DECODE')
  })

  await step('the window is reloaded, and the image is still what it was', async () => {
    await loaded()
    const before = status().image.pid
    await workbench.reload()
    await workbench.ready()
    assert.equal(status().image.pid, before)
    await workbench.scratch('(telegraph:encode "sos")')
    await workbench.status().filter({ hasText: 'CL-USER' }).waitFor()
    await workbench.evaluate('scratch.lisp', 'telegraph:encode', '... --- ...')
  })
}
