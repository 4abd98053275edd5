// The commands of traced functions.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import type { Features, Register } from './features.js'
import { label } from './format.js'
import type { Told } from './lsp_ext.js'
import { complain } from './server.js'
import { currentPackage } from './status.js'
import { named } from './views.js'

export function registerTracingCommands(features: Features, command: Register): void {
  const { server, traced } = features
  const trace = (name: 'trace' | 'untrace', title: string): void =>
    command(name, async () => {
      try {
        const argument = await named(title)
        if (argument === undefined) return
        vscode.window.setStatusBarMessage(`$(check) ${label((await server.run<Told>(name, argument)).text)}`, 5000)
        if (name === 'trace') await traced.show()
      } catch (error) {
        complain(error)
      }
    })
  trace('trace', 'Trace a function')
  trace('untrace', 'Untrace a function')
  command('tracePackage', async () => {
    const name = await askText({ title: 'Trace a Package', prompt: 'All of its own functions', value: currentPackage() ?? '' })
    if (name === undefined || name === '') return
    try {
      vscode.window.setStatusBarMessage(`$(check) ${label((await server.run<Told>('trace', { package: name })).text)}`, 5000)
      await traced.show()
    } catch (error) {
      complain(error)
    }
  })
  command('untraceAll', async () => {
    try {
      vscode.window.setStatusBarMessage(`$(check) ${label((await server.run<Told>('untrace', {})).text)}`, 5000)
    } catch (error) {
      complain(error)
    }
  })
  command('traced', () => traced.show())
  command('tracedClear', () => traced.clear().catch(complain))
}
