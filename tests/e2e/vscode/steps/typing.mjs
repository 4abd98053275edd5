// Typing, key by key: where new lines stand, running and stopping, the offer when a package is not
// there.
import assert from 'node:assert/strict'
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, step }) {
  const scratch = () => workbench.text('scratch.lisp')
  /** Shows an empty file, with the cursor in it. */
  const empty = async () => {
    await workbench.scratch(';')
    await page.keyboard.press('Backspace')
    await workbench.until('an empty file', async () => (await scratch()) === '')
  }
  const keys = async (...pressed) => {
    for (const key of pressed) await page.keyboard.press(key)
  }

  await step('what is typed stands where Lisp has it, at the first keystroke', async () => {
    await empty()
    // As fast as keys can come, without waiting for answers of the server.
    await page.keyboard.type('(defun shout (word)\n(when word\n(let ((loud (string-upcase word))\n(soft 1))')
    const lines = ['(defun shout (word)', '  (when word', '    (let ((loud (string-upcase word))', '          (soft 1))']
    await workbench.until('the lines as wanted', async () => (await scratch()).startsWith(lines.join('\n')))
    // Where the line alone does not determine the indentation, it comes a moment later.
    await page.keyboard.press('Enter')
    await workbench.until('the indentation of the body', async () => /^ {6}(?! )/.test((await workbench.state()).active?.line))
    await page.keyboard.type('(list loud\nsoft')
    await workbench.until('the argument below the one before', async () => (await workbench.state()).active?.line.startsWith(`${' '.repeat(12)}soft`))
    await workbench.picture('13-typed-dark')
    // A form behind an empty line begins at the margin, however late the answers are.
    await empty()
    await page.keyboard.type('(defun per (a b)\n(/ a b))\n\n(defun rates (list)\n(mapcar (lambda (x) (per 1 x)) list))', { delay: 12 })
    const forms = ['(defun per (a b)', '  (/ a b))', '', '(defun rates (list)', '  (mapcar (lambda (x) (per 1 x)) list))']
    await workbench.until('both forms at the margin', async () => (await scratch()) === forms.join('\n'))
  })

  await step('a character that is a delimiter is not closed', async () => {
    await empty()
    const line = '(list #\\( #\\" #\\; #\\| 1)'
    await page.keyboard.type(line)
    await workbench.until('the line as typed', async () => (await scratch()).trimEnd() === line)
  })

  await step('a form that runs says for how long, and is stopped by a key', async () => {
    await workbench.scratch('(defun square (x) (* x x))\n\n(square 12)\n\n(loop (sleep 1))')
    await workbench.evaluate('scratch.lisp', 'defun square', 'SQUARE')
    await workbench.evaluate('scratch.lisp', /^\(square/, '⇒ 144')
    await workbench.ready()
    await workbench.cursor('scratch.lisp', '(loop')
    await keys('Alt+Enter')
    await workbench.shows('scratch.lisp', ' s · Ctrl+Alt+L I stops')
    // An evaluation that waits in the queue, and is cancelled, keeps the earlier value and says so.
    await workbench.cursor('scratch.lisp', /^\(square/)
    await keys('Alt+Enter')
    await workbench.shows('scratch.lisp', '… queued · Ctrl+Alt+L I stops')
    await workbench.picture('14-running-dark')
    await keys('Control+Alt+l', 'i')
    await workbench.shows('scratch.lisp', 'interrupted')
    assert.match(await workbench.shows('scratch.lisp', 'cancelled'), /^⇒ 144 {2}· cancelled, not evaluated again$/)
  })

  await step('a file that does not compile: its reason, its place, and what can be loaded all the same', async () => {
    await workbench.scratch('(defun whole (x) x)\n\n(defun broken (x)\n  (let ((y 1 2))\n    (+ x y)))\n\n(whole 1)')
    await workbench.ready()
    await workbench.command('Consort: Compile the File')
    await workbench.told('is malformed (scratch.lisp:4)')
    await workbench.picture('31-not-compiled-dark')
    await workbench.press('is malformed (scratch.lisp:4)', 'Go to It', async () => (await workbench.state()).active?.selection.active.line === 3)
    await workbench.command('Consort: Compile the File')
    await workbench.press('is malformed (scratch.lisp:4)', 'Load Anyway')
    await workbench.until('the report', async () => (await workbench.text('reload.txt')).includes('Loaded with errors'))
    await workbench.scratch('(defun broken (x)\n  (list x')
    await workbench.ready()
    await workbench.command('Consort: Compile the File')
    await workbench.told('This list is never closed')
    const notice = workbench.notice('This list is never closed').first()
    await notice.locator('a.monaco-button', { hasText: 'Go to It' }).waitFor()
    assert.equal(await notice.locator('a.monaco-button', { hasText: 'Load Anyway' }).count(), 0)
  })

  await step('code in a package that is not there yet: a button makes it', async () => {
    await workbench.scratch('(defpackage :buttons (:use :cl))\n(in-package :buttons)\n\n(defun answer ()\n  42)')
    await workbench.ready()
    // Also where the form that names the package is itself evaluated.
    await workbench.cursor('scratch.lisp', '(in-package :buttons)')
    await keys('Alt+Enter')
    await workbench.told('BUTTONS')
    await workbench.probe.execute('notifications.clearAll')
    await workbench.cursor('scratch.lisp', '  42)')
    await keys('Alt+Enter')
    await workbench.told('BUTTONS')
    await workbench.picture('15-package-dark')
    await workbench.ran('the evaluation of the file', () => workbench.press('BUTTONS', 'Evaluate the Whole File'))
    await workbench.shows('scratch.lisp', 'ANSWER')
    await page.keyboard.press('Control+End')
    await page.keyboard.type('\n\n(warn "careful")')
    await workbench.evaluate('scratch.lisp', '(warn', '⚠ ⇒')
    // The hover names the package that the code was read in, with what can be done first.
    const hover = page.locator('.monaco-hover:not(.hidden)', { hasText: 'evaluated by you in' }).first()
    await workbench.until('the hover', async () => {
      await page.mouse.move(640, 795)
      await workbench.editor('scratch.lisp').locator('.view-line', { hasText: '(warn' }).locator('span span', { hasText: /\S/ }).first().hover(once)
      return workbench.soon(() => hover.isVisible())
    })
    assert.match(await hover.textContent(), /evaluated by you in BUTTONS/)
    assert.match(await hover.textContent(), /careful/)
    await workbench.shot('16-warned-dark')
  })
}
