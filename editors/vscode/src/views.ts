// Views beside the editor: macro expansions with further steps and steps back, descriptions,
// disassembly.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import type { Documents } from './documents.js'
import { plain, toRange } from './convert.js'
import { chosenText } from './evaluate.js'
import { Latest } from './latest.js'
import type { Expansion, Position, Told } from './lsp_ext.js'
import { complain, isLisp, type Server } from './server.js'
import { readIn } from './status.js'

type How = 'one' | 'step' | 'full' | 'compiler'
const EXPANSION = 'expansion/macroexpansion.lisp'

/** An expansion that is shown: its form and its steps. */
interface Shown {
  readonly uri: string
  readonly position: Position
  readonly how: How
  readonly range: vscode.Range
  /** The form as it was when it was expanded. */
  readonly text: string
  /** The places of further expansions, each in the text that results from the one before. */
  readonly steps: readonly Position[]
  readonly texts: readonly string[]
}

export class Expansions {
  private shown: Shown | undefined
  /** Counts requests and steps back: an answer to an earlier request is dropped. */
  private asked = 0

  constructor(
    private readonly server: Server,
    private readonly documents: Documents,
  ) {}

  /** Shows the expansion of the form at the cursor. */
  async expand(how: How): Promise<void> {
    const chosen = chosenText(() => 'form')
    if (chosen === undefined) return
    const { editor, range } = chosen
    const { document } = editor
    const { version } = document
    const uri = document.uri.toString()
    await this.attempt(async (isLast) => {
      const position = plain(editor.selection.active)
      const answer = await this.server.run<Expansion>('macroexpand', { uri, position, how })
      if (!isLast()) return
      if (document.version !== version) throw new Error('The text has changed meanwhile. Expand the form again.')
      if (how === 'compiler' && !answer.expanded && answer.expansion !== null) throw new Error('No compiler macro and no format string is at the cursor.')
      const found = answer.range === undefined ? range : toRange(answer.range)
      await this.show({ uri, position, how, range: found, text: document.getText(found), steps: [], texts: [expansionOf(answer)] })
    })
  }

  /**
   * Expands the form at the cursor of the expansion once more; the outermost form when the cursor
   * is elsewhere.
   */
  async further(): Promise<void> {
    const { shown } = this
    if (shown === undefined) return
    const editor = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.path === `/${EXPANSION}`)
    const place = editor === undefined ? { line: 0, character: 0 } : plain(editor.selection.active)
    await this.attempt(async (isLast) => {
      if (!(await isThere(shown))) return
      const { uri, position, how } = shown
      const steps = [...shown.steps, place]
      const answer = await this.server.run<Expansion>('macroexpand', { uri, position, how, steps })
      if (!isLast()) return
      const text = expansionOf(answer)
      if (text === shown.texts.at(-1) || !answer.expanded) {
        vscode.window.setStatusBarMessage('Nothing is left to expand here', 3000)
        return
      }
      await this.show({ ...shown, steps, texts: [...shown.texts, text] })
    })
  }

  async back(): Promise<void> {
    const { shown } = this
    if (shown === undefined || shown.texts.length < 2) {
      vscode.window.setStatusBarMessage('This is the first expansion', 3000)
      return
    }
    this.asked++
    await this.show({ ...shown, steps: shown.steps.slice(0, -1), texts: shown.texts.slice(0, -1) })
  }

  /** Replaces the form by the expansion that is shown. */
  async inPlace(): Promise<void> {
    const { shown } = this
    if (shown === undefined) return
    await this.attempt(async () => {
      if (!(await isThere(shown))) return
      const { uri, position, how, steps } = shown
      const { expanded, applied } = await this.server.run<Expansion>('macroexpand', { uri, position, how, steps, inPlace: true })
      if (expanded && applied === false) throw new Error('The form was not replaced by its expansion. If no other message says why, its file cannot be edited, or was edited meanwhile.')
    })
  }

  /** Runs a request. `isLast` returns true if no other request was made since. */
  private async attempt(what: (isLast: () => boolean) => Promise<void>): Promise<void> {
    const asked = ++this.asked
    try {
      await what(() => asked === this.asked)
    } catch (error) {
      complain(error)
    }
  }

  private async show(shown: Shown): Promise<void> {
    this.shown = shown
    await this.documents.open(EXPANSION, `${(shown.texts.at(-1) ?? '').trimEnd()}\n`)
  }
}

/** True if the form is still at its place; otherwise shows a message. */
async function isThere({ uri, range, text }: Shown): Promise<boolean> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri))
  if (document.getText(range) === text) return true
  void vscode.window.showInformationMessage('Consort: the form has changed since it was expanded. Expand it again.')
  return false
}

function expansionOf(answer: Expansion): string {
  if (answer.expansion === null) throw new Error(answer.error?.message ?? 'There is no expansion.')
  const { expansion, omitted = 0 } = answer
  return omitted === 0 ? expansion : `${expansion.trimEnd()}\n;; ${omitted} more characters were left out.`
}

/**
 * The argument for a command on a name: the cursor's place if a name is there, else a typed name.
 */
export async function named(title: string): Promise<object | undefined> {
  const editor = vscode.window.activeTextEditor
  if (editor !== undefined && isLisp(editor.document) && editor.document.getWordRangeAtPosition(editor.selection.active) !== undefined)
    return { uri: editor.document.uri.toString(), position: plain(editor.selection.active) }
  const name = await askText({ title, prompt: 'A symbol, such as my-package:my-function' })
  return name === undefined || name === '' ? undefined : { name, ...readIn(name) }
}

/** The calls of `tell`, whose documents replace each other beside the editor. */
const told = new Latest()

/**
 * Shows `describe` or `disassemble` of a symbol, by default the one at the cursor, or the
 * documentation of a package.
 */
export async function tell(server: Server, documents: Documents, what: 'describe' | 'disassemble' | 'packageManual', name?: string): Promise<void> {
  const argument = name === undefined ? await named(what === 'describe' ? 'Describe' : 'Disassemble') : { name }
  if (argument === undefined) return
  const request = told.begin()
  try {
    const answer = await server.run<Told>(what, argument)
    if (request.isLate()) return
    if (answer.error != null) throw new Error(typeof answer.error === 'string' ? answer.error : answer.error.message)
    request.show()
    const name = (answer.name ?? 'name').replace(/[^\w.+*<>=!?-]/g, '_')
    await documents.open(`${what}/${name}.txt`, answer.text, { language: 'plaintext' })
  } catch (error) {
    complain(error)
  }
}
