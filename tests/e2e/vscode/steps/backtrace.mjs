// An error's backtrace is followed to the lines that it came through: from the hover, from the whole result, and from the REPL.
export default async function ({ workbench, page, step, text, file }) {
  const at = (line) => page.locator('.statusbar-item', { hasText: `Ln ${line}, Col` })

  await step('an error, and its backtrace followed to the source', async () => {
    await file('bill.lisp')
    await workbench.cursor('bill.lisp', '(defun share')
    await page.keyboard.press('Control+Alt+l')
    await page.keyboard.press('b')
    await workbench.shows('bill.lisp', 'DIVISION-BY-ZERO')
    const hover = page.locator('.monaco-hover:not(.hidden)', { hasText: 'Backtrace' }).first()
    // What had the focus before may take the hover away just then: the mouse comes again.
    const look = () => workbench.until('the hover', async () => {
      await page.mouse.move(700, 600)
      await hover.waitFor({ state: 'hidden', timeout: 3000 }).catch(() => page.keyboard.press('Escape'))
      await workbench.editor('bill.lisp').locator('.view-line', { hasText: "(split-bills '(40" }).locator('span span').first().hover()
      return hover.locator('a', { hasText: 'SPLIT-BILLS' }).waitFor({ timeout: 5000 }).then(() => true, () => false)
    })
    await look()
    await workbench.both('11-backtrace', look)
    await look()
    await hover.locator('a', { hasText: 'SPLIT-BILLS' }).click()
    // The call of SHARE in it, not its first line.
    await at(9).waitFor()
    await page.keyboard.press('Escape')
    await look()
    await hover.locator('a', { hasText: /\(SHARE/ }).click()
    await at(3).waitFor()
    await page.keyboard.press('Escape')
  })

  await step('the whole result beside the editor has the same links', async () => {
    await workbench.command('Consort: Open the Last Result')
    await workbench.until('the result', async () => (await text('result')).includes('Backtrace'))
    const frame = page.locator('.monaco-editor[data-uri*="result"] .detected-link', { hasText: 'SPLIT-BILLS' }).first()
    // The line is drawn anew while its links come.
    await workbench.until('the source', async () => {
      await frame.click({ modifiers: ['Control'], timeout: 3000 }).catch(() => undefined)
      return at(9).waitFor({ timeout: 3000 }).then(() => true, () => false)
    })
  })
}
