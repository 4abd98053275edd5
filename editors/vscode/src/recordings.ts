// Recordings: the form at the cursor runs once in a copy of the image, or the next call of a
// function is recorded in the image. The recording is shown as a list of rows, each of which leads
// to its source or to a further query. The debugger steps through it.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { plain } from './convert.js'
import { startDebugging } from './debug_session.js'
import { lispEditor } from './evaluate.js'
import { label } from './format.js'
import type { RecordAnswer, RecordedRow, RecordingAnswer } from './lsp_ext.js'
import { complain, FocusMoved, trackFocus, withUnmovedFocus, type Server } from './server.js'

interface Item extends vscode.QuickPickItem {
  row?: RecordedRow
  ask?: { query: string; prompt?: string }
  /** The debugger steps through the recording. */
  through?: boolean
}

const SHOW = 'Show'
const MOMENT: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon('eye'), tooltip: 'This moment: variables and values' }
const THROUGH: Item = { label: 'Step through it', description: 'in the debugger, forwards and backwards', iconPath: new vscode.ThemeIcon('debug-step-back'), through: true }
const QUESTIONS: Item[] = [
  { label: 'Calls', iconPath: new vscode.ThemeIcon('list-tree'), ask: { query: 'tree' } },
  { label: 'The last error', iconPath: new vscode.ThemeIcon('error'), ask: { query: 'error' } },
  { label: 'Values of an expression', iconPath: new vscode.ThemeIcon('symbol-numeric'), ask: { query: 'values', prompt: 'The expression as it is written, or FILE:LINE:COLUMN' } },
  { label: 'History of a variable', iconPath: new vscode.ThemeIcon('symbol-variable'), ask: { query: 'history', prompt: 'The name of the variable' } },
  { label: 'When a condition became true', iconPath: new vscode.ThemeIcon('search'), ask: { query: 'when', prompt: 'A Lisp expression over variables' } },
]

export class Recordings {
  /** The number of the newest recording. */
  private last: number | undefined
  /** The number of requests and lists so far: a list takes the place of another that is open. */
  private asked = 0

  constructor(private readonly server: Server) {}

  async recordForm(): Promise<void> {
    const editor = lispEditor()
    if (editor === undefined) return
    await this.record('Recording the form', { uri: editor.document.uri.toString(), position: plain(editor.selection.active) })
  }

  /** Records the next call of a function, whoever makes it. */
  async recordNextCall(): Promise<void> {
    const editor = lispEditor()
    if (editor === undefined) return
    const { document, selection } = editor
    const word = document.getWordRangeAtPosition(selection.active)
    const call = await askText({
      title: 'Record the Next Call',
      prompt: 'The function: its next call in the image is recorded, whoever makes it',
      value: word === undefined ? '' : document.getText(word),
    })
    if (call === undefined || call.trim() === '') return
    await this.record(`Waiting for the next call of ${label(call)}`, { call, uri: document.uri.toString(), position: plain(selection.active) })
  }

