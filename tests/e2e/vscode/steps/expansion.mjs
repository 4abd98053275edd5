// A macro call is expanded beside the editor, further, back, and put in place; and structural
// editing.
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, step }) {
  await step('a macro call is expanded beside the editor, further, back, and put in place', async () => {
    const expansion = (what, words) => workbench.until(what, async () => (await workbench.text('expansion')).includes(words))
    await workbench.scratch('(defmacro twice (form) `(progn ,form (when (oddp 3) ,form)))\n\n(twice (print 1))')
    await workbench.evaluate('scratch.lisp', 'defmacro', 'TWICE')
    await workbench.cursor('scratch.lisp', '(twice (print')
    await workbench.command('Consort: Macroexpand')
    await expansion('the expansion', '(when (oddp 3)')
    const name = workbench.shown('expansion').locator('.view-line', { hasText: 'when' }).locator('span span', { hasText: 'when' }).first()
    await workbench.until('the cursor in the expansion', async () => {
      await name.click(once)
      return workbench.soon(async () => {
        const { active } = await workbench.state()
        return active?.uri.includes('expansion') && active.line.includes('(when')
      })
    })
    await workbench.command('Consort: Expand Further')
    await expansion('the next expansion', '(if (oddp 3)')
    await workbench.both('6-expansion')
    await workbench.command('Consort: Back to the Expansion Before')
    await expansion('the expansion before', '(when (oddp 3)')
    await workbench.command('Consort: Put the Expansion in Place')
    await workbench.until('the expansion in place', async () => /\(progn\s+\(print 1\)\s+\(when \(oddp 3\)\s+\(print 1\)\)\)/.test(await workbench.text('scratch.lisp')))
  }, 'macroexpand')

  await step('structural editing where parentheses mislead', async () => {
    await workbench.scratch('(list "a (") (two)')
    await page.keyboard.press('Home')
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight')
    await workbench.knows('the cursor in the list', ({ active }) => active.selection.active.character === 3)
    await workbench.command('Consort: Structure: Slurp the Next Form')
    await workbench.until('the form to come in', async () => (await workbench.text('scratch.lisp')) === '(list "a (" (two))')
  }, 'structure')
}
