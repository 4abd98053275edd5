// The side bar: systems that are loaded, packages with their symbols, threads that can be ended.
import assert from 'node:assert/strict'
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, step, loaded }) {
  const rows = (words) => page.locator('.pane-body .monaco-list-row', { hasText: words })
  const row = (words) => rows(words).first()
  const pane = (name) => page.locator('.pane-header', { hasText: name }).first()
  const set = (expanded) => (name) => workbench.until(`${name} to be ${expanded === 'true' ? 'open' : 'closed'}`, async () => {
    if ((await pane(name).getAttribute('aria-expanded')) === expanded) return true
    await pane(name).click(once)
    return workbench.late(async () => (await pane(name).getAttribute('aria-expanded')) === expanded)
  })
  const open = set('true')
  const close = set('false')

  await step('the side bar: what runs is in progress as long as it runs, and nothing else is', async () => {
    await workbench.scratch('(loop (sleep 1))')
    await workbench.command('Common Lisp: Focus on Image View')
    await row(/^Connected/).waitFor()
    // The request for these rows is not in progress itself.
    await workbench.command('Consort: Refresh the Views')
    await workbench.until('nothing in progress', async () => (await rows(/^Connected/).count()) > 0 && (await rows(/^In progress/).count()) === 0)
    await workbench.cursor('scratch.lisp', '(loop')
    await page.keyboard.press('Alt+Enter')
    await row(/^In progress\s*1/).waitFor()
    await row(/loop \(sleep 1\)/).waitFor()
    assert.equal(await rows(/status/).count(), 0)
    await page.keyboard.press('Control+Alt+l')
    await page.keyboard.press('i')
    await workbench.until('nothing in progress', async () => (await rows(/^In progress/).count()) === 0)
  })

  await step('the side bar: a system that is loaded, packages and their symbols, threads that are ended', async () => {
    await loaded()
    await workbench.scratch('(sb-thread:make-thread\n  (lambda () (loop (sleep 1)))\n  :name "a worker")')
    await workbench.evaluate('scratch.lisp', 'a worker', 'a worker')
    await workbench.command('Common Lisp: Focus on Systems View')
    await row(/^telegraph\s*loaded/).waitFor()
    await open('Packages')
    await open('Threads')
    // Makes room for the rows.
    await close('Image')
    await close('Log')
    // A click closes what is open: only while it is not.
    await workbench.until('the symbols', async () => {
      if ((await rows(/^\*code\*/).count()) > 0) return true
      await row(/^telegraph\s*\d+ exported/).click(once)
      return workbench.late(async () => (await rows(/^\*code\*/).count()) > 0)
    })
    let pressed = 0
    await workbench.until('ENCODE to come into view', async () => {
      if (await row(/^encode\s*function/).isVisible()) return true
      await page.keyboard.press(pressed++ % 100 === 99 ? 'Home' : 'ArrowDown')
      return false
    })
    await row('a worker').waitFor()
    await page.mouse.move(640, 795)
    await workbench.both('5-side-bar')
    await workbench.clicked('the source of ENCODE', row(/^encode\s*function/), async () => {
      const { active } = await workbench.state()
      return active?.uri.endsWith('/code.lisp') && active.selection.active.line === 13
    })
    const worker = row('a worker')
    const button = worker.locator('a[aria-label*="End a Thread"]')
    await workbench.until('the thread to end', async () => {
      if ((await rows('a worker').count()) === 0) return true
      await worker.hover(once)
      if (await workbench.soon(() => button.isVisible())) await button.click(once)
      return workbench.soon(async () => (await rows('a worker').count()) === 0)
    })
    await open('Image')
    await open('Log')
  }, 'killThread')
}
