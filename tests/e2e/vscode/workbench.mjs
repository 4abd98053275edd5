// VS Code's workbench in Chromium, as a person sees and uses it. Before a key or a click it waits
// until that will reach its target, and afterwards until the editor and the extension report that
// it has: the display comes later than either.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Probe, told } from './probe.mjs'

// From NODE_PATH, which only `require` knows.
const { chromium } = createRequire(import.meta.url)('playwright-core')
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/**
 * The time limits, in milliseconds: for something that must come, and for an attempt that can be
 * repeated.
 */
export const PATIENCE = Number(process.env.CONSORT_TEST_PATIENCE ?? 120_000)
const ATTEMPT = PATIENCE / 40
/** For a click in a loop that makes it again. */
export const once = { timeout: ATTEMPT }

/** The settings that steps change, as settings.mjs has them. */
const SETTINGS = [['consort', 'debug.on_error', 'report'], ['consort', 'keys', undefined]]

// The name under which VS Code's own service worker serves files to webviews: nothing of it leaves
// the browser.
const WEBVIEW = '.vscode-resource.vscode-cdn.net'

export class Workbench {
  static async open(base, place, out) {
    const browser = BROWSERS.find(existsSync)
    assert.ok(browser, 'Chromium is not installed')
    const context = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'chromium-')), {
      executablePath: browser, headless: true, viewport: { width: 1280, height: 800 }, timeout: PATIENCE,
      locale: 'en-US', timezoneId: 'UTC', colorScheme: 'dark',
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--no-proxy-server'],
    })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    return new Workbench(context, context.pages()[0] ?? (await context.newPage()), base, place, out)
  }

  constructor(context, page, base, place, out) {
    Object.assign(this, { context, page, base, place, out, outside: new Set(), probe: new Probe(process.env.CONSORT_PROBE) })
    page.setDefaultTimeout(PATIENCE)
    page.setDefaultNavigationTimeout(PATIENCE)
    // A reload with unsaved text asks.
    page.on('dialog', (dialog) => void dialog.accept())
    page.on('request', (request) => {
      const url = new URL(request.url())
      if (/^https?:$/.test(url.protocol) && url.hostname !== '127.0.0.1' && !url.hostname.endsWith(WEBVIEW)) this.outside.add(url.host)
    })
    void context.route((url) => /^https?:$/.test(url.protocol) && url.hostname !== '127.0.0.1', (route) => route.abort())
  }

  // Waiting.

  /**
   * Waits until the condition gives something true, and resolves to that. An error in the condition
   * counts as false; the last one is the cause of the failure.
   */
  async until(what, condition, timeout = PATIENCE) {
    const end = Date.now() + timeout
    let cause
    for (;;) {
      try {
        const got = await condition()
        if (got) return got
        cause = undefined
      } catch (error) {
        cause = error
      }
      if (Date.now() > end) throw new Error(`waited ${Math.round(timeout / 1000)} s in vain for ${what}`, { cause })
      await this.page.waitForTimeout(50)
    }
  }
  /** Returns true if the condition becomes true in the time after which an attempt is repeated. */
  soon(condition) {
    return this.until('', condition, ATTEMPT).then(() => true, () => false)
  }
  /** The same, with a longer time, where another attempt would undo a late effect of the first. */
  late(condition) {
    return this.until('', condition, PATIENCE / 4).then(() => true, () => false)
  }
  state() {
    return this.probe.state()
  }
  /** Waits until the state of the editor and the extension is as wanted. */
  knows(what, condition) {
    return this.until(what, async () => {
      const state = await this.state()
      return state !== undefined && condition(state)
    })
  }
  /**
   * Waits until Lisp answers, nothing is evaluated, and the server has the present texts and
   * settings.
   */
  async ready() {
    // VS Code looks for the files that activate the extension for seven seconds, on a busy machine
    // in vain. Then any of the extension's commands activates it.
    if ((await this.state())?.consort === undefined) await this.probe.execute('consort.editor.refresh')
    await this.knows('Lisp to be ready', ({ consort, onError }) =>
      consort?.started && ['ready', 'idle'].includes(consort.condition.state) && !consort.busy && !consort.testing && consort.offered.length > 0 &&
      consort.documents.every(({ version, sent }) => version === sent) && consort.settings.debug?.on_error === onError)
  }
  /**
   * Clicks an element until that has its effect: a notification or a list may be redrawn between
   * the press and the release of the mouse.
   */
  clicked(what, element, effect) {
    return this.until(what, async () => {
      if (await effect()) return true
      await element.click(once)
      return this.soon(effect)
    })
  }
  /** Runs an action that makes the extension evaluate something, and waits for its end. */
  async ran(what, action) {
    await this.ready()
    const before = (await this.state()).consort.finished
    await action()
    await this.knows(`the end of ${what}`, ({ consort }) => consort?.finished > before && !consort.busy)
  }
  /** Describes the state and the window, for a failure. */
  async described() {
    const state = await this.state().catch((error) => void error)
    const seen = await this.page.evaluate(() => {
      const focus = document.activeElement
      const text = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent.trim()).filter((one) => one !== '').join(' | ').slice(0, 500)
      return [
        `focus: ${focus?.tagName} ${focus?.className ?? ''} in ${focus?.closest('[data-uri]')?.getAttribute('data-uri') ?? focus?.closest('.part')?.id ?? 'nothing'}`,
        `status bar: ${text('.statusbar-item')}`, `list: ${text('.quick-input-widget:not([style*="display: none"]) .monaco-list-row')}`,
        `notifications: ${text('.notification-toast')}`,
      ].join('\n')
    }).catch((error) => `the page does not answer: ${error.message}`)
    return `${told(state)}\n${seen}`
  }

  // The window.

  folder(name) {
    return this.go('folder', name)
  }
  /** Opens a window with all folders of a file *.code-workspace. */
  workspace(name) {
    return this.go('workspace', name)
  }
  /** Opens a window without a folder. */
  empty() {
    return this.to('ew=true', '.part.editor')
  }
  go(what, name) {
    return this.to(`${what}=${encodeURIComponent(join(this.place, name))}`, '.explorer-folders-view')
  }
  async to(query, sign) {
    const before = (await this.state().catch(() => undefined))?.pid
    await this.page.goto(`${this.base}/?${query}`, { waitUntil: 'commit' })
    await this.page.locator(sign).waitFor()
    await this.knows('the extension host of this window', ({ pid }) => pid !== before)
  }
  async reload() {
    const before = (await this.state())?.pid
    await this.page.reload()
    await this.page.locator('.explorer-folders-view').waitFor()
    await this.knows('the extension host of this window', ({ pid }) => pid !== before)
  }
  /** Has evaluations stop at errors, and waits until the server knows it. */
  async stopsAtErrors() {
    await this.probe.ask('set', { section: 'consort', key: 'debug.on_error', value: 'stop' })
    await this.ready()
  }
  /**
   * Closes all editors, terminals, lists, sessions and notifications, restores the settings and the
   * theme, and moves the mouse away.
   */
  async clear() {
    await this.page.mouse.move(640, 795)
    await this.theme(true)
    for (const [section, key, value] of SETTINGS) await this.probe.ask('set', { section, key, value })
    await this.until('an empty window', async () => {
      if ((await this.quickInput().isVisible())) await this.page.keyboard.press('Escape')
      // VS Code asks about an untitled text that an earlier window left.
      const unsaved = this.page.locator('.monaco-dialog-box').getByRole('button', { name: "Don't Save" })
      let over = false
      const cleared = this.probe.ask('clear').finally(() => (over = true))
      cleared.catch(() => undefined)
      await this.soon(async () => {
        if (await unsaved.isVisible()) await unsaved.click(once)
        return over
      })
      await cleared
      const { tabs, terminals, documents, debugging, breakpoints } = await this.state()
      const shown = await this.page.locator('.notification-toast, .part.panel:visible .pane-body, .editor-instance').count()
      return tabs.length === 0 && terminals.length === 0 && !debugging && breakpoints === 0 && documents.every(({ dirty }) => !dirty) && shown === 0
    })
  }
  shot(name) {
    return this.page.screenshot({ path: join(this.out, `${name}.png`) })
  }
  /** Takes a picture, once two in a row are the same; of moving content, the last of a few. */
  async picture(name) {
    let last = await this.page.screenshot()
    for (let tries = 0; tries < 5; tries++) {
      const next = await this.shot(name)
      if (next.equals(last)) return
      last = next
    }
  }
  isDark() {
    return this.page.evaluate(() => document.querySelector('.monaco-workbench')?.classList.contains('vs-dark') === true)
  }
  /**
   * Sets the dark theme, or the light one. Set again until it is taken: the workbench may be
   * reading its settings just then.
   */
  theme(dark) {
    const name = dark ? 'Default Dark Modern' : 'Default Light Modern'
    return this.until(`the theme ${name}`, async () => {
      if ((await this.isDark()) === dark) return true
      await this.probe.ask('set', { section: 'workbench', key: 'colorTheme', value: name })
      return this.soon(async () => (await this.isDark()) === dark)
    })
  }
  /** Takes the same picture in the dark and in the light theme. */
  async both(name, settled = async () => {}) {
    await this.picture(`${name}-dark`)
    await this.theme(false)
    await settled()
    await this.picture(`${name}-light`)
    await this.theme(true)
  }

  // Editors.

  editor(name) {
    return this.page.locator(`.monaco-editor[data-uri$="${name}"]`)
  }
  /** The editor whose URI contains the text. */
  shown(uri) {
    return this.page.locator(`.monaco-editor[data-uri*="${uri}"]`)
  }
  /**
   * The text of the visible document whose URI contains this. Others that are not visible may be
   * known too.
   */
  async text(uri) {
    const editor = this.shown(uri).first()
    if (!(await editor.isVisible())) return ''
    // The window and the extension host use other schemes and hosts for the same file.
    const path = (address) => decodeURIComponent(address.replace(/^[\w+-]+:(\/\/[^/]*)?/, ''))
    const wanted = path(await editor.getAttribute('data-uri'))
    return (await this.state()).documents.find((one) => path(one.uri) === wanted)?.text ?? ''
  }
  /** Opens a file on the left, with the focus. */
  async file(name, folder = 'telegraph') {
    await this.probe.ask('open', { path: join(this.place, folder, name) })
    await this.until(`${name} to be open`, async () => {
      if (await this.hasFocus(name)) return (await this.state()).active?.uri.endsWith(`/${name}`)
      await this.editor(name).locator('.view-line').first().click(once)
      return false
    })
  }
  hasFocus(name) {
    return this.page.evaluate((name) => document.activeElement?.closest('.monaco-editor')?.getAttribute('data-uri')?.endsWith(name) === true, name)
  }
  /** Puts the cursor into the first line that contains the text, at its end. */
  async cursor(name, text) {
    const there = (line) => (typeof text === 'string' ? line.includes(text) : text.test(line))
    const line = this.editor(name).locator('.view-line', { hasText: text }).first()
    await this.until(`the cursor at the end of ${text}`, async () => {
      // Closes everything that hangs over the line.
      await this.page.keyboard.press('Escape')
      // The line may be out of sight, where the text was scrolled.
      if (await this.hasFocus(name)) await this.page.keyboard.press('Control+Home')
      await line.click({ position: { x: 60, y: 8 }, timeout: ATTEMPT })
      await this.page.keyboard.press('End')
      return this.soon(async () => {
        const { active } = await this.state()
        return active?.uri.endsWith(`/${name}`) && there(active.line) && active.selection.active.character === active.line.length && (await this.hasFocus(name))
      })
    })
  }
  /** Waits until the cursor is in this line (from 1) of the file. */
  at(name, line) {
    return this.knows(`the cursor in line ${line} of ${name}`, ({ active }) => active?.uri.endsWith(`/${name}`) && active.selection.active.line === line - 1)
  }
  /**
   * Replaces the selection in the editor with the focus, as a paste: nothing is closed or indented
   * automatically.
   */
  async paste(name, text) {
    assert.ok(await this.hasFocus(name), `the focus is not in ${name}`)
    await this.page.evaluate((text) => navigator.clipboard.writeText(text), text)
    await this.until('the clipboard', async () => (await this.page.evaluate(() => navigator.clipboard.readText())) === text)
    await this.page.keyboard.press('Control+v')
  }
  /** Replaces the text in scratch.lisp, with the cursor at its end. */
  async scratch(wanted) {
    await this.file('scratch.lisp')
    await this.until('the text in scratch.lisp', async () => {
      await this.page.keyboard.press('Escape')
      await this.page.keyboard.press('Control+a')
      await this.paste('scratch.lisp', wanted)
      return this.soon(async () => (await this.state()).active?.text === wanted)
    })
    await this.page.keyboard.press('Control+End')
    await this.knows('the cursor at the end of scratch.lisp', ({ active }) => active?.selection.active.line === wanted.split('\n').length - 1)
  }
  /** The texts behind the lines, of all decorations. */
  inline(name) {
    return this.editor(name).evaluate((editor) =>
      [...editor.querySelectorAll('.view-line span')]
        .map((span) => getComputedStyle(span, '::after').content)
        .filter((content) => content !== 'none' && content !== '' && content !== 'normal' && content !== '""')
        .map((content) => JSON.parse(`"${content.slice(1, -1).replaceAll('\\"', '"').replaceAll('"', '\\"')}"`).replaceAll('\u00a0', ' ').trim()))
  }
  /** The right edges of the results and of the editor. */
  reach(name) {
    return this.editor(name).evaluate((editor) => {
      const spans = [...editor.querySelectorAll('.view-line span')].filter((span) => getComputedStyle(span, '::after').content.includes('⇒'))
      return { results: Math.max(...spans.map((span) => span.getBoundingClientRect().right)), editor: editor.getBoundingClientRect().right }
    })
  }
  /** The first lines that are wholly visible, from the top. */
  top(name) {
    return this.editor(name).evaluate((editor) => {
      const edge = editor.getBoundingClientRect().top
      const rows = [...editor.querySelectorAll('.view-line')].map((line) => ({ at: Math.round(line.getBoundingClientRect().top - edge), text: line.textContent }))
      return rows.filter(({ at }) => at >= 0).sort((a, b) => a.at - b.at).slice(0, 3)
    })
  }
  /** The number of lines with the mark of forms that differ from the image. */
  differing(name) {
    return this.editor(name).evaluate((editor) => [...editor.querySelectorAll('.glyph-margin-widgets .cgmr')].filter((one) => getComputedStyle(one).backgroundImage.includes('differs.svg')).length)
  }
  shows(name, text) {
    return this.until(`${text} at the end of a line`, async () => (await this.inline(name)).find((one) => one.includes(text)))
  }
  /** Removes all results if one has this text, which would be taken for the next one's. */
  async forget(name, text) {
    const is = async () => (await this.inline(name)).some((one) => one.includes(text))
    if (!(await is())) return
    await this.probe.execute('consort.editor.clearResults')
    await this.until(`${text} to go from the ends of the lines`, async () => !(await is()))
  }
  /**
   * Evaluates the top-level form in the line with this text, and waits until the wanted text is
   * behind it.
   */
  async evaluate(name, line, wanted) {
    await this.cursor(name, line)
    await this.forget(name, wanted)
    await this.ran(`the evaluation of ${line}`, () => this.page.keyboard.press('Alt+Enter'))
    return this.shows(name, wanted)
  }
  /** Evaluates the whole file, by its key, and waits for the wanted text. */
  async evaluateBuffer(name, wanted = '⇒') {
    assert.ok(await this.hasFocus(name), `the focus is not in ${name}`)
    await this.forget(name, wanted)
    await this.ran(`the evaluation of ${name}`, async () => {
      await this.page.keyboard.press('Control+Alt+l')
      await this.page.keyboard.press('b')
    })
    return this.shows(name, wanted)
  }
  /** Saves a file that has been edited. That it has is known a moment after its text. */
  async save(name) {
    assert.ok(await this.hasFocus(name), `the focus is not in ${name}`)
    const is = (wanted) => ({ documents }) => documents.some(({ uri, dirty }) => uri.endsWith(`/${name}`) && dirty === wanted)
    await this.knows(`${name} to be unsaved`, is(true))
    await this.page.keyboard.press('Control+s')
    await this.knows(`${name} to be saved`, is(false))
  }

  // Lists: the palette, and other lists to choose from.

  quickInput() {
    return this.page.locator('.quick-input-widget')
  }
  /** The title of the row that Enter would take. */
  chosenRow() {
    return this.page.evaluate(() => document.querySelector('.quick-input-list .monaco-list-row.focused .label-name')?.textContent.replaceAll('\u00a0', ' '))
  }
  /** Types into the open list until Enter would take this row; resolves to true if it would. */
  async choosable(typed, label) {
    const input = this.quickInput().locator('input').first()
    await input.fill(typed, { timeout: ATTEMPT })
    return this.soon(async () => (await input.inputValue()) === typed && (await this.chosenRow()) === label)
  }
  async enter(typed) {
    const input = this.quickInput().locator('input').first()
    // The key goes to the list itself, whatever has the focus.
    await input.press('Enter')
    await this.until('the list to close', async () => !(await this.quickInput().isVisible()) || (await input.inputValue()) !== typed)
  }
  /** Opens the palette with a title typed into it, and waits until its row is chosen. */
  async palette(title) {
    await this.until(`${title} in the palette`, async () => {
      await this.page.keyboard.press('F1')
      // An earlier step may take the focus, and close the picker again: then text must not be typed
      // anywhere.
      try {
        await this.quickInput().waitFor({ timeout: ATTEMPT })
        if (await this.choosable(`>${title}`, title)) return true
      } catch {
        // Opens it again.
      }
      await this.page.keyboard.press('Escape')
      return false
    })
  }
  /** Runs a command of the palette by its title. */
  async command(title) {
    await this.palette(title)
    await this.enter(`>${title}`)
  }
  /** Takes the row with this label from the list that is open or will be. */
  async choose(label) {
    await this.until(`${label} in the list`, async () => (await this.quickInput().isVisible()) && this.choosable(label, label))
    await this.enter(label)
  }

  /** Takes an item of an element's menu, until that has its effect. */
  async menu(element, label, effect) {
    const item = this.page.locator('.monaco-menu .action-label', { hasText: label }).first()
    await this.until(`${label} of the menu`, async () => {
      if (await effect()) return true
      if (!(await item.isVisible())) await element.click({ button: 'right', ...once })
      if (!(await this.soon(() => item.isVisible()))) return false
      await item.click(once)
      return this.soon(effect)
    })
  }

  // Notifications.

  /**
   * The notifications with these words, also those that are no longer visible: they are kept in a
   * list.
   */
  notice(words) {
    return this.page.locator('.notification-list-item', { hasText: words })
  }
  /**
   * Waits until a notification with these words is visible. One without an answer disappears after
   * a time.
   */
  told(words) {
    return this.until(`the notification ${words}`, async () => {
      if (await this.notice(words).first().isVisible()) return true
      if (await this.soon(() => this.notice(words).first().isVisible())) return true
      await this.probe.execute('notifications.showList')
      return false
    })
  }
  /** Asserts that no notification with these words has come, which may be visible no longer. */
  async untold(words) {
    await this.probe.execute('notifications.showList')
    await this.page.locator('.notifications-center.visible').waitFor()
    assert.equal(await this.notice(words).count(), 0, `the notification ${words}`)
    await this.probe.execute('notifications.hideList')
  }
  /** Waits until no notification with these words is left. */
  async ended(words) {
    await this.probe.execute('notifications.showList')
    await this.until(`the end of the notification ${words}`, async () => (await this.notice(words).count()) === 0)
    await this.probe.execute('notifications.hideList')
  }
  /**
   * Presses a button or a link of a notification until that has its effect: by default, that it
   * disappears.
   */
  async press(words, label, effect = async () => (await this.notice(words).count()) === 0) {
    const button = this.notice(words).first().locator('a', { hasText: label }).first()
    let pressed = false
    await this.told(words)
    await this.until(`${label} of ${words}`, async () => {
      if (pressed && (await effect())) return true
      if (!(await button.isVisible())) await this.probe.execute('notifications.showList')
      await button.click(once)
      pressed = true
      return this.soon(effect)
    })
  }
  /** Enters a text into the input box with this title or prompt. */
  async entered(title, text) {
    const input = this.quickInput().locator('input').first()
    await this.quickInput().filter({ hasText: title }).waitFor()
    await input.fill(text)
    await this.enter(text)
  }

  /**
   * Takes a folder in VS Code's own file dialog. This begins with the parent of the directory that
   * it will show, is busy until it has read that, and then overwrites what was typed; a press on
   * the button waits for it, and takes what stands in the box by then. So: a row means that it has
   * read a directory, and the row of the entry that it has read this one.
   */
  async folderChosen(folder, entry, label) {
    const input = this.quickInput().locator('input').first()
    const row = (name) => this.quickInput().locator('.monaco-list-row', { hasText: name }).first()
    await row('..').waitFor()
    await input.fill(`${folder}/`)
    await row(entry).waitFor()
    assert.equal(await input.inputValue(), `${folder}/`)
    await this.clicked(label, this.quickInput().locator('a.monaco-button', { hasText: label }), async () => !(await this.quickInput().isVisible()))
  }

  // Other parts of the window.

  status() {
    return this.page.locator('.statusbar-item[id$="consort.status"]')
  }
  /** Shows a view of the panel by its key, which would hide it if it were visible. */
  async panel(key, view) {
    await this.until(`${view}`, async () => {
      if (await this.page.locator(view).first().isVisible()) return true
      await this.page.keyboard.press(key)
      return this.late(() => this.page.locator(view).first().isVisible())
    })
  }
  /** Opens the REPL, and waits for the focus and a prompt. */
  async repl() {
    await this.ready()
    await this.command('Consort: Open the REPL')
    await this.until('the prompt', async () => /CL-USER>$/.test(await this.terminal()))
    await this.until('the focus in the REPL', async () => {
      if (await this.page.evaluate(() => document.activeElement?.closest('.terminal-wrapper.active') != null)) return true
      await this.page.locator('.terminal-wrapper.active .xterm-screen').click(once)
      return false
    })
  }
  /** Types a line into the REPL, and Enter once the line is visible. */
  async line(text) {
    await this.page.keyboard.type(text)
    await this.until(`${text} in the REPL`, async () => (await this.terminal()).endsWith(text))
    await this.page.keyboard.press('Enter')
  }
  /** The terminal's visible text. */
  terminal() {
    return this.page.locator('.terminal-wrapper.active .xterm-rows').evaluate((rows) => [...rows.children].map((row) => row.textContent.replaceAll('\u00a0', ' ').trimEnd()).join('\n').trimEnd(), undefined, { timeout: ATTEMPT })
  }
}
