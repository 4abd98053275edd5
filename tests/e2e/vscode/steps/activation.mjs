// How long the extension took to activate, as its log says. Printed, not asserted: it depends on the machine.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'

export default async function ({ place, step }) {
  await step('the extension activated, and its log says in what time', async () => {
    const logs = join(place, 'user/logs')
    const told = readdirSync(logs, { recursive: true })
      .filter((file) => /Consort[^/]*\.log$/.test(file))
      .flatMap((file) => [...readFileSync(join(logs, file), 'utf8').matchAll(/activated in (\d+) ms/g)].map(([, ms]) => Number(ms)))
    assert.ok(told.length > 0, 'no log of the extension says how long it took')
    console.log(`          activated in ${told.join(', ')} ms (load average ${loadavg()[0].toFixed(1)})`)
  })
}
