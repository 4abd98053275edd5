// The commands of evaluation: forms, results, the REPL, and interrupts.
import * as vscode from 'vscode'
import { chosenText, lispEditor, packageHere, placeHere, type What } from './evaluate.js'
import type { Features, Register } from './features.js'
import { label } from './format.js'
import type { ImageState, LispError } from './lsp_ext.js'
import { scratch } from './scratch.js'
import { complain } from './server.js'

export function registerEvaluationCommands(features: Features, command: Register): void {
  const { server, results, documents, evaluator, repl, differences } = features
  const evaluate = (name: string, what: What): void => command(name, () => evaluator.evaluate(what))
  evaluate('evalForm', 'form')
  evaluate('evalTopLevelForm', 'top-level')
  evaluate('evalSelection', 'region')
  evaluate('evalBuffer', 'buffer')
  evaluate('evalToCursor', 'to-cursor')
  command('evalToComment', () => evaluator.evaluateToComment())
  command('loadFile', () => evaluator.loadFile())
  command('clearResults', () => results.clear())
  command('copyResult', async () => {
    if (results.lastValue !== undefined) await vscode.env.clipboard.writeText(results.lastValue)
    vscode.window.setStatusBarMessage(results.lastValue === undefined ? 'Nothing was evaluated yet' : 'Copied', 2000)
  })
  command('openResult', (text?: string, error?: LispError | null) => {
    features.openedError = (typeof text === 'string' ? error : results.lastError) ?? undefined
    const shown = typeof text === 'string' ? text : results.lastText
    if (shown !== undefined) return documents.open('result/result.lisp', `${shown}\n`)
    vscode.window.setStatusBarMessage('Nothing was evaluated yet', 2000)
    return undefined
  })
  command('interrupt', async () => {
    try {
      const { interrupted } = await server.ask<{ interrupted: number }>('interrupt', {})
      const { condition } = server
      // The start may load code that does not end.
      if (condition.state === 'starting' && interrupted === 0)
        void vscode.window.showInformationMessage(`Consort: Lisp is still starting (${label(condition.what)}). If that does not end, change the file that it loads and run the command "Consort: Restart Lisp".`)
      else vscode.window.setStatusBarMessage(interrupted === 0 ? 'Nothing was running' : 'Interrupted', 3000)
    } catch (error) {
      complain(error)
    }
  })
  command('restart', async () => {
    // The new image may have produced results before the request is answered.
    const old = results.present()
    try {
      const options = { location: vscode.ProgressLocation.Window, title: 'Restarting Lisp' }
      await vscode.window.withProgress(options, () => server.ask<ImageState>('restartImage', {}))
      old.clear()
    } catch (error) {
      complain(error)
    }
  })
  command('loadChanged', async () => {
    const document = lispEditor()?.document
    if (document !== undefined) await differences.load(document).catch(complain)
  })
  command('repl', () => repl.show(false, packageHere()))
  command('sendToRepl', () => {
    const chosen = chosenText(({ selection }) => (selection.isEmpty ? 'top-level' : 'region'))
    if (chosen !== undefined) repl.send(chosen.editor.document.getText(chosen.range), packageHere())
  })
  command('scratch', () => scratch())
  command('callInRepl', async () => {
    const place = placeHere()
    if (place !== undefined) await repl.call(place, packageHere()).catch(complain)
  })
}
