// The test explorer on the server's own run of tests: a failure at its line, run again when the
// file is saved.
import assert from 'node:assert/strict'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, place, step }) {
  const failure = () => workbench.editor('shop-tests.lisp').locator('.test-error-content-widget', { hasText: '180 != 190' })
  const row = () => page.locator('.test-explorer .monaco-list-row', { hasText: /many-copies/i }).first()
  /** Runs the tests by the command; afterwards the file has the focus. */
  const run = async () => {
    await workbench.file('shop-tests.lisp')
    await workbench.ran('the tests', async () => {
      await workbench.command('Consort: Test a System')
      await workbench.choose('shop/tests')
    })
    await workbench.ready()
    await failure().waitFor()
    await expand()
    await workbench.file('shop-tests.lisp')
  }
  /**
   * Opens the system's row by its arrow: a click on the row itself also opens the file of the
   * system.
   */
  const expand = () => workbench.until('the test to be listed', async () => {
    if (await row().isVisible()) return true
    const system = page.locator('.test-explorer .monaco-list-row', { hasText: 'shop/tests' }).first()
    if ((await system.getAttribute('aria-expanded', once)) !== 'true') await system.locator('.monaco-tl-twistie').click(once)
    return workbench.late(() => row().isVisible())
  })

  await step('tests are run, and the failure stands at its line', async () => {
    await run()
    await workbench.until('the failure in the line of its test', async () => {
      const line = await workbench.editor('shop-tests.lisp').locator('.view-line', { hasText: 'test many-copies' }).boundingBox()
      const said = await failure().boundingBox()
      assert.ok(Math.abs(said.y - line.y) < 8, `the failure is not in the test's line: ${said.y}, ${line.y}`)
      return true
    })
    await workbench.editor('shop-tests.lisp').locator('.codelens-decoration', { hasText: 'Run test' }).first().waitFor()
    // The count is of tests, and not of their systems.
    await page.locator('.result-summary', { hasText: '1/2' }).first().waitFor()
    await workbench.both('12-tests')
  }, 'runTests')

  await step('tests are run again when a file is saved, where that is wanted', async () => {
    await run()
    await workbench.cursor('shop-tests.lisp', '(= 190')
    await page.keyboard.press('Home')
    await page.keyboard.press('Shift+End')
    await workbench.paste('shop-tests.lisp', '(is (= 180 (shop:price 20 10))))')
    await workbench.until('the new text', async () => /\n\s+\(is \(= 180 \(shop:price 20 10\)\)\)\)/.test(await workbench.text('shop-tests.lisp')))
    await workbench.ran('the tests', () => workbench.save('shop-tests.lisp'))
    await row().locator('[class*="testing-passed"]').first().waitFor()
    await workbench.until('the failure to go', async () => (await failure().count()) === 0)
  }, 'runTests')

  await step('a file that is saved while its tests run is tested once more', async () => {
    const [began, go] = [join(place, 'began'), join(place, 'go-on')]
    for (const file of [began, go]) rmSync(file, { force: true })
    const write = async (form) => {
      await workbench.file('shop-tests.lisp')
      await workbench.cursor('shop-tests.lisp', 'shop:price 20 10')
      await page.keyboard.press('Home')
      await page.keyboard.press('Shift+End')
      await workbench.paste('shop-tests.lisp', form)
      await workbench.until('the new text', async () => (await workbench.text('shop-tests.lisp')).includes(form))
      await workbench.save('shop-tests.lisp')
    }
    await run()
    try {
      const says = `(close (open "${began}" :direction :output :if-exists :supersede))`
      await write(`${says} (loop until (probe-file "${go}") do (sleep 0.05)) (is (= 190 (shop:price 20 10))))`)
      await workbench.until('the test to run', () => existsSync(began))
      await write('(is (= 180 (shop:price 20 10))))')
      await workbench.knows('the tests to run still', ({ consort }) => consort.testing)
    } finally {
      writeFileSync(go, '')
    }
    await row().locator('[class*="testing-passed"]').first().waitFor()
  }, 'runTests')

  await step('unsaved changes are saved before a system is tested, and tested', async () => {
    await workbench.file('shop-tests.lisp')
    await workbench.cursor('shop-tests.lisp', 'shop:price 20 10')
    await page.keyboard.press('Home')
    await page.keyboard.press('Shift+End')
    const line = '(is (= 170 (shop:price 20 10))))'
    await workbench.paste('shop-tests.lisp', line)
    const is = (wanted) => ({ documents }) => documents.some(({ uri, dirty, text }) => uri.endsWith('/shop-tests.lisp') && dirty === wanted && text.includes(line))
    await workbench.knows('the change to be unsaved', is(true))
    await workbench.ran('the tests', async () => {
      await workbench.command('Consort: Test a System')
      await workbench.choose('shop/tests')
    })
    await workbench.knows('the change to be saved', is(false))
    await workbench.file('shop-tests.lisp')
    await workbench.editor('shop-tests.lisp').locator('.test-error-content-widget', { hasText: '180 != 170' }).waitFor()
  }, 'runTests')
}
