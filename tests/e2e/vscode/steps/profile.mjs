// A profile of a form, as a table and as a flame graph.
export default async function ({ workbench, page, step }) {
  await step('a profile: the table and the flame graph', async () => {
    await workbench.scratch('(defun burn (n) (loop for i below n sum (mod (* i i) 7)))\n\n(defun work () (+ (burn 40000000) (burn 20000000)))\n\n(work)')
    await workbench.evaluateBuffer('scratch.lisp')
    await workbench.cursor('scratch.lisp', /^\(work\)/)
    await workbench.command('Consort: Profile the Top-Level Form')
    await workbench.choose('CPU time')
    const view = page.frameLocator('iframe.webview.ready').frameLocator('iframe#active-frame')
    await view.locator('td a', { hasText: 'BURN' }).first().waitFor()
    await view.locator('.d3-flame-graph-label', { hasText: 'BURN' }).first().waitFor()
    await workbench.both('7-profile')
    await workbench.clicked('the source', view.locator('td a', { hasText: 'BURN' }).first(), async () => {
      const { active } = await workbench.state()
      return active?.uri.endsWith('/scratch.lisp') && active.selection.active.line === 0
    })
  }, 'profileForm')
}
