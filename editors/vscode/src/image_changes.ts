// Images that follow one another: what belongs to one of them does not belong to the next.
import type * as vscode from 'vscode'
import type { Server } from './server.js'

/** Runs a function whenever an image answers that is another than the one that answered before. */
export function onOtherImage(server: Server, run: () => void): vscode.Disposable {
  const process = (): number | undefined => (server.condition.state === 'ready' ? server.condition.pid : undefined)
  let known = process()
  return server.onChange(() => {
    const now = process()
    if (now === undefined || now === known) return
    const isFirst = known === undefined
    known = now
    if (!isFirst) run()
  })
}
