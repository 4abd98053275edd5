// A macro call is expanded beside the editor, further, back, and put in place.
export default async function ({ workbench, page, step, scratch, text, shown }) {
  await step('a macro call is expanded beside the editor, further, back, and put in place', async () => {
    await scratch('(defmacro twice (form) `(progn ,form (when (oddp 3) ,form)))\n\n(twice (print 1))')
    await workbench.cursor('scratch.lisp', 'defmacro')
    await page.keyboard.press('Alt+Enter')
    await workbench.shows('scratch.lisp', 'TWICE')
    await workbench.cursor('scratch.lisp', '(twice (print')
    await workbench.command('Consort: Expand the Macro Once')
    await workbench.until('the expansion', async () => (await text('expansion')).includes('(when (oddp 3)'))
    await shown('expansion').locator('.view-line', { hasText: 'when' }).locator('span span', { hasText: 'when' }).first().click()
    await workbench.command('Consort: Expand Further')
    await workbench.until('the next expansion', async () => (await text('expansion')).includes('(if (oddp 3)'))
    await workbench.both('6-expansion')
    await workbench.command('Consort: Back to the Expansion Before')
    await workbench.until('the expansion before', async () => (await text('expansion')).includes('(when (oddp 3)'))
    await workbench.command('Consort: Put the Expansion in Place')
    await workbench.until('the expansion in place', async () => /\(progn\s+\(print 1\)\s+\(when \(oddp 3\)\s+\(print 1\)\)\)/.test(await text('scratch.lisp')))
  }, 'Consort: Expand All Macros')
}
