// e2e.mjs BASE PLACE OUT: what a person does with the extension, step after step, as they see it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import activation from './steps/activation.mjs'
import approval from './steps/approval.mjs'
import backtrace from './steps/backtrace.mjs'
import expansion from './steps/expansion.mjs'
import fixing from './steps/fixing.mjs'
import names from './steps/names.mjs'
import testing from './steps/testing.mjs'
import trees from './steps/trees.mjs'
import { Workbench } from './workbench.mjs'

const [base, place, out] = process.argv.slice(2)
const workbench = await Workbench.open(base, place, out)
const { page } = workbench
let passed = 0
let skipped = 0
const failures = []
const begun = Date.now()
/** `needs`: the title of a command that this version of the server may not offer yet. */
async function step(name, run, needs) {
  if (process.env.ONLY !== undefined && !new RegExp(process.env.ONLY).test(name)) return
  // What follows builds on what was done: after three failures the rest says nothing.
  if (failures.length >= 3) return void failures.push(name)
  try {
    if (needs !== undefined && !(await workbench.offered(needs))) {
      skipped++
      return void console.log(`          SKIPPED ${name}: the server does not offer it`)
    }
    await run()
    passed++
    console.log(`${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s  ok      ${name}`)
  } catch (error) {
    failures.push(name)
    console.log(`${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s  FAILED  ${name}\n${error.stack ?? error}`)
    await workbench.shot(`failure-${failures.length}`).catch(() => undefined)
    await page.keyboard.press('Escape').catch(() => undefined)
  }
}

const shown = (uri) => page.locator(`.monaco-editor[data-uri*="${uri}"]`)
const text = async (uri) => (await shown(uri).locator('.view-line').allTextContents()).join('\n').replaceAll('\u00a0', ' ')

/** Open a file on the left, whatever has the focus: in both groups it would be there twice. */
async function file(name) {
  const tab = page.locator('.tabs-container .tab').first()
  if ((await tab.count()) > 0) await tab.click()
  // Its tooltip would cover the first lines.
  await page.mouse.move(500, 650)
  await workbench.file(name)
}

/** A new text in scratch.lisp. */
async function scratch(wanted) {
  await file('scratch.lisp')
  await workbench.editor('scratch.lisp').locator('.view-line').first().click()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  // As a paste: nothing is closed or indented by itself.
  await page.evaluate((text) => navigator.clipboard.writeText(text), wanted)
  await page.keyboard.press('Control+v')
  await workbench.until('the paste', async () => (await text('scratch.lisp')).split('\n').length === wanted.split('\n').length && (await text('scratch.lisp')).startsWith(wanted.split('\n')[0]))
}

/** What the steps in steps/ need. */
const about = { workbench, page, place, step, scratch, text, shown, file }

await workbench.folder('telegraph')
await workbench.file('mistakes.lisp')
// The first start saves a core.
await workbench.status().locator('.codicon-circle-filled').waitFor({ timeout: 120_000 })

await step('a file with mistakes: squiggles under the names that are meant, and rows in Problems', async () => {
  await workbench.editor('mistakes.lisp').locator('.squiggly-warning, .squiggly-error').first().waitFor({ timeout: 90_000 })
  await page.keyboard.press('Control+Shift+M')
  const row = (text) => page.locator('.markers-panel .monaco-list-row', { hasText: text })
  await row('HEIGTH').first().waitFor()
  await row('NOT-WRITTEN-YET').first().waitFor()
  // The squiggle is as wide as the name it stands under.
  const squiggles = await workbench.editor('mistakes.lisp').locator('.squiggly-warning, .squiggly-error').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width))
  const word = await workbench.editor('mistakes.lisp').locator('.view-line span', { hasText: /heigth/ }).last().evaluate((span) => {
    const range = document.createRange()
    const at = span.textContent.indexOf('heigth')
    range.setStart(span.firstChild, at)
    range.setEnd(span.firstChild, at + 'heigth'.length)
    return range.getBoundingClientRect().width
  })
  assert.ok(squiggles.some((width) => Math.abs(width - word) < 2), `${squiggles} ${word}`)
  await workbench.both('1-problems', () => page.waitForTimeout(300))
  await page.keyboard.press('Control+Shift+M')
})

await fixing(about)

await step('a form is evaluated, and its value stands at the end of its line', async () => {
  await workbench.file('scratch.lisp')
  await workbench.cursor('scratch.lisp', '(* x x))')
  await page.keyboard.press('Alt+Enter')
  await workbench.shows('scratch.lisp', 'SQUARE')
  await workbench.cursor('scratch.lisp', '(square 12)')
  await page.keyboard.press('Alt+Enter')
  assert.match(await workbench.shows('scratch.lisp', '144'), /^⇒ 144$/)
})

await step('output and a list', async () => {
  await workbench.cursor('scratch.lisp', 'counting')
  await page.keyboard.press('Alt+Enter')
  assert.match(await workbench.shows('scratch.lisp', '(0 1 4 9 16)'), /counting/)
})

