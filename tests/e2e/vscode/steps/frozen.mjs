// An error that was reported is looked into: its frames in VS Code's debugger, and a restart that
// is tried.
import { once } from '../workbench.mjs'

const CODE = `(defun third-of (x)
  (restart-case (error "no third of ~a" x)
    (use-instead (y) :report "Use another." :interactive (lambda () (list 1)) (list :third (/ y 3)))))
(third-of 84)`
const ERROR = 'SIMPLE-ERROR: no third of 84'

export default async function ({ workbench, page, step }) {
  const frames = page.locator('.debug-call-stack .stack-frame')
  const console = async () => {
    if (!(await page.locator('.repl').isVisible())) await workbench.probe.execute('workbench.panel.repl.view.focus')
    return page.locator('.repl .monaco-list-rows').innerText(once)
  }

  await step('a failure is looked into, and a restart is tried', async () => {
    await workbench.scratch(CODE)
    // A busy machine may not let the image be copied at once.
    await workbench.until('the failure in the list', async () => {
      await workbench.file('scratch.lisp')
      await workbench.evaluateBuffer('scratch.lisp', 'SIMPLE-ERROR')
      await workbench.command('Consort: Look into a Failure')
      if (await workbench.soon(async () => (await workbench.quickInput().isVisible()) && workbench.choosable(ERROR, ERROR))) return true
      // A list of other failures would keep the focus.
      await page.keyboard.press('Escape')
      return false
    })
    await workbench.enter(ERROR)
    await workbench.until('the call stack', async () => {
      await page.keyboard.press('Control+Shift+d')
      return workbench.soon(() => frames.filter({ hasText: 'THIRD-OF' }).first().isVisible())
    })
    const variable = page.locator('.debug-variables .monaco-list-row', { hasText: /X.*84/ })
    await variable.waitFor()
    await workbench.both('19-frozen-failure', () => variable.waitFor())
    const input = workbench.quickInput().locator('input').first()
    await workbench.press('no third of 84', '0: USE-INSTEAD', () => input.isVisible())
    await input.waitFor()
    await input.fill('84')
    await workbench.enter('84')
    await workbench.until('what would have come in the debug console', async () => (await console()).includes('=> (:THIRD 28)'))
    await workbench.probe.execute('workbench.action.debug.disconnect')
    await workbench.until('the end of the session', async () => !(await page.locator('.debug-toolbar').isVisible()))
  }, 'status')
}
