// Mistakes are marked, and corrected by their quick fixes.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, place, step }) {
  const file = join(place, 'telegraph', 'mistakes.lisp')
  const row = (words) => page.locator('.markers-panel .monaco-list-row', { hasText: words })
  const squiggles = workbench.editor('mistakes.lisp').locator('.squiggly-warning, .squiggly-error')
  const problem = (words) => workbench.knows(`the problem ${words}`, ({ diagnostics }) =>
    diagnostics.some(({ uri, message }) => uri.endsWith('/mistakes.lisp') && message.toUpperCase().includes(words)))
  /** Opens the list of quick fixes; resolves to true if it has this one. */
  const offered = async (fix) => {
    if (await fix.isVisible()) return true
    await page.keyboard.press('Control+.')
    if (await workbench.soon(() => fix.isVisible())) return true
    await page.keyboard.press('Escape')
    return false
  }
  /** Takes a quick fix. Once it has its effect, it is offered no longer. */
  const taken = (what, fix, effect) => workbench.until(what, async () => {
    if (await effect()) return true
    if (!(await offered(fix))) return false
    await fix.click(once)
    return workbench.late(effect)
  })

  await step('a file with mistakes: squiggles under the names that are meant, and rows in Problems', async () => {
    await workbench.file('mistakes.lisp')
    await problem('HEIGTH')
    await problem('NOT-WRITTEN-YET')
    await squiggles.first().waitFor()
    await workbench.panel('Control+Shift+M', '.markers-panel')
    await row('HEIGTH').first().waitFor()
    await row('NOT-WRITTEN-YET').first().waitFor()
    // The squiggle is as wide as the name it stands under.
    await workbench.until('a squiggle as wide as its name', async () => {
      const widths = await squiggles.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width))
      const word = await workbench.editor('mistakes.lisp').locator('.view-line span', { hasText: /heigth/ }).last().evaluate((span) => {
        const range = document.createRange()
        const at = span.textContent.indexOf('heigth')
        range.setStart(span.firstChild, at)
        range.setEnd(span.firstChild, at + 'heigth'.length)
        return range.getBoundingClientRect().width
      })
      assert.ok(widths.some((width) => Math.abs(width - word) < 2), `${widths} ${word}`)
      return true
    })
    await workbench.both('1-problems')
  })

  await step('a mistake is mended by its quick fix, and the file is saved', async () => {
    await workbench.file('mistakes.lisp')
    await problem('NAME')
    await squiggles.first().waitFor()
    await workbench.cursor('mistakes.lisp', '(defun greet')
    await page.keyboard.press('ArrowLeft')
    const fixes = page.locator('.action-widget .monaco-list-row', { hasText: 'Declare' })
    for (const theme of ['dark', 'light']) {
      await workbench.theme(theme === 'dark')
      await workbench.until('the quick fixes', () => offered(fixes.first()))
      await workbench.picture(`10-quick-fix-${theme}`)
      await page.keyboard.press('Escape')
      await fixes.first().waitFor({ state: 'hidden' })
    }
    await workbench.theme(true)
    // The offered fixes are redrawn when another check has ended.
    await taken('the declaration', fixes.first(), async () => /\(declare \(ignore name\)\)/i.test(await workbench.text('mistakes.lisp')))
    await workbench.file('mistakes.lisp')
    await workbench.save('mistakes.lisp')
    assert.match(readFileSync(file, 'utf8'), /\(declare \(ignore name\)\)/i)
    assert.match(readFileSync(file, 'utf8'), /heigth/, 'the others stay')
    await workbench.panel('Control+Shift+M', '.markers-panel')
    await row('HEIGTH').first().waitFor()
    await workbench.until('the mistake to go', async () => (await row('The variable NAME').count()) === 0)
  })
  await step('a name that is nearly a known one: the fix is the name that was meant', async () => {
    await workbench.scratch('')
    await page.keyboard.type('(defun size (list)\n(lenght list))')
    await workbench.knows('the problem', ({ diagnostics }) => diagnostics.some(({ uri, message }) => uri.endsWith('/scratch.lisp') && message.includes('LENGHT')))
    await workbench.cursor('scratch.lisp', 'lenght')
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    const fix = page.locator('.action-widget .monaco-list-row', { hasText: /^Change to length$/ })
    await workbench.until('the quick fix', () => offered(fix.first()))
    await workbench.picture('10-meant-dark')
    await taken('the name', fix.first(), async () => (await workbench.text('scratch.lisp')) === '(defun size (list)\n  (length list))')
  })
}
