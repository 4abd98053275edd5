// What the image knows of names: completion in the REPL, traces; and what a reload did.
export default async function ({ workbench, page, step, scratch, text }) {
  await step('the REPL completes what the image knows', async () => {
    await workbench.command('Consort: Open the REPL')
    await workbench.until('the prompt', async () => /CL-USER>$/.test(await workbench.terminal()))
    await page.locator('.terminal-wrapper.active .xterm-screen').click()
    await page.keyboard.type('(telegraph:enc')
    await page.keyboard.press('Tab')
    await workbench.until('the name', async () => (await workbench.terminal()).endsWith('(telegraph:encode'))
    await page.keyboard.type(' "e")')
    await page.keyboard.press('Enter')
    await workbench.until('the value', async () => /"\."\nCL-USER>$/.test(await workbench.terminal()))
    await page.keyboard.press('Control+`')
  }, 'Consort: End a Thread')

  await step('a traced function prints its calls', async () => {
    await scratch('(defun double (x) (* 2 x))\n\n(double 21)')
    await workbench.cursor('scratch.lisp', 'defun double')
    await page.keyboard.press('Alt+Enter')
    await workbench.shows('scratch.lisp', 'DOUBLE')
    await workbench.cursor('scratch.lisp', '(double 21)')
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await workbench.command('Consort: Trace a Function')
    await page.locator('.statusbar-item', { hasText: 'is traced' }).waitFor()
    await page.keyboard.press('Control+End')
    await page.keyboard.press('Alt+Enter')
    await workbench.shows('scratch.lisp', '42')
    await workbench.command('Consort: Open the Last Result')
    await workbench.until('the trace', async () => /DOUBLE 21[^]*DOUBLE returned 42/.test(await text('result')))
  })

  await step('a system is reloaded, with a report of what that changed', async () => {
    await workbench.command('Consort: Reload a System')
    await page.locator('.quick-input-list .monaco-list-row', { hasText: 'telegraph.asd' }).first().waitFor()
    await page.keyboard.type('telegraph')
    await workbench.until('one system alone', async () => (await page.locator('.quick-input-list .monaco-list-row').first().textContent()).startsWith('telegraph'))
    await page.keyboard.press('Enter')
    await workbench.until('the report', async () => (await text('report')).includes('Reloaded the system telegraph.'))
  })
}
