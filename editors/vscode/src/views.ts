// Views beside the editor: macro expansions that go further and back, descriptions, disassembly.
import * as vscode from 'vscode'
import type { Documents } from './documents.js'
import { plain, toRange } from './convert.js'
import { lispEditor, rangeOf } from './evaluate.js'
import type { Expansion, Position, Told } from './lsp_ext.js'
import { complain, isLisp, type Server } from './server.js'

type How = 'one' | 'step' | 'full'
const EXPANSION = 'expansion/macroexpansion.lisp'

export class Expansions {
  private asked: { uri: string; position: { line: number; character: number }; how: How; range: vscode.Range; text: string } | undefined
  /** The places of further expansions, each in the text that the one before gave. */
  private steps: Position[] = []
  private texts: string[] = []

  constructor(
    private readonly server: Server,
    private readonly documents: Documents,
  ) {}

  /** Show the expansion of the form at the cursor. */
  async expand(how: How): Promise<void> {
    const editor = lispEditor()
    const range = editor && rangeOf(editor, 'form')
    if (editor === undefined || range === undefined) return
    const uri = editor.document.uri.toString()
    await this.attempt(async () => {
      const position = plain(editor.selection.active)
      const answer = await this.server.run<Expansion>('macroexpand', { uri, position, how })
      const found = answer.range === undefined ? range : toRange(answer.range)
      this.asked = { uri, position, how, range: found, text: editor.document.getText(found) }
      this.steps = []
      this.texts = [expansionOf(answer)]
      await this.show()
    })
  }

  /**
   * Expand the form at the cursor of the expansion once more; the outermost when the cursor is
   * elsewhere.
   */
  async further(): Promise<void> {
    const { asked } = this
    const shown = this.texts.at(-1)
    if (asked === undefined || shown === undefined) return
    const editor = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.path === `/${EXPANSION}`)
    const place = editor === undefined ? { line: 0, character: 0 } : plain(editor.selection.active)
    await this.attempt(async () => {
      const steps = [...this.steps, place]
      const answer = await this.server.run<Expansion>('macroexpand', { uri: asked.uri, position: asked.position, how: asked.how, steps })
      const text = expansionOf(answer)
      if (text === shown || !answer.expanded) {
        vscode.window.setStatusBarMessage('Nothing is left to expand here', 3000)
        return
      }
      this.steps = steps
      this.texts.push(text)
      await this.show()
    })
  }

  async back(): Promise<void> {
    if (this.texts.length < 2) {
      vscode.window.setStatusBarMessage('This is the first expansion', 3000)
      return
    }
    this.texts.pop()
    this.steps.pop()
    await this.show()
  }

  /** Replace the form by what is shown. */
  async inPlace(): Promise<void> {
    const { asked } = this
    if (asked === undefined) return
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(asked.uri))
    if (document.getText(asked.range) !== asked.text) {
      void vscode.window.showInformationMessage('Consort: the form has changed since it was expanded. Expand it again.')
      return
    }
    await this.attempt(async () => {
      const { uri, position, how } = asked
      await this.server.run<Expansion>('macroexpand', { uri, position, how, steps: this.steps, inPlace: true })
    })
  }

  private async attempt(what: () => Promise<void>): Promise<void> {
    try {
      await what()
    } catch (error) {
      complain(error)
    }
  }

  private async show(): Promise<void> {
    await this.documents.open(EXPANSION, `${(this.texts.at(-1) ?? '').trimEnd()}\n`)
  }
}

function expansionOf(answer: Expansion): string {
  if (answer.expansion === null) throw new Error(answer.error?.message ?? 'There is no expansion.')
  return answer.expansion
}

/** The name in question: the place it stands at, or the name when none stands there. */
export async function named(title: string): Promise<object | undefined> {
  const editor = vscode.window.activeTextEditor
  if (editor !== undefined && isLisp(editor.document) && editor.document.getWordRangeAtPosition(editor.selection.active) !== undefined)
    return { uri: editor.document.uri.toString(), position: plain(editor.selection.active) }
  const name = await vscode.window.showInputBox({ title, prompt: 'A symbol, such as my-package:my-function' })
  return name === undefined || name === '' ? undefined : { name }
}

/** `describe` and `disassemble` of a symbol, by default the one at the cursor. */
export async function tell(server: Server, documents: Documents, what: 'describe' | 'disassemble', name?: string): Promise<void> {
  const argument = name === undefined ? await named(what === 'describe' ? 'Describe' : 'Disassemble') : { name }
  if (argument === undefined) return
  try {
    const told = await server.run<Told>(what, argument)
    if (told.error != null) throw new Error(typeof told.error === 'string' ? told.error : told.error.message)
    const name = (told.name ?? 'name').replace(/[^\w.+*<>=!?-]/g, '_')
    await documents.open(`${what}/${name}.txt`, told.text, { language: 'plaintext' })
  } catch (error) {
    complain(error)
  }
}
