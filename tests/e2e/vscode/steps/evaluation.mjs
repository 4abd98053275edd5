// Evaluation of code in a file, and the values at the ends of its lines; the package in the status
// bar.
import assert from 'node:assert/strict'
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, step, loaded }) {
  /** Evaluates the file's definition, which the other forms need. */
  const square = async () => {
    await workbench.file('scratch.lisp')
    await workbench.evaluate('scratch.lisp', '(* x x))', 'SQUARE')
  }

  await step('a form is evaluated, and its value stands at the end of its line', async () => {
    await square()
    assert.match(await workbench.evaluate('scratch.lisp', '(square 12)', '144'), /^⇒ 144$/)
  })

  await step('output and a list', async () => {
    await square()
    assert.match(await workbench.evaluate('scratch.lisp', 'counting', '(0 1 4 9 16)'), /counting/)
  })

  await step('a long value ends at the edge of the window', async () => {
    await workbench.scratch('')
    await page.keyboard.type("(loop for i below 200 collect (list i :of 'many))")
    await workbench.evaluate('scratch.lisp', 'collect', '(0 :OF MANY)')
    await workbench.until('the value to end at the edge', async () => {
      const { results, editor } = await workbench.reach('scratch.lisp')
      assert.ok(results > editor - 200 && results <= editor, `the value ends at ${results}, the editor at ${editor}`)
      return true
    })
    await workbench.picture('2-long-dark')
    // The minimap, which VS Code shows unless it is told not to, covers an editor's right part.
    await workbench.probe.ask('set', { section: 'editor', key: 'minimap.enabled', value: true })
    try {
      const minimap = workbench.editor('scratch.lisp').locator('.minimap')
      await workbench.until('the value to end at the minimap', async () => {
        const { results } = await workbench.reach('scratch.lisp')
        return results <= (await minimap.boundingBox(once)).x
      })
    } finally {
      await workbench.probe.ask('set', { section: 'editor', key: 'minimap.enabled', value: false })
    }
  })

  await step('a form that reads asks in an input box; Escape is end of file', async () => {
    await workbench.scratch('(list (progn (princ "How many? ") (read)) :asked)')
    const box = page.locator('.quick-input-widget', { hasText: 'How many?' })
    const evaluate = async () => {
      await workbench.file('scratch.lisp')
      await workbench.cursor('scratch.lisp', ':asked)')
      await page.keyboard.press('Alt+Enter')
      await box.locator('input').first().waitFor()
    }
    await evaluate()
    await workbench.shot('2-input')
    await workbench.entered('How many?', '42')
    await workbench.shows('scratch.lisp', '(42 :ASKED)')
    await evaluate()
    await box.locator('input').first().press('Escape')
    await workbench.shows('scratch.lisp', 'END-OF-FILE')
  })

  await step('a form that differs from the image is marked, and loaded by one command', async () => {
    const marks = async (count) => workbench.until(`${count} marks`, async () => (await workbench.differing('scratch.lisp')) === count)
    await workbench.scratch('(defun older () 1)\n\n(defun newer () (older))')
    await workbench.evaluate('scratch.lisp', 'defun older', 'OLDER')
    // Marks come a moment later: without this one, none would be seen before the first.
    await marks(1)
    await workbench.evaluate('scratch.lisp', 'defun newer', 'NEWER')
    await marks(0)
    await workbench.cursor('scratch.lisp', '(defun older () 1)')
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.type('0')
    await marks(1)
    await workbench.shot('2-differs')
    await workbench.ran('the load of what changed', () => workbench.command('Consort: Load What Changed'))
    await marks(0)
  }, 'differences')

  await step('the innermost form by its own key', async () => {
    await workbench.file('scratch.lisp')
    await workbench.cursor('scratch.lisp', '(* x x))')
    await workbench.ran('the evaluation of a form', async () => {
      await page.keyboard.press('ArrowLeft')
      await page.keyboard.press('Control+Alt+l')
      await page.keyboard.press('e')
    })
    await workbench.shows('scratch.lisp', 'UNBOUND-VARIABLE')
  })

  await step('an error: styled, and the hover has the backtrace', async () => {
    await square()
    await workbench.evaluate('scratch.lisp', '(square 12)', '144')
    await workbench.evaluate('scratch.lisp', '(/ 1 0)', 'DIVISION-BY-ZERO')
    const hover = page.locator('.monaco-hover:not(.hidden)', { hasText: 'Backtrace' }).first()
    await workbench.until('the hover', async () => {
      await page.mouse.move(640, 795)
      await workbench.editor('scratch.lisp').locator('.view-line', { hasText: '(/ 1 0)' }).locator('span span', { hasText: /\S/ }).first().hover(once)
      return workbench.soon(() => hover.locator('a', { hasText: 'Copy' }).first().isVisible())
    })
    await workbench.shot('2-inline-dark')
    await page.mouse.move(640, 795)
    await page.keyboard.press('Escape')
    await hover.waitFor({ state: 'hidden' })
    await workbench.both('3-inline', () => workbench.shows('scratch.lisp', 'DIVISION-BY-ZERO'))
  })

  await step('a result goes when its form is edited, and the others stay', async () => {
    await square()
    await workbench.evaluate('scratch.lisp', '(square 12)', '144')
    await workbench.evaluate('scratch.lisp', '(/ 1 0)', 'DIVISION-BY-ZERO')
    await workbench.cursor('scratch.lisp', '(square 12)')
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.type('0')
    await workbench.until('the value to go', async () => !(await workbench.inline('scratch.lisp')).some((one) => one === '⇒ 144'))
    await workbench.shows('scratch.lisp', 'DIVISION-BY-ZERO')
  })

  await step('the status bar shows the package at the cursor', async () => {
    await loaded()
    await workbench.file('code.lisp')
    await workbench.status().filter({ hasText: 'TELEGRAPH' }).waitFor()
    await workbench.file('scratch.lisp')
    await workbench.status().filter({ hasText: 'CL-USER' }).waitFor()
  })
}
