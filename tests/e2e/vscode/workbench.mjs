// VS Code's workbench in Chromium, as a person sees and uses it.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// From NODE_PATH, which only `require` knows.
const { chromium } = createRequire(import.meta.url)('playwright-core')
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

// The name under which VS Code's own service worker serves files to webviews: nothing of it leaves the browser.
const WEBVIEW = '.vscode-resource.vscode-cdn.net'

export class Workbench {
  static async open(base, place, out) {
    const browser = BROWSERS.find(existsSync)
    assert.ok(browser, 'Chromium is not installed')
    const context = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'chromium-')), {
      executablePath: browser, headless: true, viewport: { width: 1280, height: 800 },
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync'],
    })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    return new Workbench(context, context.pages()[0] ?? (await context.newPage()), base, place, out)
  }

  constructor(context, page, base, place, out) {
    Object.assign(this, { context, page, base, place, out, outside: new Set() })
    page.setDefaultTimeout(30_000)
    // A reload with unsaved text asks.
    page.on('dialog', (dialog) => void dialog.accept())
    page.on('request', (request) => {
      const url = new URL(request.url())
      if (/^https?:$/.test(url.protocol) && url.hostname !== '127.0.0.1' && !url.hostname.endsWith(WEBVIEW)) this.outside.add(url.host)
    })
    void context.route((url) => /^https?:$/.test(url.protocol) && url.hostname !== '127.0.0.1', (route) => route.abort())
  }

  async folder(name) {
    await this.page.goto(`${this.base}/?folder=${encodeURIComponent(join(this.place, name))}`, { waitUntil: 'commit', timeout: 90_000 })
    await this.page.locator('.explorer-folders-view').waitFor({ timeout: 90_000 })
  }
  shot(name) {
    return this.page.screenshot({ path: join(this.out, `${name}.png`) })
  }
  isDark() {
    return this.page.evaluate(() => document.querySelector('.monaco-workbench')?.classList.contains('vs-dark') === true)
  }
  async toggleTheme() {
    const before = await this.isDark()
    const changed = async () => (await this.isDark()) !== before
    // The palette closes when a notification takes the focus just then: the command is given again, unless it has been done.
    for (let tries = 3; !(await changed()); tries -= 1) {
      await this.command('Preferences: Toggle between Light/Dark Themes')
      const done = this.until('the other theme', changed, tries > 1 ? 10_000 : 30_000)
      if (tries > 1) await done.catch(() => {})
      else await done
    }
  }
  /** The same picture in the dark and in the light theme. */
  async both(name, settled = async () => {}) {
    await this.shot(`${name}-dark`)
    await this.toggleTheme()
    await settled()
    await this.shot(`${name}-light`)
    await this.toggleTheme()
  }

  /** Go to a file: by its tab when it has one, else through the list of files. */
  async file(name) {
    const tab = this.page.locator('.tabs-container .tab', { hasText: name }).first()
    const row = this.page.locator('.quick-input-list .monaco-list-row', { hasText: name }).first()
    const line = this.page.locator(`.monaco-editor[data-uri$="${name}"] .view-line`).first()
    let why
    await this.until(`${name} to be open`, async () => {
      // As with the palette: the list may close once, or show other files first.
      try {
        if (await tab.isVisible()) await tab.click({ timeout: 5000 })
        else {
          await this.page.keyboard.press('Control+p')
          await this.page.locator('.quick-input-widget input').first().fill(name, { timeout: 5000 })
          await row.click({ timeout: 5000 })
        }
        await line.waitFor({ timeout: 10_000 })
        return true
      } catch (error) {
        why = error
        await this.page.keyboard.press('Escape')
        return false
      }
    }, 60_000).catch((error) => Promise.reject(new Error(error.message, { cause: why })))
  }
  editor(name) {
    return this.page.locator(`.monaco-editor[data-uri$="${name}"]`)
  }
  /** Open the palette with a title typed into it, and wait for its rows. */
  async palette(title) {
    const widget = this.page.locator('.quick-input-widget')
    const input = widget.locator('input').first()
    const row = this.page.locator('.quick-input-list .monaco-list-row').first()
    await this.until(`the palette with ${title}`, async () => {
      await this.page.keyboard.press('F1')
      // What was done before may take the focus, and close it again: then what would be typed must go nowhere.
      try {
        await widget.waitFor({ timeout: 3000 })
        await input.fill(`>${title}`, { timeout: 3000 })
        await row.waitFor({ timeout: 3000 })
        return await widget.isVisible()
      } catch {
        await this.page.keyboard.press('Escape')
        return false
      }
    }, 60_000)
  }
  /** Run a command of the palette by its title. */
  async command(title) {
    await this.until(title, async () => {
      await this.palette(title)
      const row = this.page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first()
      return row.waitFor({ timeout: 3000 }).then(() => true, () => false)
    }, 60_000)
    await this.page.keyboard.press('Enter')
  }
  async offered(title) {
    await this.palette(title)
    const rows = await this.page.locator('.quick-input-list .monaco-list-row').allTextContents()
    await this.page.keyboard.press('Escape')
    return rows.some((row) => row.includes(title))
  }
  /** Put the cursor into the first line that contains the text, at its end. */
  async cursor(name, text) {
    await this.page.keyboard.press('Escape')
    const line = this.editor(name).locator('.view-line', { hasText: text }).first()
    await line.click({ position: { x: 60, y: 8 } })
    await this.page.keyboard.press('End')
  }
  /** What stands behind the lines: the text of all decorations. */
  inline(name) {
    return this.editor(name).evaluate((editor) =>
      [...editor.querySelectorAll('.view-line span')]
        .map((span) => getComputedStyle(span, '::after').content)
        .filter((content) => content !== 'none' && content !== '' && content !== 'normal' && content !== '""')
        .map((content) => JSON.parse(`"${content.slice(1, -1).replaceAll('\\"', '"').replaceAll('"', '\\"')}"`).replaceAll('\u00a0', ' ').trim()))
  }
  async until(what, condition, timeout = 30_000) {
    const end = Date.now() + timeout
    for (;;) {
      const got = await condition()
      if (got) return got
      if (Date.now() > end) throw new Error(`waited ${timeout / 1000} s in vain for ${what}`)
      await this.page.waitForTimeout(100)
    }
  }
  shows(name, text) {
    return this.until(`${text} at the end of a line`, async () => (await this.inline(name)).find((one) => one.includes(text)))
  }
  status() {
    return this.page.locator('.statusbar-item[id$="consort.status"]')
  }
  /** The terminal's visible text. */
  terminal() {
    return this.page.locator('.terminal-wrapper.active .xterm-rows').evaluate((rows) => [...rows.children].map((row) => row.textContent.replaceAll('\u00a0', ' ').trimEnd()).join('\n').trimEnd())
  }
}
