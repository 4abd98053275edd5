// The condition of Lisp: whether it answers, and the reason if it does not.
import type { ImageState } from './lsp_ext.js'

/** The reasons why no server runs. */
export type Down = 'not-found' | 'stopped' | 'untrusted'
export type Condition = ImageState | { state: 'down'; why: Down }

/** The condition in a few words. */
export function describe(condition: Condition): string {
  switch (condition.state) {
    case 'ready':
      return `ready (${condition.lisp}, process ${condition.pid})`
    case 'idle':
      return 'not started yet: the first Lisp file or evaluation starts it'
    case 'starting':
      return `starting: ${condition.what}`
    case 'dead':
      return `${condition.reason}${condition.final ? '' : ' It is being started again.'}`
    case 'down':
      return { 'not-found': 'the program `consort` was not found', untrusted: 'waits until you trust this folder', stopped: 'not running' }[condition.why]
  }
}
