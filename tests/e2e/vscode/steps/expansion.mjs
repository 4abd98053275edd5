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
    await workbench.command('Consort: Back to the Previous Expansion')
    await expansion('the expansion before', '(when (oddp 3)')
    await workbench.command('Consort: Put the Expansion in Place')
    await workbench.until('the expansion in place', async () => /\(progn\s+\(print 1\)\s+\(when \(oddp 3\)\s+\(print 1\)\)\)/.test(await workbench.text('scratch.lisp')))
  }, 'macroexpand')

  await step('macro calls are expanded step by step in a copy of the text, and taken back', async () => {
    const CODE = '(defmacro twice (form) `(progn ,form (when (oddp 3) ,form)))\n\n(twice (print 1))'
    const copy = (what, condition) => workbench.knows(what, ({ active }) => active?.uri.startsWith('consort-macrostep:') && condition(active))
    await workbench.scratch(CODE)
    await workbench.evaluate('scratch.lisp', 'defmacro', 'TWICE')
    await workbench.cursor('scratch.lisp', '(twice (print')
    await workbench.ready()
    const before = (await workbench.state()).active
    // In the copy the same keys would find no macro call where the cursor is then.
    await workbench.until('the copy', async () => {
      await page.keyboard.press('Control+Alt+l')
      await page.keyboard.press('3')
      return workbench.late(async () => (await workbench.state()).active?.uri.startsWith('consort-macrostep:'))
    })
    await copy('the expansion', ({ text, line, selection, dirty }) =>
      /\n\n\(progn \(print 1\)\s+\(when \(oddp 3\)\s+\(print 1\)\)\)$/.test(text) && line.startsWith('(progn') && selection.active.character === 0 && !dirty)
    await workbench.until('the focus in the copy', () => workbench.hasFocus('scratch.lisp'))
    await page.keyboard.press('n')
    await copy('the next macro call', ({ line, selection }) => line.slice(selection.active.character).startsWith('(when'))
    await page.keyboard.press('e')
    await copy('the second expansion', ({ text, line, selection }) => text.includes('(if (oddp 3)') && line.slice(selection.active.character).startsWith('(if'))
    await workbench.both('6-macro-steps')
    await workbench.until('the focus in the copy', () => workbench.hasFocus('scratch.lisp'))
    await page.keyboard.press('c')
    await copy('the first expansion again', ({ text, line, selection }) => text.includes('(when (oddp 3)') && line.slice(selection.active.character).startsWith('(when'))
    await page.keyboard.press('c')
    await copy('the text without expansions', ({ text }) => text === CODE)
    await page.keyboard.press('q')
    await workbench.knows('the person\'s text, as it was', ({ active, tabs }) =>
      active?.uri === before.uri && active.text === CODE && active.version === before.version && active.dirty === before.dirty &&
      active.selection.active.line === before.selection.active.line && active.selection.active.character === before.selection.active.character &&
      !tabs.some((tab) => tab.startsWith('macro steps')))
  }, 'macrostep')

  await step('macro calls of a text in no file are stepped through in a copy, and the text is kept', async () => {
    await workbench.command('Consort: Scratch Buffer')
    await workbench.until('the scratch', async () => {
      if (!(await workbench.state()).active?.uri.startsWith('untitled:')) return false
      if (await workbench.hasFocus('Untitled-1')) return true
      // Closing the list of commands may take the focus back.
      await workbench.editor('Untitled-1').locator('.view-line').last().click(once)
      return false
    })
    await workbench.paste('Untitled-1', '(when a (unless b c))')
    await workbench.knows('the text', ({ active }) => active?.line === '(when a (unless b c))')
    await workbench.ready()
    await workbench.command('Consort: Step Macro Expansion in Place')
    await workbench.knows('the expansion', ({ active }) => active?.uri.startsWith('consort-macrostep:') && /\(if a\s+\(unless b c\)/.test(active.text) && active.line.startsWith('(if a'))
    await workbench.command('Consort: Macro Stepper: Quit')
    await workbench.knows('the text again', ({ active, tabs }) => active?.uri.startsWith('untitled:') && active.line === '(when a (unless b c))' && active.selection.active.character === 21 && tabs.length === 1)
  }, 'macrostep')

  await step('structural editing where parentheses mislead', async () => {
    await workbench.scratch('(list "a (") (two)')
    await page.keyboard.press('Home')
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight')
    await workbench.knows('the cursor in the list', ({ active }) => active.selection.active.character === 3)
    await workbench.command('Consort: Structure: Slurp the Next Form')
    await workbench.until('the form to come in', async () => (await workbench.text('scratch.lisp')) === '(list "a (" (two))')
  }, 'structure')
}
