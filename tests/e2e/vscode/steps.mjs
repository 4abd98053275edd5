// Runs steps, each from a clean window and the workspace's first state, and counts them. A step
// that fails is tried once more from a clean editor, image and workspace, and is reported as flaky
// if it passes then.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

export class Steps {
  passed = 0
  skipped = 0
  failures = []
  flaky = 0
  begun = Date.now()

  /** ONLY, a pattern: the steps whose names match. */
  constructor(workbench, place, only = process.env.ONLY) {
    Object.assign(this, { workbench, place, only: only === undefined ? undefined : new RegExp(only) })
  }

  /** `needs`: the server's command without which there is nothing to see. */
  step = async (name, run, needs) => {
    if (this.only !== undefined && !this.only.test(name)) return
    // After three failures the rest would most likely fail for the same reason, slowly.
    if (this.failures.length >= 3) {
      this.failures.push(name)
      return void console.log(`FAILED ${name}\n  not run after three failures`)
    }
    try {
      await this.attempt(name, run, needs)
    } catch (error) {
      await this.told('AGAIN', name, error)
      try {
        await this.anew()
        await this.attempt(name, run, needs)
        this.flaky++
      } catch (error) {
        this.failures.push(name)
        await this.told('FAILED', name, error)
        // The next step must not depend on this one.
        await this.anew().catch((error) => console.log(error.stack))
      }
    }
  }

  async attempt(name, run, needs) {
    this.restore()
    await this.workbench.clear()
    await this.workbench.ready()
    if (needs !== undefined && !(await this.workbench.state()).consort.offered.includes(`consort.${needs}`)) {
      this.skipped++
      return void this.say('SKIPPED', `${name}: the server does not offer consort.${needs}`)
    }
    await run()
    this.passed++
    this.say('ok', name)
  }

  say(what, name) {
    console.log(`${((Date.now() - this.begun) / 1000).toFixed(1).padStart(6)} s  ${what.padEnd(8)}${name}`)
  }

  async told(what, name, error) {
    this.say(what, name)
    for (let one = error; one !== undefined; one = one.cause) console.log(one.stack ?? one)
    console.log(await this.workbench.described())
    const picture = `failure-${name.replace(/[^\w]+/g, '-').slice(0, 50)}${what === 'AGAIN' ? '-first' : ''}`
    await this.workbench.shot(picture).then(() => console.log(`the window: tests/out/vscode/${picture}.png`), () => undefined)
    console.log(`alone: CONSORT_BIN=$PWD/target/debug/consort scripts/isolated tests/e2e/vscode/run.sh '${name.replace(/[^\w ,-]/g, '.')}'`)
  }

  /** Restores the first state of the workspace's files; removes those that a step has added. */
  restore(within = '') {
    const [workspace, original] = [join(this.place, 'telegraph', within), join(this.place, 'original', within)]
    const files = readdirSync(original, { withFileTypes: true })
    for (const name of readdirSync(workspace))
      if (!files.some((file) => file.name === name)) rmSync(join(workspace, name), { recursive: true, force: true })
    for (const entry of files) {
      const [file, first] = [join(workspace, entry.name), join(original, entry.name)]
      // A file that is written is checked again, also when its text is the same, so only changed
      // files are.
      if (!existsSync(file)) cpSync(first, file, { recursive: true })
      else if (entry.isDirectory()) this.restore(join(within, entry.name))
      else if (!readFileSync(file).equals(readFileSync(first))) cpSync(first, file)
    }
  }

  /** Restores the first state of the workspace, starts another image, and reloads the window. */
  async anew() {
    const workspace = join(this.place, 'telegraph')
    execFileSync(process.env.CONSORT_BIN, ['stop'], { cwd: workspace, stdio: 'ignore' })
    rmSync(workspace, { recursive: true, force: true })
    cpSync(join(this.place, 'original'), workspace, { recursive: true })
    await this.workbench.folder('telegraph')
  }

  /** Prints the closing lines; returns true if no step failed. */
  finish() {
    if (this.failures.length > 0) console.log(`failed: ${this.failures.join('; ')}`)
    const more = Object.entries({ skipped: this.skipped, flaky: this.flaky }).filter(([, count]) => count > 0)
    console.log([`${this.passed} passed`, `${this.failures.length} failed`, ...more.map(([word, count]) => `${count} ${word}`)].join(', '))
    return this.failures.length === 0 && this.passed > 0
  }
}
