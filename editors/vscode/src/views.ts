// Views beside the editor: macro expansions that go further and back, descriptions, disassembly.
import * as vscode from 'vscode'
import type { Documents } from './documents.js'
import { plain, toRange } from './convert.js'
import { lispEditor, rangeOf } from './evaluate.js'
import type { Expansion } from './lsp_ext.js'
import { complain, type Server } from './server.js'

type How = 'one' | 'step' | 'full'
const EXPANSION = 'expansion/macroexpansion.lisp'

/** Text of an answer whose shape depends on the command: the field that holds prose. */
export function textOf(answer: unknown): string {
  if (typeof answer === 'string') return answer
  if (typeof answer === 'object' && answer !== null) {
    const fields = answer as Record<string, unknown>
    for (const name of ['expansion', 'text', 'disassembly', 'description', 'stdout']) {
      const value = fields[name]
      if (typeof value === 'string' && value.trim() !== '') return value
    }
    const error = fields['error'] as { type?: string; message?: string } | null | undefined
    if (error != null && typeof error.message === 'string') throw new Error(`${error.type ?? 'error'}: ${error.message}`)
    if (Array.isArray(fields['values'])) return (fields['values'] as unknown[]).join('\n')
  }
  return JSON.stringify(answer, null, 2)
}

export class Expansions {
  private asked: { uri: string; position: { line: number; character: number }; how: How; range: vscode.Range; text: string } | undefined
  /** Where further expansions were asked for, each an offset into the text that the one before gave. */
  private steps: number[] = []
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
      this.texts = [textOf(answer)]
      await this.show()
    })
  }

  /** Expand the form at the cursor of the expansion once more; the outermost when the cursor is elsewhere. */
  async further(): Promise<void> {
    const { asked } = this
    const shown = this.texts.at(-1)
    if (asked === undefined || shown === undefined) return
    const editor = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.path === `/${EXPANSION}`)
    const offset = editor === undefined ? 0 : Math.min(editor.document.offsetAt(editor.selection.active), shown.length - 1)
    await this.attempt(async () => {
      const steps = [...this.steps, offset]
      const answer = await this.server.run<Expansion>('macroexpand', { uri: asked.uri, position: asked.position, how: asked.how, steps })
      const text = textOf(answer)
      if (text === shown || answer.expanded === false) {
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
    const text = this.texts.at(-1)
    if (asked === undefined || text === undefined) return
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(asked.uri))
    if (document.getText(asked.range) !== asked.text) {
      void vscode.window.showInformationMessage('Consort: the form has changed since it was expanded. Expand it again.')
      return
    }
    const indent = ' '.repeat(asked.range.start.character)
    const edit = new vscode.WorkspaceEdit()
    edit.replace(document.uri, asked.range, text.trim().replaceAll('\n', `\n${indent}`))
    await vscode.workspace.applyEdit(edit)
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

/** The symbol at the cursor, or one that is asked for. */
async function symbolAtCursor(title: string): Promise<string | undefined> {
  const editor = vscode.window.activeTextEditor
  const range = editor?.document.getWordRangeAtPosition(editor.selection.active)
  const word = range === undefined ? '' : (editor?.document.getText(range) ?? '')
  if (word !== '') return word
  return vscode.window.showInputBox({ title, prompt: 'A symbol, such as my-package:my-function' })
}

/** `describe` and `disassemble` of the symbol at the cursor. */
export async function tell(server: Server, documents: Documents, what: 'describe' | 'disassemble'): Promise<void> {
  const editor = lispEditor()
  const symbol = await symbolAtCursor(what === 'describe' ? 'Describe' : 'Disassemble')
  if (symbol === undefined || symbol === '') return
  try {
    const place = editor === undefined ? {} : { uri: editor.document.uri.toString(), position: plain(editor.selection.active) }
    const answer = await server.run<unknown>(what, { symbol, ...place })
    const name = `${what}/${symbol.replace(/[^\w.+*<>=!?-]/g, '_')}.txt`
    await documents.open(name, textOf(answer), { language: 'plaintext' })
  } catch (error) {
    complain(error)
  }
}
