// The test explorer on the server's own run of tests: a failure at its line, run again when the file is saved.
import assert from 'node:assert/strict'

export default async function ({ workbench, page, step, file }) {
  const failure = () => workbench.editor('shop-tests.lisp').locator('.test-error-content-widget', { hasText: '180 != 190' })
  const row = () => page.locator('.test-explorer .monaco-list-row', { hasText: /many-copies/i }).first()

  await step('tests are run, and the failure stands at its line', async () => {
    await file('shop-tests.lisp')
    await workbench.command('Consort: Test a System')
    await page.locator('.quick-input-list .monaco-list-row', { hasText: 'shop/tests' }).first().waitFor()
    await page.keyboard.type('shop/tests')
    await page.keyboard.press('Enter')
    await failure().waitFor({ timeout: 90_000 })
    const line = await workbench.editor('shop-tests.lisp').locator('.view-line', { hasText: 'test many-copies' }).boundingBox()
    const said = await failure().boundingBox()
    assert.ok(Math.abs(said.y - line.y) < 8, `the failure is not in the test's line: ${said.y}, ${line.y}`)
    const system = page.locator('.test-explorer .monaco-list-row', { hasText: 'shop/tests' }).first()
    // A click opens a row or closes one that opened by itself: the key only opens.
    await system.click()
    await workbench.until('the test to be listed', async () => {
      if (await row().isVisible()) return true
      await page.keyboard.press('ArrowRight')
      return false
    })
    await page.mouse.move(900, 700)
    await workbench.both('12-tests')
  }, 'Consort: Test a System')

  await step('tests are run again when a file is saved, where that is wanted', async () => {
    await workbench.cursor('shop-tests.lisp', '(= 190')
    await page.keyboard.press('Home')
    await page.keyboard.press('Shift+End')
    // As a paste: nothing is closed by itself.
    await page.evaluate(() => navigator.clipboard.writeText('(is (= 180 (shop:price 20 10))))'))
    await page.keyboard.press('Control+v')
    await page.keyboard.press('Control+s')
    await row().locator('[class*="testing-passed"]').first().waitFor({ timeout: 60_000 })
    await workbench.until('the failure to go', async () => (await failure().count()) === 0)
  }, 'Consort: Test a System')
}