  private async record(title: string, argument: object): Promise<void> {
    const isFocusUnmoved = trackFocus()
    const asked = ++this.asked
    try {
      const { text, recording } = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title, cancellable: true },
        (_, token) => this.server.run<RecordAnswer>('record', argument, undefined, token),
      )
      if (recording.recording === 0) throw new Error(text)
      this.remember(recording.recording)
      const { error, values } = recording.outcome
      const outcome = error == null ? `⇒ ${values.join(', ')}` : `${error.type}: ${error.message}`
      // A list would take the keys of a person who goes on typing, or replace a later list.
      const mayShow = isFocusUnmoved() && asked === this.asked
      if (!mayShow && (await vscode.window.showInformationMessage(`Consort: recording ${recording.recording}: ${label(outcome)}`, SHOW)) !== SHOW) return
      await this.show(recording.recording, recording.answer, outcome)
    } catch (error) {
      complain(error)
    }
  }

  /**
   * Records a test, and steps through the recording from the error, or from the place where the
   * value first appears that a check found wrong.
   */
  async recordTest(test: string, token?: vscode.CancellationToken, where: { package?: string } = {}): Promise<RecordAnswer> {
    const answer = await this.server.run<RecordAnswer>('record', { test, ...where }, undefined, token)
    const { recording } = answer
    if (recording.recording === 0) throw new Error(answer.text)
    this.remember(recording.recording)
    const { error } = recording.outcome
    if (recording.calls === 0 && error != null) throw new Error(error.message)
    if (recording.calls === 0) {
      const none = 'nothing of the workspace that the test calls is known as its file has it: save and load the system.'
      void vscode.window.showInformationMessage(`Consort: the test was run, and ${none}`)
    } else await this.stepThrough(recording.recording)
    return answer
  }

  private remember(recording: number): void {
    this.last = recording
    void vscode.commands.executeCommand('setContext', 'consort.recorded', true)
  }

  /** The command: the debugger steps through the newest recording. */
  async stepThroughLast(): Promise<void> {
    if (this.last === undefined) void vscode.window.showInformationMessage('Consort: nothing was recorded yet. Make a recording with "Consort: Record the Form".')
    else await this.stepThrough(this.last)
  }

  private async stepThrough(recording: number): Promise<void> {
    await startDebugging(this.server, { type: 'consort', request: 'attach', name: `Recording ${recording}`, recording })
  }

  /** Shows an answer until a row leads to its source or nothing is chosen. */
  private async show(recording: number, first: RecordingAnswer, outcome: string): Promise<void> {
    const asked = ++this.asked
    const ask = async (question: Parameters<Recordings['ask']>[1]): Promise<RecordingAnswer> => {
      const answer = await withUnmovedFocus(this.ask(recording, question))
      if (asked !== this.asked) throw new FocusMoved()
      return answer
    }
    let answer: RecordingAnswer | undefined = first
    let title = outcome
    while (answer !== undefined) {
      const chosen = await this.choose(answer, `Recording ${recording}: ${title}`)
      if (chosen === undefined) return
      if (typeof chosen === 'number') {
        answer = await ask({ query: 'event', event: chosen })
        title = `moment ${chosen}`
      } else if (chosen.through === true) {
        await this.stepThrough(recording)
        return
      } else if (chosen.ask !== undefined) {
        const { query, prompt } = chosen.ask
        const of = prompt === undefined ? undefined : await askText({ title, prompt })
        if (prompt !== undefined && (of === undefined || of === '')) return
        answer = await ask({ query, of })
        title = of ?? query
      } else {
        const { file, position } = chosen.row ?? {}
        if (file === undefined || file === '' || position === undefined) return
        const [line, column, endLine, endColumn] = position
        const selection = new vscode.Range(line - 1, column - 1, endLine - 1, endColumn - 1)
        await vscode.window.showTextDocument(vscode.Uri.file(file), { selection })
        return
      }
    }
  }

  private async ask(recording: number, question: { query: string; of?: string | undefined; event?: number }): Promise<RecordingAnswer> {
    return (await this.server.run<{ answer: RecordingAnswer }>('recordingQuery', { recording, ...question })).answer
  }

  /** The item that is chosen, or the event whose moment is asked for. */
  private choose(answer: RecordingAnswer, title: string): Promise<Item | number | undefined> {
    return new Promise((resolve) => {
      const pick = vscode.window.createQuickPick<Item>()
      pick.title = label(title)
      pick.placeholder = answer.total === 0 ? 'No event of the recording matches' : 'Enter goes to the source'
      pick.matchOnDescription = true
      pick.items = [...answer.rows.map(itemOf), ...steps(answer), THROUGH, { label: 'Ask', kind: vscode.QuickPickItemKind.Separator }, ...QUESTIONS]
      let result: Item | number | undefined
      pick.onDidTriggerItemButton(({ item }) => {
        result = item.row?.event
        pick.hide()
      })
      pick.onDidAccept(() => {
        const item = pick.selectedItems[0]
        result = item?.row?.kind === 'step' ? item.row.event : item
        pick.hide()
      })
      pick.onDidHide(() => {
        pick.dispose()
        resolve(result)
      })
      pick.show()
    })
  }
}

function itemOf(row: RecordedRow): Item {
  const indent = '\u2003'.repeat(Math.min(row.depth ?? 0, 30))
  const value = row.value === undefined ? '' : `${row.kind === 'variable' ? ' = ' : ' '}${row.value}`
  const place = row.file === undefined || row.file === '' || row.position === undefined ? '' : `${vscode.workspace.asRelativePath(row.file)}:${row.position[0]}`
  return { label: indent + label(row.text + value), description: label(place), row, buttons: row.event === undefined ? [] : [MOMENT] }
}

/** The moments before and after the one that is shown. */
function steps({ event }: RecordingAnswer): Item[] {
  if (event === undefined) return []
  const step = (name: string, icon: string, to: number): Item => ({ label: name, iconPath: new vscode.ThemeIcon(icon), row: { kind: 'step', text: name, event: to } })
  return [step('One moment earlier', 'arrow-up', Math.max(0, event - 1)), step('One moment later', 'arrow-down', event + 1)]
}
