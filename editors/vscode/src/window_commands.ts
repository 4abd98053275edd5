// The commands of the server, the side bar and the extension itself.
import * as vscode from 'vscode'
import { copyConfiguration } from './agents.js'
import type { Features, Register } from './features.js'
import { keySheet, type Contributions } from './keys.js'
import type { Status } from './lsp_ext.js'
import { newProject } from './new_project.js'
import { complain, type Server } from './server.js'
import { showMenu } from './status.js'

export function registerWindowCommands(features: Features, command: Register): void {
  const { server, documents, systems, image, logTree, packages, threads, log, output, context } = features
  command('copyText', (text: string) => vscode.env.clipboard.writeText(text))
  command('restartServer', () => server.start())
  command('showLog', () => log.show(true))
  command('showOutput', () => output.show(true))
  command('menu', () => showMenu(server))
  command('walkthrough', async () => {
    await vscode.commands.executeCommand('workbench.action.openWalkthrough', `${context.extension.id}#consort.start`, false)
    // VS Code marks a step as done when its condition becomes true, and not if it was true before.
    const known = { program: server.found !== undefined, image: server.condition.state === 'ready' }
    for (const [name, isKnown] of Object.entries(known)) {
      await vscode.commands.executeCommand('setContext', `consort.known.${name}`, false)
      await vscode.commands.executeCommand('setContext', `consort.known.${name}`, isKnown)
    }
  })
  command('newProject', (given?: Parameters<typeof newProject>[1]) => newProject(context.globalState, given))
  command('keys', () => {
    const { contributes } = context.extension.packageJSON as { contributes: Contributions }
    const slime = vscode.workspace.getConfiguration('consort').get<string>('keys') === 'slime'
    return documents.open('keys/keys.txt', keySheet(contributes, slime, vscode.workspace.getConfiguration('consort').get('structure.strict') === true), { language: 'plaintext' })
  })
  command('doctor', () => inTerminal('Consort Doctor', server, 'doctor'))
  command('status', async () => {
    try {
      await documents.open('status/status.json', JSON.stringify(await server.ask<Status>('status'), null, 2), { language: 'json' })
    } catch (error) {
      complain(error)
    }
  })
  command('copyAgentConfiguration', () => copyConfiguration(context, server))
  command('refresh', () => {
    systems.refresh()
    image.refresh()
    logTree.refresh()
    packages.refresh()
    threads.refresh()
  })
}

function inTerminal(name: string, server: Server, argument: string): void {
  if (server.found === undefined) {
    void vscode.commands.executeCommand('consort.editor.walkthrough')
    return
  }
  const options: vscode.TerminalOptions = { name, ...(server.folder === undefined ? {} : { cwd: server.folder }) }
  const terminal = vscode.window.createTerminal(options)
  terminal.show(true)
  terminal.sendText(`'${server.found.path.replaceAll("'", "'\\''")}' ${argument}`)
}
