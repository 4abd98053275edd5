// Mistakes are marked, and corrected by their quick fixes.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
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
  /** A problem of a file, once it is there. */
  const found = (name, words) => workbench.until(`the problem ${words}`, async () =>
    (await workbench.state()).diagnostics.find(({ uri, message }) => uri.endsWith(`/${name}`) && message.includes(words)))

  await step('the mark is under the form that is meant, and not under a variable of its name', async () => {
    await workbench.scratch('')
    await page.keyboard.type('(defun each ()\n(dolist (thing thing)\n(print thing)))')
    const { range: [start, end] } = await found('scratch.lisp', 'THING')
    assert.deepEqual([start, end], [{ line: 1, character: 17 }, { line: 1, character: 22 }])
    assert.equal((await workbench.text('scratch.lisp')).split('\n')[1], '  (dolist (thing thing)')
  })

  await step('a file that takes long is shown to be checked, until its marks are there', async () => {
    await workbench.scratch('')
    const go = join(place, 'telegraph', 'go.txt')
    await page.keyboard.type(`(eval-when (:compile-toplevel)\n(loop until (probe-file "${go}")))\n\n(defun late (x)\n(not-there x))`)
    const checking = page.locator('.statusbar-item', { hasText: 'Checking scratch.lisp' })
    await checking.first().waitFor()
    writeFileSync(go, '')
    await found('scratch.lisp', 'NOT-THERE')
    await checking.first().waitFor({ state: 'detached' })
  })

  await step('a file whose system did not load says why its names are not checked, and loads it', async () => {
    const file = (name, text) => writeFileSync(join(place, 'telegraph', name), text)
    file('halt.asd', '(defsystem "halt" :components ((:file "halt")))')
    file('halt.lisp', '(defpackage :halt (:use :cl))\n(in-package :halt)\n\n(error "not yet")\n')
    await workbench.file('halt.lisp')
    // The package stays, and ASDF forgets the system.
    await workbench.command('Consort: Load a System')
    await workbench.choose('halt')
    await workbench.told('not yet')
    await workbench.file('halt.lisp')
    await workbench.cursor('halt.lisp', '(error')
    await page.keyboard.press('Shift+Home')
    await page.keyboard.type('(defun stop (x)\n(no-such-function x))')
    const { range: [start] } = await found('halt.lisp', 'The system "halt" of this file is not loaded')
    assert.equal(start.line, 1)
    assert.ok((await workbench.state()).diagnostics.every(({ message }) => !message.includes('NO-SUCH-FUNCTION')))
    await workbench.save('halt.lisp')
    await workbench.cursor('halt.lisp', '(in-package')
    await page.keyboard.press('ArrowLeft')
    await taken('the load', page.locator('.action-widget .monaco-list-row', { hasText: 'Load the system halt' }).first(), async () =>
      (await workbench.state()).diagnostics.some(({ uri, message }) => uri.endsWith('/halt.lisp') && message.includes('NO-SUCH-FUNCTION')))
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
