// A mistake is mended by its quick fix, and the file saved.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export default async function ({ workbench, page, place, step, text }) {
  await step('a mistake is mended by its quick fix, and the file is saved', async () => {
    await workbench.file('mistakes.lisp')
    await workbench.cursor('mistakes.lisp', '(defun greet')
    await page.keyboard.press('ArrowLeft')
    const fixes = page.locator('.action-widget .monaco-list-row', { hasText: 'Declare' })
    const offer = () => workbench.until('the quick fixes', async () => {
      await page.keyboard.press('Control+.')
      return fixes.first().waitFor({ timeout: 3000 }).then(() => true, () => page.keyboard.press('Escape').then(() => false))
    })
    // The list closes before a theme is chosen: the palette's text would go into the editor.
    const leave = async () => {
      await page.keyboard.press('Escape')
      await fixes.first().waitFor({ state: 'hidden' })
    }
    for (const theme of ['dark', 'light']) {
      await offer()
      await workbench.shot(`10-quick-fix-${theme}`)
      await leave()
      await workbench.toggleTheme()
    }
    await offer()
    await fixes.first().click()
    await workbench.until('the declaration', async () => /\(declare \(ignore name\)\)/i.test(await text('mistakes.lisp')))
    await page.keyboard.press('Control+s')
    const file = join(place, 'telegraph', 'mistakes.lisp')
    await workbench.until('the file to be saved', () => /\(declare \(ignore name\)\)/i.test(readFileSync(file, 'utf8')))
    await page.keyboard.press('Control+Shift+M')
    const row = (words) => page.locator('.markers-panel .monaco-list-row', { hasText: words })
    await row('HEIGTH').first().waitFor()
    await workbench.until('the mistake to go', async () => (await row('The variable NAME').count()) === 0)
    await page.keyboard.press('Control+Shift+M')
    assert.match(readFileSync(file, 'utf8'), /heigth/, 'the others stay')
  })
}
