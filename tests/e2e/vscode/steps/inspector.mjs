// Values looked into: the inspector, a table, two values compared, traced calls; values at the ends
// of the lines of a stopped function; a failed test opened where its wrong value first appears.
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, step }) {
  const row = (words) => page.locator('.pane-body .monaco-list-row', { hasText: words }).first()
  const inspect = async (code) => {
    await workbench.command('Consort: Inspect…')
    await workbench.entered('Inspect', code)
  }

  await step('a value is inspected part by part, as a table, and beside another', async () => {
    await workbench.scratch('(defvar *goods* (list (list :name "a" :price 1) (list :name "b" :price 2)))\n(defvar *others* (list (list :name "a" :price 1) (list :name "c" :price 2)))\n')
    await workbench.evaluateBuffer('scratch.lisp')
    await inspect('*goods*')
    const part = row(/^0\s*\(:NAME "a" :PRICE 1\)/)
    await part.waitFor()
    await workbench.both('18-inspector', () => part.waitFor())
    await workbench.command('Consort: Show as a Table')
    await workbench.until('the table', async () => /^ +name +price\n[─ ]+\n0 +"a" +1\n1 +"b" +2$/m.test(await workbench.text('table.txt')))
    await workbench.command('Consort: Compare the Value')
    await inspect('*others*')
    await row(/^\*others\*/).waitFor()
    await workbench.command('Consort: Compare the Value')
    await workbench.until('the differences', async () => /^1 › 1\n {2}- "b"\n {2}\+ "c"$/m.test(await workbench.text('differences.txt')))
  }, 'inspect')

  await step("a value's description and its definition come from the menu of its row", async () => {
    await workbench.scratch('(in-package #:cl-user)\n\n(defstruct good name price)\n(defparameter *good* (make-good :name "a" :price 1))\n')
    await workbench.evaluateBuffer('scratch.lisp')
    await inspect('*good*')
    const good = row(/^\*good\*/)
    await good.waitFor()
    await workbench.menu(good, 'Describe the Value', async () => /#S\(GOOD[^]*PRICE\s*=\s*1/.test(await workbench.text('description.txt')))
    await workbench.menu(good, "Go to the Value's Definition", async () => {
      const { active } = await workbench.state()
      return active?.uri.endsWith('/scratch.lisp') && active.line === '(defstruct good name price)' && active.selection.active.line === 2
    })
  }, 'inspectDefinition')

  await step('calls of a traced function are rows, with what they were given and gave', async () => {
    await workbench.scratch('(defun inner (x) (* 2 x))\n(defun outer (x) (1+ (inner x)))\n')
    await workbench.evaluateBuffer('scratch.lisp')
    await workbench.cursor('scratch.lisp', '(defun inner')
    await workbench.until('the cursor on the name', async () => {
      await page.keyboard.press('Home')
      for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowRight')
      return workbench.soon(async () => (await workbench.state()).active?.selection.active.character === 8)
    })
    await workbench.command('Consort: Trace a Function')
    await page.locator('.pane-body', { hasText: 'Traced: inner' }).first().waitFor()
    await workbench.scratch('(outer 20)')
    await workbench.evaluate('scratch.lisp', '(outer 20)', '41')
    await row(/^\(inner 20\)\s*⇒ 40/).waitFor()
    await workbench.command('Consort: Untrace All')
  }, 'tracedCalls')

  await step('a breakpoint stops an evaluation without a session, and values stand at the lines', async () => {
    await workbench.stopsAtErrors()
    await workbench.scratch('(defun quadruple (x)\n  (let ((y (* 4 x)))\n    (list y (1+ y))))\n\n(quadruple 14)\n')
    await workbench.evaluate('scratch.lisp', '(list y (1+ y))', 'QUADRUPLE')
    await page.keyboard.press('F9')
    await workbench.knows('the breakpoint', ({ breakpoints }) => breakpoints === 1)
    await workbench.cursor('scratch.lisp', '(quadruple 14)')
    await page.keyboard.press('Alt+Enter')
    await page.locator('.debug-toolbar').waitFor()
    await workbench.until('the values at the lines', async () => {
      const lines = await workbench.editor('scratch.lisp').locator('.view-lines').innerText(once)
      return /y\s*=\s*56/.test(lines.replaceAll('\u00a0', ' '))
    })
    await workbench.both('19-inline-values', () => page.locator('.debug-toolbar').waitFor())
    await page.keyboard.press('F5')
    await workbench.shows('scratch.lisp', '(56 57)')
    await workbench.probe.execute('workbench.debug.viewlet.action.removeAllBreakpoints')
    await workbench.probe.execute('workbench.action.debug.stop')
    await workbench.until('the end of the session', async () => !(await page.locator('.debug-toolbar').isVisible()))
  })

  await step('a failed test is recorded, and opens where the wrong value first appears', async () => {
    await workbench.ran('the tests', async () => {
      await workbench.command('Consort: Test a System')
      await workbench.choose('shop/tests')
    })
    // The extension knows the outcomes, and not only that the tests have ended.
    await workbench.ready()
    await page.locator('.result-summary', { hasText: '1/2' }).first().waitFor()
    await workbench.command('Consort: Record a Test')
    // The one that failed is the first.
    await workbench.choose('many-copies')
    const frames = page.locator('.debug-call-stack .stack-frame')
    await workbench.until('the call stack', async () => {
      await page.keyboard.press('Control+Shift+d')
      return workbench.soon(() => frames.filter({ hasText: /price 20 10/i }).first().isVisible())
    })
    await page.locator('.pane-header', { hasText: 'Where the wrong value first appears' }).first().waitFor()
    await workbench.picture('20-wrong-value-dark')
    await workbench.clicked('the end of the session', page.locator('.debug-toolbar .action-label[aria-label^="Disconnect"]'), async () => !(await page.locator('.debug-toolbar').isVisible()))
  }, 'record')
}
