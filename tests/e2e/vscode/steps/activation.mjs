// The time that the extension took to activate, as its log says. Printed, not asserted: it depends
// on the machine.
import { readdirSync, readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'

export default async function ({ workbench, place, step }) {
  await step('the extension activated, and its log says in what time', async () => {
    const logs = join(place, 'user/logs')
    const told = await workbench.until('a log of the extension that says how long it took', () => {
      const found = readdirSync(logs, { recursive: true })
        .filter((file) => /Consort[^/]*\.log$/.test(file))
        .flatMap((file) => [...readFileSync(join(logs, file), 'utf8').matchAll(/activated in (\d+) ms/g)].map(([, ms]) => Number(ms)))
      return found.length > 0 && found
    })
    console.log(`          activated in ${told.join(', ')} ms (load average ${loadavg()[0].toFixed(1)})`)
  })
}
