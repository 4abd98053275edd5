// The REPL: several lines, packages, history, and Ctrl-C.
export default async function ({ workbench, page, step, loaded }) {
  const says = (what, wanted) => workbench.until(what, async () => wanted.test(await workbench.terminal()))

  await step('the REPL: input over several lines, the package in the prompt, history', async () => {
    await workbench.repl()
    await workbench.line('(list (isqrt 7)')
    await workbench.line(':done)')
    await says('the value', /^\(2 :DONE\)\nCL-USER>$/m)
    await workbench.line('(format t "two~%lines~%")')
    await says('output', /^two\nlines\nNIL\nCL-USER>$/m)
    await workbench.line('(in-package :cl)')
    await says('the other package', /COMMON-LISP>$/)
    await workbench.line('(in-package :cl-user)')
    await says('the package again', /CL-USER>$/)
    await workbench.line('(/ 5 0)')
    await says('the error', /DIVISION-BY-ZERO.*\n[\s\S]*CL-USER>$/)
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowUp')
    await says('history', /:done\)$/)
    await workbench.both('4-repl')
  })

  await step('the REPL opens in the package of the file, and in the last one again', async () => {
    await loaded()
    // The cursor is in the first line: the package is that of the first form.
    await workbench.file('code.lisp')
    await workbench.command('Consort: Open the REPL')
    await says('the package of the file', /^TELEGRAPH>$/m)
    await workbench.probe.execute('workbench.action.terminal.kill')
    await workbench.knows('no terminal', ({ terminals }) => terminals.length === 0)
    await workbench.scratch('(+ 1 2)')
    await workbench.command('Consort: Open the REPL')
    await says('the last package', /^TELEGRAPH>$/m)
    await workbench.until('the focus in the REPL', () => page.evaluate(() => document.activeElement?.closest('.terminal-wrapper.active') != null))
    await workbench.line('(encode "e")')
    await says('the value', /^"\."\nTELEGRAPH>$/m)
    await workbench.line('(in-package :cl-user)')
    await says('the first package', /CL-USER>$/)
  })

  await step('code that reads takes the line that is typed behind its prompt, in the REPL', async () => {
    await workbench.repl()
    await workbench.line('(progn (format t "Your name? ") (list (read-line) :read))')
    await says('the prompt of the code', /Your name\?$/)
    await workbench.line('Ada (Lovelace')
    await says('the value', /^Your name\? Ada \(Lovelace\n\("Ada \(Lovelace" :READ\)\nCL-USER>$/m)
    await workbench.line('(y-or-n-p "Really?")')
    await says('the question', /Really\? \(y or n\)$/)
    await workbench.shot('4-repl-input')
    await workbench.line('y')
    await says('the answer', /^T\nCL-USER>$/m)
    // An end of file names its reason.
    await workbench.line('(read-line)')
    await workbench.knows('the reading', ({ consort }) => consort.busy)
    // Kept until the code reads; a second one might be typed at the prompt, and end the REPL.
    await page.keyboard.press('Control+d')
    await says('the end of file', /cancelled by the person[\s\S]*CL-USER>$/)
  })

  await step('Ctrl-C in the REPL interrupts', async () => {
    await workbench.repl()
    await workbench.line('(loop)')
    await workbench.knows('the loop', ({ consort }) => consort.busy)
    await workbench.status().locator('.codicon-loading').waitFor()
    await page.keyboard.press('Control+c')
    await says('the prompt', /\(loop\)\n[\s\S]*interrupt[\s\S]*CL-USER>$/i)
  })
}
