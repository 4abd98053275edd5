// A newcomer's first minutes: a new project, a key before anything has started, a machine without
// SBCL, a folder that is not trusted.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export default async function ({ workbench, page, place, step }) {
  const program = join(process.env.HOME, '.cargo/bin/consort')
  /** Runs with a shell script in place of the program `consort`. */
  const instead = async (script, run) => {
    renameSync(program, `${program}.away`)
    try {
      writeFileSync(program, `#!/bin/sh\n${script}\n`)
      chmodSync(program, 0o755)
      await run()
    } finally {
      renameSync(`${program}.away`, program)
    }
  }
  const end = (name) => execFileSync(process.env.CONSORT_BIN, ['stop'], { cwd: join(place, name), stdio: 'ignore' })

  await step('a new project is made, opened, and gives its first value', async () => {
    rmSync(join(place, 'greeter'), { recursive: true, force: true })
    await workbench.empty()
    try {
      // The page takes the focus back after a command of the palette, and the box stays.
      await workbench.command('Consort: Get Started')
      // Its step gets the focus last; a palette that is open by then would be closed.
      await workbench.until("the page's step", () => page.evaluate(() => document.activeElement?.closest('.getting-started-step.expanded') != null))
      await workbench.command('Consort: New Project')
      const input = workbench.quickInput().locator('input').first()
      await workbench.quickInput().filter({ hasText: 'Its name' }).waitFor()
      await input.fill('Greeter')
      await workbench.quickInput().filter({ hasText: 'Lower-case letters' }).waitFor()
      await input.fill('greeter')
      await workbench.enter('greeter')
      await workbench.until('the question where', async () => /Where shall greeter be made/.test(await workbench.quickInput().textContent()))
      await workbench.folderChosen(place, 'original', 'Make It Here')
      await workbench.until('its files', () => existsSync(join(place, 'greeter/tests.lisp')))
      // The window is another one, and shows the file that a person begins with.
      await workbench.until('the file with the focus', () => workbench.hasFocus('greeter.lisp'))
      await workbench.until('the cursor in the form that is there to be tried', async () => (await workbench.state())?.active?.line === '(greeting "Lisp")')
      await page.keyboard.press('Alt+Enter')
      await workbench.told('GREETER')
      // The package is defined in another file.
      assert.doesNotMatch(await workbench.notice('GREETER').first().textContent(), /Whole File/)
      await workbench.press('GREETER', 'Load greeter')
      await workbench.shows('greeter.lisp', '⇒ "Hello, Lisp!"')
      await workbench.picture('20-new-project-dark')
    } finally {
      await workbench.folder('telegraph')
      if (existsSync(join(place, 'greeter'))) end('greeter')
    }
  })

  await step('a key that is pressed before the server is there waits for it', async () => {
    const go = join(place, 'go')
    rmSync(go, { force: true })
    await workbench.scratch('(defun waited-for (x)\n  (* x x))')
    await workbench.ready()
    await instead(`while [ ! -e '${go}' ]; do sleep 0.05; done\nexec '${process.env.CONSORT_BIN}' "$@"`, async () => {
      try {
        await workbench.command('Consort: Restart the Connection')
        await workbench.knows('the start', ({ consort }) => consort?.condition.state === 'starting')
        await workbench.file('scratch.lisp')
        await workbench.cursor('scratch.lisp', '(* x x))')
        await page.keyboard.press('Alt+Enter')
        await workbench.shows('scratch.lisp', '…')
      } finally {
        // The program waits for this file.
        writeFileSync(go, '')
      }
      await workbench.shows('scratch.lisp', 'WAITED-FOR')
      await workbench.untold(/Consort/)
    })
    await workbench.ready()
  })

  await step('without SBCL: what is missing, and a button that installs it', async () => {
    await workbench.ready()
    await workbench.scratch('(+ 1 2)')
    try {
      await instead(`PATH=/nonexistent exec '${process.env.CONSORT_BIN}' "$@"`, async () => {
        // The connection is opened again by itself.
        end('telegraph')
        const missing = 'SBCL, the Lisp that Consort needs, is not installed.'
        await workbench.status().filter({ hasText: 'SBCL is not installed' }).waitFor()
        await workbench.told(missing)
        assert.equal(await page.locator('.notification-list-item', { hasText: 'not on the PATH' }).count(), 0)
        await workbench.picture('21-no-sbcl-dark')
        // The same message and buttons come for a key that needs Lisp.
        await page.keyboard.press('Escape')
        await workbench.probe.execute('notifications.clearAll')
        await workbench.until('no notification', async () => (await workbench.notice(missing).count()) === 0)
        await workbench.file('scratch.lisp')
        await page.keyboard.press('Alt+Enter')
        await workbench.told(missing)
        assert.equal(await page.locator('.notification-list-item', { hasText: 'not on the PATH' }).count(), 0)
        await workbench.press(missing, /^Install with/)
        // A long prompt breaks the line.
        const command = /(apt-get|dnf|pacman|zypper|brew)\s[^]*sbcl$/
        await workbench.until('the command, which waits for Enter', async () => command.test(await workbench.terminal()))
      })
    } finally {
      end('telegraph')
      await workbench.command('Consort: Restart the Connection')
      await workbench.ready()
    }
  })

  await step('a folder that is not trusted: parentheses are checked, nothing runs, and trust begins the rest', async () => {
    const folder = join(place, 'unknown')
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    writeFileSync(join(folder, 'found.lisp'), '(defun found (x)\n  (list x :found))\n\n(found 1)\n')
    const trust = (key, value) => workbench.probe.ask('set', { section: 'security.workspace.trust', key, value })
    await trust('startupPrompt', 'never')
    await trust('enabled', true)
    try {
      await workbench.folder('unknown')
      await workbench.probe.ask('open', { path: join(folder, 'found.lisp') })
      await workbench.knows('the folder not to be trusted', ({ consort }) => consort?.condition.why === 'untrusted')
      await workbench.status().filter({ hasText: 'not trusted' }).waitFor()
      await workbench.cursor('found.lisp', '(found 1)')
      await page.keyboard.press('Backspace')
      await workbench.knows('the parenthesis to be missed', ({ diagnostics }) => diagnostics.some(({ uri }) => uri.endsWith('/found.lisp')))
      await page.keyboard.type(')')
      await workbench.knows('nothing to be missed', ({ diagnostics }) => !diagnostics.some(({ uri }) => uri.endsWith('/found.lisp')))
      await page.keyboard.press('Alt+Enter')
      const told = 'Nothing is run in a folder that you have not trusted.'
      await workbench.told(told)
      await workbench.shot('22-not-trusted-dark')
      const trusts = page.locator('.workspace-trust-buttons-row a.monaco-button', { hasText: /^Trust$/ }).first()
      await workbench.press(told, 'Manage Trust', () => trusts.isVisible())
      await workbench.clicked('the trust', trusts, async () => {
        const consort = (await workbench.state())?.consort
        return consort !== undefined && consort.condition.why !== 'untrusted'
      })
      await workbench.ready()
      await workbench.probe.ask('open', { path: join(folder, 'found.lisp') })
      await workbench.evaluate('found.lisp', '(list x :found)', 'FOUND')
      await workbench.evaluate('found.lisp', '(found 1)', '⇒ (1 :FOUND)')
    } finally {
      await trust('enabled', false)
      await workbench.folder('telegraph')
      end('unknown')
    }
  })

  await step("SLIME's keys, once they are asked for; the sheet has them", async () => {
    await workbench.ready()
    await workbench.probe.ask('set', { section: 'consort', key: 'keys', value: 'slime' })
    try {
      await workbench.scratch('(list :by (* 6 7) :slime)')
      // The window hears of the setting later than the extension host, and nothing tells when.
      const { finished } = (await workbench.state()).consort
      await workbench.until('the evaluation', async () => {
        await page.keyboard.press('Control+c')
        await page.keyboard.press('Control+c')
        return workbench.soon(async () => {
          const { consort } = await workbench.state()
          return consort.busy || consort.finished > finished
        })
      })
      await workbench.shows('scratch.lisp', '(:BY 42 :SLIME)')
      await workbench.command('Consort: Show the Keys')
      await workbench.until('the sheet', async () => /Alt\+Enter, Ctrl\+C Ctrl\+C +Evaluate the Top-Level Form/.test(await workbench.text('keys/')))
      await workbench.picture('23-keys-dark')
    } finally {
      await workbench.probe.ask('set', { section: 'consort', key: 'keys', value: undefined })
    }
  })
}
