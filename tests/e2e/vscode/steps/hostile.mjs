// A fresh clone whose consort.toml wants programs and code of its own to run: in Restricted Mode,
// and in a folder that VS Code trusts, which is no answer to Consort's question.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILES = {
  'lisp.sh': '#!/bin/sh\necho program >>"$(dirname "$0")/ran"\nexec sbcl "$@"\n',
  'init.lisp': '(with-open-file (out (merge-pathnames (make-pathname :name "ran" :type :unspecific) *load-truename*) :direction :output :if-exists :append :if-does-not-exist :create) (write-line "init" out))\n',
  'greet.lisp': '(defun greet (name)\n  (no-such-function name))\n\n(list 1 2)\n',
  'consort.toml': '[lisp]\ncommand = ["./lisp.sh"]\ninit_file = "init.lisp"\n',
}

export default async function ({ workbench, page, place, step }) {
  const clone = join(place, 'clone')
  const ran = () => (existsSync(join(clone, 'ran')) ? readFileSync(join(clone, 'ran'), 'utf8') : '')
  const consort = (...words) => execFileSync(process.env.CONSORT_BIN, words, { cwd: clone, encoding: 'utf8' })
  const question = page.locator('.notification-toast', { hasText: 'Do you trust it?' })
  const restricted = (value) => workbench.probe.ask('set', { section: 'security.workspace.trust', key: 'enabled', value })
  const open = async () => {
    await workbench.folder('clone')
    await workbench.file('greet.lisp', 'clone')
  }

  await step('a hostile clone runs nothing, asks once, and works after consort trust', async () => {
    rmSync(clone, { recursive: true, force: true })
    mkdirSync(join(clone, '.git'), { recursive: true })
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(clone, name), text)
    chmodSync(join(clone, 'lisp.sh'), 0o755)
    try {
      // Not trusted by VS Code: there is no server, and the text is checked by the extension alone.
      await restricted(true)
      await open()
      await workbench.status().filter({ hasText: 'Lisp: not trusted' }).waitFor()
      await workbench.shot('hostile-restricted')
      assert.equal(await question.count(), 0)
      assert.equal(ran(), '')

      // Trusted by VS Code.
      await restricted(false)
      await open()
      await question.waitFor()
      const asked = await question.textContent()
      assert.match(asked, /lisp\.command = \["\.\/lisp\.sh"\]/)
      assert.match(asked, /lisp\.init_file = "init\.lisp"/)
      assert.equal(await question.count(), 1)
      await workbench.shot('hostile-question')
      assert.equal(ran(), '')
      await workbench.clicked('the answer', question.locator('a', { hasText: /^Not now$/ }), async () => (await question.count()) === 0)
      await workbench.ready()
      await workbench.evaluate('greet.lisp', '(list 1 2)', '(1 2)')
      await workbench.knows('what the person\'s own Lisp found', ({ diagnostics }) => diagnostics.some(({ message }) => /no-such-function/i.test(message)))
      assert.equal(await question.count(), 0)
      assert.equal(ran(), '')

      // With less than it wanted at first: an image of another program is compiled anew.
      writeFileSync(join(clone, 'consort.toml'), '[lisp]\ninit_file = "init.lisp"\n')
      assert.match(consort('trust', '--yes'), /init\.lisp/)
      await open()
      await workbench.ready()
      await workbench.evaluate('greet.lisp', '(list 1 2)', '(1 2)')
      assert.equal(ran(), 'init\n')
      assert.equal(await question.count(), 0)
    } finally {
      await restricted(false)
      // With the folder open, the extension would start the host again.
      await workbench.folder('telegraph')
      consort('stop')
    }
  })
}
