// Messages for a person when something is missing or does not run: one sentence that fits into a
// notification, and a button for each possible action.
import * as vscode from 'vscode'
import { oneLine, plain } from './format.js'
import { installation, missingSbcl, saysNoSbcl } from './install.js'
import type { Condition } from './condition.js'

/** Shows why Lisp does not answer, with a button for each possible action. */
export async function offerHelp(condition: Condition): Promise<void> {
  if (condition.state === 'dead') return missingSbcl(condition) ? offerSbcl() : offerLog(condition.reason)
  if (condition.state !== 'down') return offerStart()
  return { 'not-found': offerConsort, untrusted: offerTrust, stopped: offerStart }[condition.why]()
}

/**
 * Shows a message of the server, by its LSP message type. The message that SBCL is missing is left
 * out: `offerHelp` shows it with buttons.
 */
export function showMessage(type: number, message: string): void {
  if (saysNoSbcl(message)) return
  if (type === 1) void vscode.window.showErrorMessage(message)
  else if (type === 2) void vscode.window.showWarningMessage(message)
  else void vscode.window.showInformationMessage(message)
}

/** A place that an error is about, from 1; the column in characters. */
export interface Place {
  uri: string
  line: number
  column: number
}

const GO = 'Go to It'

/**
 * Shows an error, with a button that goes to its place, if it has one. Resolves to another button
 * that was pressed.
 */
export async function tellOfPlace(text: string, place: Place | undefined, ...buttons: string[]): Promise<string | undefined> {
  const choice = await vscode.window.showErrorMessage(`Consort: ${plain(text)}`, ...(place === undefined ? [] : [GO]), ...buttons)
  if (choice !== GO || place === undefined) return choice
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(place.uri))
  const line = Math.min(place.line, document.lineCount) - 1
  const before = [...document.lineAt(line).text].slice(0, place.column - 1).join('')
  const at = new vscode.Position(line, before.length)
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(at, at) })
  return undefined
}

async function offerConsort(): Promise<void> {
  const choice = await vscode.window.showWarningMessage('Consort is not installed, or not where it was looked for.', 'Show What to Do', 'Set Its Path', 'Try Again')
  if (choice === 'Show What to Do') await vscode.commands.executeCommand('consort.editor.walkthrough')
  if (choice === 'Set Its Path') await vscode.commands.executeCommand('workbench.action.openSettings', 'consort.server.path')
  if (choice === 'Try Again') await vscode.commands.executeCommand('consort.editor.restartServer')
}

export async function offerSbcl(): Promise<void> {
  const { title, command } = await installation()
  const choice = await vscode.window.showWarningMessage('SBCL, the Lisp that Consort needs, is not installed.', title, 'Other Systems', 'Try Again')
  if (choice === title) {
    const terminal = vscode.window.createTerminal('Install SBCL')
    terminal.show()
    // The person sees it, and presses Enter.
    terminal.sendText(command, false)
  }
  if (choice === 'Other Systems') await vscode.commands.executeCommand('consort.editor.walkthrough')
  if (choice === 'Try Again') await vscode.commands.executeCommand('consort.editor.restart')
}

async function offerLog(reason: string): Promise<void> {
  const choice = await vscode.window.showWarningMessage(`Lisp has ended. ${oneLine(plain(firstSentence(reason)), 90)}`, 'Show the Log', 'Try Again')
  if (choice === 'Show the Log') await vscode.commands.executeCommand('consort.editor.showLog')
  if (choice === 'Try Again') await vscode.commands.executeCommand('consort.editor.restart')
}

async function offerTrust(): Promise<void> {
  const choice = await vscode.window.showInformationMessage('Nothing is run in a folder that you have not trusted.', 'Manage Trust')
  if (choice !== undefined) await vscode.commands.executeCommand('workbench.trust.manage')
}

async function offerStart(): Promise<void> {
  const choice = await vscode.window.showWarningMessage('Consort does not run.', 'Start It', 'Show the Log')
  if (choice === 'Start It') await vscode.commands.executeCommand('consort.editor.restartServer')
  if (choice === 'Show the Log') await vscode.commands.executeCommand('consort.editor.showLog')
}

const firstSentence = (text: string): string => /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text