await step('the innermost form by its own key', async () => {
  await workbench.cursor('scratch.lisp', '(* x x))')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Control+Alt+l')
  await page.keyboard.press('e')
  await workbench.shows('scratch.lisp', 'UNBOUND-VARIABLE')
})

await step('an error: styled, and the hover has the backtrace', async () => {
  await workbench.cursor('scratch.lisp', '(/ 1 0)')
  await page.keyboard.press('Alt+Enter')
  await workbench.shows('scratch.lisp', 'DIVISION-BY-ZERO')
  await workbench.editor('scratch.lisp').locator('.view-line', { hasText: '(/ 1 0)' }).locator('span span').first().hover()
  const hover = page.locator('.monaco-hover:not(.hidden)', { hasText: 'Backtrace' }).first()
  await hover.waitFor()
  await hover.locator('a', { hasText: 'Copy' }).first().waitFor()
  await workbench.shot('2-inline-dark')
  await page.keyboard.press('Escape')
  await page.mouse.move(1200, 300)
  await hover.waitFor({ state: 'hidden' })
  await workbench.both('3-inline', () => workbench.shows('scratch.lisp', 'DIVISION-BY-ZERO'))
})

await step('a result goes when its form is edited, and the others stay', async () => {
  await workbench.cursor('scratch.lisp', '(square 12)')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.type('0')
  await workbench.until('the value to go', async () => !(await workbench.inline('scratch.lisp')).some((one) => one === '⇒ 144'))
  assert.ok((await workbench.inline('scratch.lisp')).some((one) => one.includes('DIVISION-BY-ZERO')))
})

await step('the status bar shows the package at the cursor', async () => {
  await workbench.file('code.lisp')
  await workbench.status().filter({ hasText: 'TELEGRAPH' }).waitFor()
})

await step('the REPL: input over several lines, the package in the prompt, history', async () => {
  await workbench.command('Consort: Open the REPL')
  await workbench.until('the prompt', async () => (await workbench.terminal()).includes('CL-USER>'))
  await page.locator('.terminal-wrapper.active .xterm-screen').click()
  await page.keyboard.type('(list (square 7)')
  await page.keyboard.press('Enter')
  await page.keyboard.type(':done)')
  await page.keyboard.press('Enter')
  await workbench.until('the value', async () => (await workbench.terminal()).includes('(49 :DONE)'))
  await page.keyboard.type('(format t "two~%lines~%")')
  await page.keyboard.press('Enter')
  await workbench.until('output', async () => /^two\nlines\nNIL$/m.test(await workbench.terminal()))
  await page.keyboard.type('(in-package :cl)')
  await page.keyboard.press('Enter')
  await workbench.until('the other package', async () => (await workbench.terminal()).endsWith('COMMON-LISP>'))
  await page.keyboard.type('(in-package :cl-user)')
  await page.keyboard.press('Enter')
  await workbench.until('the package again', async () => (await workbench.terminal()).endsWith('CL-USER>'))
  await page.keyboard.type('(/ 5 0)')
  await page.keyboard.press('Enter')
  await workbench.until('the error', async () => /DIVISION-BY-ZERO.*\n[\s\S]*CL-USER>$/.test(await workbench.terminal()))
  for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowUp')
  await workbench.until('history', async () => (await workbench.terminal()).endsWith(':done)'))
  await workbench.both('4-repl', () => page.waitForTimeout(500))
  await page.keyboard.press('Control+c')
})

await step('Ctrl-C in the REPL interrupts', async () => {
  await page.keyboard.type('(loop)')
  await page.keyboard.press('Enter')
  await workbench.status().locator('.codicon-loading').waitFor()
  await page.keyboard.press('Control+c')
  await workbench.until('the prompt', async () => /interrupt[\s\S]*CL-USER>$/i.test(await workbench.terminal()))
  await page.keyboard.press('Control+`')
})

await step('the side bar: a system is loaded, and who is connected', async () => {
  await page.locator('.activitybar a[aria-label="Common Lisp"], .activitybar [aria-label^="Common Lisp"]').first().click()
  const row = page.locator('.pane-body .monaco-list-row', { hasText: 'telegraph.asd' }).first()
  await row.waitFor()
  await row.hover()
  await row.locator('a[aria-label*="Load a System"]').click()
  await page.locator('.pane-body .monaco-list-row', { hasText: /^telegraph\s*loaded/ }).first().waitFor({ timeout: 60_000 })
  await page.locator('.pane-body .monaco-list-row', { hasText: 'Connected' }).waitFor()
  await page.mouse.move(900, 300)
})

await step('what the server offers is in the palette', async () => {
  assert.equal(await workbench.offered('Consort: Open the REPL'), true)
  assert.equal(await workbench.offered('Consort: Untrace a Function'), true)
})

