// Names from the image: completion in the REPL, traces; and the report of a reload.
import assert from 'node:assert/strict'

export default async function ({ workbench, page, step, loaded }) {
  await step('the REPL completes what the image knows', async () => {
    await loaded()
    await workbench.repl()
    await page.keyboard.type('(telegraph:enc')
    await workbench.until('what was typed', async () => (await workbench.terminal()).endsWith('(telegraph:enc'))
    await page.keyboard.press('Tab')
    await workbench.until('the name', async () => (await workbench.terminal()).endsWith('(telegraph:encode'))
    await workbench.line(' "e")')
    await workbench.until('the value', async () => /"\."\nCL-USER>$/.test(await workbench.terminal()))
  }, 'complete')

  await step('a call of the function at the cursor is typed into the REPL', async () => {
    await loaded()
    await workbench.scratch('(telegraph:encode "e")')
    await workbench.cursor('scratch.lisp', '(telegraph:encode')
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await workbench.knows('the cursor on the name', ({ active }) => active.selection.active.character === 1)
    await workbench.command('Consort: Prepare a Call in the REPL')
    await workbench.until('the call', async () => (await workbench.terminal()).endsWith('CL-USER> (telegraph:encode text)'))
    // The cursor is at the first argument.
    await page.keyboard.type('"e" ')
    await workbench.until('the argument', async () => (await workbench.terminal()).endsWith('CL-USER> (telegraph:encode "e" text)'))
  }, 'callTemplate')

  await step('completions say what they are and what they take', async () => {
    await workbench.scratch('')
    await page.keyboard.type('(appen')
    const row = page.locator('.suggest-widget .monaco-list-row', { hasText: /^append / }).first()
    await workbench.until('the completion', async () => {
      if (await row.isVisible()) return true
      await page.keyboard.press('Control+Space')
      return workbench.soon(() => row.isVisible())
    })
    const words = (await row.textContent()).replaceAll('\u00a0', ' ')
    assert.match(words, /append &rest .*function/)
    assert.doesNotMatch(words, /COMMON-LISP/)
    await workbench.picture('17-completion-dark')
    await page.keyboard.press('Escape')
  }, 'complete')

  await step('a traced function prints its calls', async () => {
    await workbench.scratch('(defun double (x) (* 2 x))\n\n(double 21)')
    await workbench.evaluate('scratch.lisp', 'defun double', 'DOUBLE')
    await workbench.cursor('scratch.lisp', '(double 21)')
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await workbench.knows('the cursor on the name', ({ active }) => active.selection.active.character === 1)
    await workbench.ran('the tracing', () => workbench.command('Consort: Trace a Function'))
    await workbench.evaluate('scratch.lisp', '(double 21)', '42')
    await workbench.command('Consort: Open the Last Result')
    await workbench.until('the trace', async () => /DOUBLE 21[^]*DOUBLE returned 42/.test(await workbench.text('result')))
  }, 'trace')

  await step('who calls a function is told by the call hierarchy', async () => {
    await workbench.scratch("(defun double (x) (* 2 x))\n\n(defun four (x)\n  (funcall #'double\n           x))")
    await workbench.ready()
    await workbench.cursor('scratch.lisp', 'funcall')
    await workbench.command('Calls: Show Call Hierarchy')
    const row = page.locator('.part.sidebar .monaco-list-row', { hasText: 'four' }).first()
    await workbench.until('the caller', () => row.isVisible())
    await workbench.picture('26-call-hierarchy-dark')
    await page.keyboard.press('Escape')
  }, 'references')

  await step('the hover of a name of the standard leads to the HyperSpec', async () => {
    await workbench.scratch('(mapcan (lambda (x) (list x)) (list 1 2))')
    await workbench.ready()
    await workbench.cursor('scratch.lisp', 'mapcan')
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    const link = page.locator('.monaco-hover:not(.hidden) a', { hasText: 'HyperSpec' }).first()
    await workbench.until('the link', async () => {
      if (await link.isVisible()) return true
      await workbench.command('Show or Focus Hover')
      return workbench.soon(() => link.isVisible())
    })
    assert.match(await link.getAttribute('data-href') ?? await link.getAttribute('href') ?? '', /f_mapc_/)
    await workbench.picture('29-hyperspec-dark')
    await page.keyboard.press('Escape')
  })

  await step('a function is renamed after a preview, by keys', async () => {
    await workbench.scratch('(defun twice-as (much) (* 2 much))\n\n(twice-as (twice-as 3))')
    await workbench.ready()
    await workbench.cursor('scratch.lisp', '(defun twice-as')
    await page.keyboard.press('Home')
    for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowRight')
    const input = page.locator('.rename-box input').first()
    await workbench.until('the box for the new name', async () => {
      if (await input.isVisible()) return true
      await page.keyboard.press('F2')
      return workbench.soon(() => input.isVisible())
    })
    await input.fill('doubled')
    // Ctrl and Enter show the changes before they are made.
    await page.keyboard.press('Control+Enter')
    const rows = page.locator('.part.panel .monaco-list-row', { hasText: 'doubled' })
    await workbench.until('the three places', async () => (await rows.count()) === 3)
    await workbench.picture('30-rename-dark')
    await page.locator('.part.panel').getByRole('button', { name: /Apply/ }).first().click()
    await workbench.until('the new text', async () => (await workbench.text('scratch.lisp')) === '(defun doubled (much) (* 2 much))\n\n(doubled (doubled 3))')
  })

  const row = (label) => page.locator('.action-widget .monaco-list-row', { hasText: label }).first()
  const refactor = (label) => workbench.until(`${label} in the menu`, async () => {
    if (await row(label).isVisible()) return true
    await page.keyboard.press('Control+Shift+r')
    return workbench.soon(() => row(label).isVisible())
  })

  await step('one action at the name of a definition moves it to another file', async () => {
    await workbench.scratch('(in-package :shop)\n\n(defun area (x) (* x x))')
    await workbench.ready()
    await workbench.cursor('scratch.lisp', '(defun area')
    await page.keyboard.press('Home')
    for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowRight')
    await workbench.knows('the cursor on the name', ({ active }) => active.selection.active.character === 8)
    await refactor('Move area to another file')
    assert.equal(await page.locator('.action-widget .monaco-list-row', { hasText: 'to another file' }).count(), 1)
    await page.keyboard.press('Escape')
  })

  await step('an extracted function gets its name from the person, by keys', async () => {
    await workbench.scratch('(defun area (x)\n  (list x (* x x)))')
    await workbench.ready()
    await workbench.cursor('scratch.lisp', '(list x')
    for (let i = 0; i < 2; i++) await page.keyboard.press('ArrowLeft')
    for (let i = 0; i < '(* x x)'.length; i++) await page.keyboard.press('Shift+ArrowLeft')
    await workbench.knows('the selection', ({ active }) => active.selection.active.character === 10 && active.selection.anchor.character === 17)
    await refactor('Extract function')
    await row('Extract function').click()
    // The box is visible before it has the focus.
    await page.locator('.rename-box input:focus').first().waitFor()
    await page.keyboard.type('square')
    await page.keyboard.press('Enter')
    await workbench.until('the new name in both places', async () => (await workbench.text('scratch.lisp')) === '(defun square (x)\n  (* x x))\n\n(defun area (x)\n  (list x (square x)))')
  })

  await step('references from a definition reach the tests that are in another package', async () => {
    await workbench.ready()
    await workbench.file('shop.lisp')
    await workbench.cursor('shop.lisp', '(defun price')
    await page.keyboard.press('Home')
    for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowRight')
    await workbench.command('References: Find All References')
    // The definition, its export, and two calls in the tests.
    await page.locator('.part.sidebar', { hasText: '4 results in 2 files' }).waitFor()
    await page.locator('.part.sidebar .monaco-list-row', { hasText: 'shop-tests.lisp' }).waitFor()
    await workbench.picture('27-references-dark')
  }, 'references')

  await step('a system is reloaded, with a report of what that changed', async () => {
    await loaded()
    await workbench.command('Consort: Reload a System')
    await workbench.choose('telegraph')
    await workbench.until('the report', async () => (await workbench.text('report')).includes('Reloaded the system telegraph.'))
  }, 'reloadSystem')
}
