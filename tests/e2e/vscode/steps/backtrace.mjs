// An error's backtrace leads to the source of its calls: from the hover, from the whole result, and
// from the REPL.
import { once } from '../workbench.mjs'

export default async function ({ workbench, page, step }) {
  const failed = async () => {
    await workbench.file('bill.lisp')
    await workbench.cursor('bill.lisp', '(defun share')
    await workbench.evaluateBuffer('bill.lisp', 'DIVISION-BY-ZERO')
  }

  await step('an error, and its backtrace followed to the source', async () => {
    await failed()
    const hover = page.locator('.monaco-hover:not(.hidden)', { hasText: 'Backtrace' }).first()
    // The element that had the focus before may take the hover away just then: the mouse comes
    // again.
    const look = (words) => workbench.until('the hover', async () => {
      await page.mouse.move(640, 795)
      await page.keyboard.press('Escape')
      if (!(await workbench.soon(() => hover.isHidden()))) return false
      await workbench.editor('bill.lisp').locator('.view-line', { hasText: "(split-bills '(40" }).locator('span span', { hasText: /\S/ }).first().hover(once)
      return workbench.soon(() => hover.locator('a', { hasText: words }).isVisible())
    })
    const follow = (words, line) => workbench.until(`line ${line} behind ${words}`, async () => {
      await look(words)
      await hover.locator('a', { hasText: words }).click(once)
      return workbench.soon(async () => (await workbench.state()).active?.selection.active.line === line - 1)
    })
    await look('SPLIT-BILLS')
    await workbench.both('11-backtrace', () => look('SPLIT-BILLS'))
    // The call of SHARE in it, not its first line.
    await follow('SPLIT-BILLS', 9)
    await follow(/\(SHARE/, 3)
  })

  await step('the whole result beside the editor has the same links', async () => {
    await failed()
    await workbench.command('Consort: Open the Last Result')
    await workbench.until('the result', async () => (await workbench.text('result')).includes('Backtrace'))
    const frame = workbench.shown('result').locator('.detected-link', { hasText: 'SPLIT-BILLS' }).first()
    // The line is redrawn while its links come, and when the key goes down, so the position is
    // clicked, and not the element.
    await workbench.until('the source', async () => {
      const { x, y, height } = await frame.boundingBox(once)
      await page.keyboard.down('Control')
      await page.mouse.click(x + 20, y + height / 2).finally(() => page.keyboard.up('Control'))
      return workbench.soon(async () => {
        const { active } = await workbench.state()
        return active?.uri.endsWith('/bill.lisp') && active.selection.active.line === 8
      })
    })
  })
}
