// A form recorded in a copy: its calls, a question, and the source of a row.
export default async function ({ workbench, step }) {
  await step('a form is recorded, asked about, and a row leads to its source', async () => {
    await workbench.scratch('(defun tripled (n)\n  (* 3 n))\n\n(defun tripled-twice (n)\n  (let ((once (tripled n)))\n    (tripled once)))\n\n(tripled-twice 7)')
    await workbench.probe.execute('workbench.action.files.save')
    await workbench.evaluateBuffer('scratch.lisp')
    await workbench.shows('scratch.lisp', '⇒')
    await workbench.cursor('scratch.lisp', /^\(tripled-twice\s7\)/)
    await workbench.command('Consort: Record the Form')
    await workbench.choose('Values of an expression')
    await workbench.quickInput().locator('input').fill('(* 3 n)')
    await workbench.page.keyboard.press('Enter')
    await workbench.choose('(* 3 n) => 21')
    await workbench.at('scratch.lisp', 2)
  }, 'record')
}
