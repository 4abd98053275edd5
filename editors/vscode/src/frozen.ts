// Frozen failures: reported errors whose stack is kept in a copy of the image. The debugger's views
// show them.
import * as vscode from 'vscode'
import { startDebugging } from './debug_session.js'
import { label, plain } from './format.js'
import type { Failure, TestReport } from './lsp_ext.js'
import { complain, withUnmovedFocus, type Server } from './server.js'

const LOOK = 'Look into It'

/** Shows an error, with a button that opens its frozen failure, if there is one. */
export async function tellOfError(server: Server, text: string, failure: number | undefined): Promise<void> {
  if (failure === undefined) return complain(new Error(text))
  if ((await vscode.window.showErrorMessage(`Consort: ${plain(text)}`, LOOK)) === LOOK) await lookInto(server, failure)
}

/** Shows the first test that has a frozen failure, with a button that opens it. */
export async function tellOfTests(server: Server, report: TestReport): Promise<void> {
  const test = report.tests.find(({ failure }) => failure !== undefined)
  if (test?.failure === undefined) return
  const text = `${test.name}: ${test.failures[0]?.message ?? 'an error'}`
  if ((await vscode.window.showWarningMessage(`Consort: ${plain(text)}`, LOOK)) === LOOK) await lookInto(server, test.failure)
}

/** Opens a frozen failure in the debugger. */
export async function lookInto(server: Server, failure: number): Promise<void> {
  await startDebugging(server, { type: 'consort', request: 'attach', name: `Failure ${failure}`, failure })
}

/** The command: opens a frozen failure, or one that is chosen from all, newest first. */
export async function failures(server: Server, failure?: unknown): Promise<void> {
  if (typeof failure === 'number') return lookInto(server, failure)
  const { failures: kept = [] } = await withUnmovedFocus(server.run<{ failures?: Failure[] }>('status', {}))
  if (kept.length === 0) return void vscode.window.showInformationMessage('Consort: no failure is kept.')
  const items = kept.reverse().map(({ failure, session, type, message, seconds }) => ({
    label: label(`${type}: ${message}`), description: label(`failure ${failure} of ${session}, ${seconds} s ago`), failure,
  }))
  const chosen = await vscode.window.showQuickPick(items, { title: 'Failures whose stack is kept', matchOnDescription: true })
  if (chosen !== undefined) await lookInto(server, chosen.failure)
}
