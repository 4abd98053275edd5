// The keys beside VS Code's own; and what a person sees when the program is not there.
import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'

export default async function ({ workbench, page, step }) {
  await step('no key is one that VS Code has already', async () => {
    await workbench.command('Preferences: Open Default Keyboard Shortcuts (JSON)')
    const text = await workbench.until('the list of keys', async () => {
      const { active } = await workbench.state()
      return active?.uri.endsWith('keybindings.json') && active.text.length > 10_000 && active.text
    })
    const all = [...text.matchAll(/"key": "([^"]+)",\s*"command": "([^"]+)"/g)].map(([, key, command]) => ({ key, command }))
    const taken = new Set(all.filter(({ command }) => !command.startsWith('consort.')).map(({ key }) => key.split(' ')[0]))
    assert.ok(taken.size > 200, `${taken.size}`)
    // SLIME's keys and those of strict deletion are there only where a setting asks for them.
    const strict = ['delete consort.editor.structure.deleteForward', 'backspace consort.editor.structure.deleteBackward']
    const own = all.filter(({ key, command }) => command.startsWith('consort.') && !/^ctrl\+[cx] /.test(key) && !strict.includes(`${key} ${command}`))
    assert.ok(own.length > 30, `${own.length}`)
    // Alt+Enter is the find widget's, and ours where that is not shown.
    assert.deepEqual(own.filter(({ key }) => key !== 'alt+enter' && taken.has(key.split(' ')[0])), [])
  })

  await step('the walkthrough has marked what is there already', async () => {
    await workbench.scratch('(+ 1 2)')
    await workbench.evaluate('scratch.lisp', '(+ 1', '⇒ 3')
    await workbench.command('Consort: Get Started')
    for (const title of ['Install SBCL', 'Install Consort', 'Check the installation'])
      await page.locator('.getting-started-step', { hasText: title }).locator('[role=checkbox][aria-checked=true]').first().waitFor()
  })

  await step('without the program: one notification, and the walkthrough with the commands', async () => {
    const program = join(process.env.HOME, '.cargo/bin/consort')
    renameSync(program, `${program}.away`)
    try {
      await workbench.command('Consort: Restart the Connection')
      await workbench.knows('the program to be missed', ({ consort }) => consort.condition.state === 'down' && consort.condition.why === 'not-found')
      await workbench.status().filter({ hasText: 'Consort is not installed' }).waitFor()
      await workbench.told('Consort is not installed')
      assert.equal(await page.locator('.notification-list-item').count(), 1)
      await workbench.press('Consort is not installed', 'Show What to Do')
      await page.locator('.gettingStartedContainer', { hasText: 'sudo apt-get install sbcl' }).first().waitFor()
      await workbench.both('9-walkthrough')
    } finally {
      renameSync(`${program}.away`, program)
      await workbench.command('Consort: Restart the Connection')
    }
    await workbench.ready()
    await workbench.status().filter({ hasText: 'Lisp' }).waitFor()
  })
}
