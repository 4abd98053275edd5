// A form recorded in a copy: its calls, a question, and the source of a row; and steps back through
// it in the debugger.
export default async function ({ workbench, page, step }) {
  const prepare = async () => {
    await workbench.scratch('(defun tripled (n)\n  (* 3 n))\n\n(defun tripled-twice (n)\n  (let ((once (tripled n)))\n    (tripled once)))\n\n(tripled-twice 7)')
    await workbench.probe.execute('workbench.action.files.save')
    await workbench.evaluateBuffer('scratch.lisp')
  }

  await step('a form is recorded, asked about, and a row leads to its source', async () => {
    await prepare()
    await workbench.cursor('scratch.lisp', /^\(tripled-twice\s7\)/)
    await workbench.command('Consort: Record the Form')
    await workbench.choose('Values of an expression')
    await workbench.entered('The expression as it is written', '(* 3 n)')
    await workbench.choose('(* 3 n) => 21')
    await workbench.at('scratch.lisp', 2)
  }, 'record')

  await step('the debugger steps back through a recording', async () => {
    await prepare()
    await workbench.cursor('scratch.lisp', /^\(tripled-twice\s7\)/)
    await workbench.command('Consort: Record the Form')
    await workbench.choose('Step through it')
    const frames = page.locator('.debug-call-stack .stack-frame')
    await workbench.until('the call stack', async () => {
      await page.keyboard.press('Control+Shift+d')
      return workbench.soon(() => frames.filter({ hasText: 'the form' }).first().isVisible())
    })
    const button = (name) => page.locator('.debug-toolbar .action-label[aria-label^="' + name + '"]')
    await button('Step Back').waitFor()
    await button('Reverse').waitFor()
    // A recording has no restarts.
    await workbench.until('no button for restarts', async () => (await button('Debug: Choose a Restart').count()) === 0)
    const call = frames.filter({ hasText: 'tripled-twice 7' }).first()
    // A button that is pressed before the view has the next stop may go to the one before.
    const stopped = (where) => page.locator('.pane-header', { hasText: where }).first().waitFor()
    await stopped("At the start of the recording")
    await button('Step Into').click()
    await call.waitFor()
    await stopped('After a step')
    await button('Continue').click()
    await call.waitFor({ state: 'detached' })
    await stopped("At the end of the recording")
    // Back from the end to the begin.
    await button('Reverse').click()
    await stopped("At the start of the recording")
    await button('Step Into').click()
    await call.waitFor()
    const variable = page.locator('.debug-variables .monaco-list-row', { hasText: /n.*7/i }).first()
    await variable.waitFor()
    await workbench.both('17-recording-debugger', () => variable.waitFor())
    await workbench.clicked('the end of the session', button('Disconnect'), async () => !(await page.locator('.debug-toolbar').isVisible()))
  }, 'record')
}
