// Asks the tests' own extension (probe/), in the extension host of the window that was loaded last.
import { readFileSync } from 'node:fs'

export class Probe {
  constructor(file) {
    this.file = file
  }
  /** Resolves to the answer to the call; undefined while there is no extension host to answer. */
  async ask(call, argument = {}) {
    let answer
    try {
      const { port } = JSON.parse(readFileSync(this.file, 'utf8'))
      answer = await (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: JSON.stringify({ call, ...argument }) })).json()
    } catch {
      return undefined
    }
    if (answer.error !== undefined) throw new Error(`${call} ${JSON.stringify(argument)}: ${answer.error}`)
    return answer.answer
  }
  state() {
    return this.ask('state')
  }
  execute(command, ...args) {
    return this.ask('execute', { command, args })
  }
}

/** A state in a few lines, for a failure. */
export function told(state) {
  if (state === undefined) return 'the extension host does not answer'
  const { active, consort } = state
  const at = active && `${active.selection.active.line + 1},${active.selection.active.character + 1}`
  return [
    `editor: ${active === undefined ? 'none' : `${active.uri.split('/').pop()} at ${at}: ${active.line}`}`,
    `open: ${state.tabs.join(', ')}; unsaved: ${state.documents.filter(({ dirty }) => dirty).map(({ uri }) => uri.split('/').pop()).join(', ') || 'nothing'}; terminals: ${state.terminals.join(', ') || 'none'}`,
    `problems: ${state.diagnostics.map(({ message }) => message.slice(0, 80)).join(' | ') || 'none'}`,
    `Consort: ${JSON.stringify(consort && { ...consort, offered: consort.offered.length })}`,
  ].join('\n')
}