await step('the image is killed, and comes back by itself', async () => {
  const status = JSON.parse(execFileSync(process.env.CONSORT_BIN, ['status', '--json'], { cwd: join(place, 'telegraph'), encoding: 'utf8' }))
  process.kill(status.image.pid, 'SIGKILL')
  await workbench.file('code.lisp')
  await workbench.until('another image', () => {
    const now = JSON.parse(execFileSync(process.env.CONSORT_BIN, ['status', '--json'], { cwd: join(place, 'telegraph'), encoding: 'utf8' }))
    return now.image.state === 'ready' && now.image.pid !== status.image.pid
  }, 60_000)
  await workbench.status().filter({ hasText: 'TELEGRAPH' }).waitFor()
  await workbench.cursor('code.lisp', '(write-char')
  await page.keyboard.press('Alt+Enter')
  await workbench.shows('code.lisp', 'DECODE')
})

await step('the window is reloaded, and the image is still what it was', async () => {
  await page.reload()
  await workbench.status().filter({ hasText: 'Lisp' }).waitFor({ timeout: 60_000 })
  await scratch('(telegraph:encode "sos")')
  await workbench.status().filter({ hasText: 'COMMON-LISP-USER' }).waitFor({ timeout: 60_000 })
  await page.keyboard.press('Alt+Enter')
  await workbench.shows('scratch.lisp', '... --- ...')
})

await expansion(about)

await step('a profile: the table and the flame graph', async () => {
  await scratch('(defun burn (n) (loop for i below n sum (mod (* i i) 7)))\n\n(defun work () (+ (burn 40000000) (burn 20000000)))\n\n(work)')
  await page.keyboard.press('Control+Alt+l')
  await page.keyboard.press('b')
  await workbench.shows('scratch.lisp', '⇒')
  await workbench.cursor('scratch.lisp', '(work)')
  await workbench.file('scratch.lisp')
  await page.keyboard.press('Control+End')
  await workbench.command('Consort: Profile the Top-Level Form')
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'CPU time' }).first().waitFor()
  await page.keyboard.press('Enter')
  const view = page.frameLocator('iframe.webview.ready').frameLocator('iframe#active-frame')
  await view.locator('td a', { hasText: 'BURN' }).first().waitFor({ timeout: 90_000 })
  await view.locator('.d3-flame-graph-label', { hasText: 'BURN' }).first().waitFor()
  await workbench.both('7-profile', () => page.waitForTimeout(500))
  await view.locator('td a', { hasText: 'BURN' }).first().click()
}, 'Consort: Describe the Symbol')

await step('structural editing where parentheses mislead', async () => {
  await scratch('(list "a (") (two)')
  await page.keyboard.press('Home')
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight')
  await workbench.command('Consort: Structure: Slurp the Next Form')
  await workbench.until('the form to come in', async () => (await text('scratch.lisp')) === '(list "a (" (two))')
}, 'Consort: Structure: Slurp the Next Form')

await approval(about)
await names(about)
await backtrace(about)
await testing(about)
await trees(about)
await activation(about)

await step('no key is one that VS Code has already', async () => {
  await workbench.command('Preferences: Open Default Keyboard Shortcuts (JSON)')
  await shown('keybindings.json').locator('.view-line').first().click()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Control+c')
  const copied = await workbench.until('the copy', async () => {
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    return copied.length > 10_000 ? copied : undefined
  })
  const all = [...copied.matchAll(/"key": "([^"]+)",\s*"command": "([^"]+)"/g)].map(([, key, command]) => ({ key, command }))
  const taken = new Set(all.filter(({ command }) => !command.startsWith('consort.')).map(({ key }) => key.split(' ')[0]))
  assert.ok(taken.size > 200, `${taken.size}`)
  const own = all.filter(({ command }) => command.startsWith('consort.'))
  assert.ok(own.length > 30, `${own.length}`)
  // Alt+Enter is the find widget's, and ours where that is not shown.
  assert.deepEqual(own.filter(({ key }) => key !== 'alt+enter' && taken.has(key.split(' ')[0])), [])
  await page.keyboard.press('Control+F4')
})

await step('without the program: one notification, and the walkthrough with the commands', async () => {
  const program = join(process.env.HOME, '.cargo/bin/consort')
  renameSync(program, `${program}.away`)
  await workbench.command('Consort: Restart the Connection')
  await workbench.status().filter({ hasText: 'Consort is not installed' }).waitFor()
  const notice = page.locator('.notification-toast', { hasText: 'was not found' })
  await notice.waitFor()
  assert.equal(await page.locator('.notification-toast').count(), 1)
  await notice.locator('.monaco-button', { hasText: 'Show What to Do' }).click()
  await page.locator('.gettingStartedContainer', { hasText: 'sudo apt-get install sbcl' }).first().waitFor()
  await workbench.both('9-walkthrough', () => page.waitForTimeout(500))
  renameSync(`${program}.away`, program)
  await workbench.command('Consort: Restart the Connection')
  await workbench.status().filter({ hasText: 'Lisp' }).waitFor()
})

await step('no outside host was asked', async () => assert.deepEqual([...workbench.outside], []))

await workbench.context.close()
for (const failure of failures) console.log(`FAILED ${failure}`)
console.log(`${passed} passed, ${failures.length} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failures.length === 0 ? 0 : 1
