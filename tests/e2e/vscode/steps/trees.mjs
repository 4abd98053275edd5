// The side bar: systems that are loaded, packages with their symbols, threads that can be ended.
export default async function ({ workbench, page, step, scratch }) {
  const row = (words) => page.locator('.pane-body .monaco-list-row', { hasText: words }).first()
  const pane = (name) => page.locator('.pane-header', { hasText: name }).first()
  const open = async (name) => {
    if ((await pane(name).getAttribute('aria-expanded')) !== 'true') await pane(name).click()
  }
  const close = async (name) => {
    if ((await pane(name).getAttribute('aria-expanded')) === 'true') await pane(name).click()
  }

  await step('the side bar: a system that is loaded, packages and their symbols, threads that are ended', async () => {
    await scratch('(sb-thread:make-thread\n  (lambda () (loop (sleep 1)))\n  :name "a worker")')
    await page.keyboard.press('Alt+Enter')
    await workbench.shows('scratch.lisp', 'a worker')
    await workbench.command('Common Lisp: Focus on Systems View')
    // Loaded before the window was reloaded, and it still says so.
    await row(/^telegraph\s*loaded/).waitFor()
    await open('Packages')
    await open('Threads')
    // Room for what is looked at.
    await close('Image')
    await close('Log')
    await row(/^telegraph\s*\d+ exported/).click()
    await row(/^\*code\*/).waitFor({ state: 'attached' })
    await workbench.until('ENCODE to come into view', async () => {
      if (await row(/^encode\s*function/).isVisible()) return true
      await page.keyboard.press('ArrowDown')
      return false
    })
    await row('a worker').waitFor()
    await page.mouse.move(900, 700)
    await workbench.both('5-side-bar')
    await row(/^encode\s*function/).click()
    await page.locator('.statusbar-item', { hasText: 'Ln 14, Col' }).waitFor()
    await row('a worker').hover()
    await row('a worker').locator('a[aria-label*="End a Thread"]').click()
    await workbench.until('the thread to end', async () => (await page.locator('.pane-body .monaco-list-row', { hasText: 'a worker' }).count()) === 0)
    await open('Image')
    await open('Log')
  }, 'Consort: End a Thread')
}
