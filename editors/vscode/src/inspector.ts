// The inspector: a view of a value as a tree of its parts, which are read when they are opened. It
// keeps no value from garbage collection: a value that is gone is shown as such.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { plain } from './convert.js'
import type { Documents } from './documents.js'
import { label } from './format.js'
import { onOtherImage } from './image_changes.js'
import { comparisonText, definitionItems, descriptionText, tableText } from './inspected.js'
import { Latest } from './latest.js'
import type { Comparison, Described, EvalResult, Inspected, InspectedValue, ValueDefinitions, ValueTable } from './lsp_ext.js'
import { complain, withUnmovedFocus, trackFocus, isLisp, type Server } from './server.js'
import { Tree } from './trees.js'

/** The parts that are read at a time. */
const PAGE = 100
const ROWS = 500
const VIEW = 'consort.inspector'

/** A value in the tree: the inspected one, or a part. */
export interface Inspecting {
  name: string
  value: InspectedValue
  /** The value that this is a part of, and which part. */
  of?: { reference: number; part: number }
  /** Stands for the parts from the number `start` on. */
  more?: { reference: number; start: number; total: number }
}

interface Evaluated {
  status: string
  values: InspectedValue[]
  error: { type: string; message: string } | null
}

export class Inspector extends Tree<Inspecting> {
  /** The inspected value, and those before it. */
  private path: (Inspecting & { asked: number })[] = []
  /** The requests so far whose answers are inspected. */
  private asked = 0
  private marked: Inspecting | undefined
  private readonly texts = new Latest()
  private readonly view: vscode.TreeView<Inspecting>
  private readonly images: vscode.Disposable

  constructor(
    private readonly server: Server,
    private readonly documents: Documents,
  ) {
    super()
    this.view = vscode.window.createTreeView(VIEW, { treeDataProvider: this })
    this.images = onOtherImage(server, () => this.forget())
  }
  override dispose(): void {
    this.images.dispose()
    this.view.dispose()
    super.dispose()
  }

  override getTreeItem({ name, value, of, more }: Inspecting): vscode.TreeItem {
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState
    if (more !== undefined) {
      const item = new vscode.TreeItem(`${more.total - more.start} more`, Collapsed)
      item.iconPath = new vscode.ThemeIcon('ellipsis')
      return item
    }
    const item = new vscode.TreeItem(label(name), value.reference === 0 ? None : of === undefined ? Expanded : Collapsed)
    item.description = label(value.text)
    item.tooltip = label(`${value.type === null ? '' : `${value.type}: `}${value.text}`, 2000)
    item.contextValue = `${of === undefined ? 'root' : 'part'}${value.reference === 0 ? '' : 'Parts'}`
    return item
  }

  override async getChildren(node?: Inspecting): Promise<Inspecting[]> {
    if (node === undefined) return this.path.slice(-1)
    const { reference, start } = node.more ?? { reference: node.value.reference, start: 0 }
    if (reference === 0) return []
    try {
      const { parts, total } = await this.server.run<Inspected>('inspect', { reference, start, count: PAGE })
      const children: Inspecting[] = parts.map(({ label, key, value }, index) => ({ name: key?.text ?? label, value, of: { reference, part: start + index } }))
      const next = start + parts.length
      if (parts.length > 0 && next < total) children.push({ name: 'more', value: { text: '', type: null, reference: 0 }, more: { reference, start: next, total } })
      return children
    } catch (error) {
      complain(error)
      return []
    }
  }

  /** Shows a value in the view. */
  async open(name: string, value: InspectedValue): Promise<void> {
    await this.enter({ name, value })
  }

  /** Inspects a value; one that was requested before those on the path comes below them. */
  private async enter(node: Inspecting, focus = true, asked = ++this.asked): Promise<void> {
    const later = this.path.findIndex((one) => one.asked > asked)
    this.path.splice(later < 0 ? this.path.length : later, 0, { name: node.name, value: node.value, asked })
    await vscode.commands.executeCommand('setContext', 'consort.inspected', true)
    await vscode.commands.executeCommand('setContext', 'consort.inspectorBack', this.path.length > 1)
    this.refresh()
    if (later >= 0) vscode.window.setStatusBarMessage(`${label(node.name)} ⇒ ${label(node.value.text)}: "Back" in the inspector goes to it`, 8000)
    else if (focus) await vscode.commands.executeCommand(`${VIEW}.focus`)
    else vscode.window.setStatusBarMessage(`${label(node.name)} is in the inspector`, 8000)
  }

  /** Removes the values of an image that has ended. */
  private forget(): void {
    this.path = []
    this.marked = undefined
    for (const key of ['consort.inspected', 'consort.inspectorBack']) void vscode.commands.executeCommand('setContext', key, false)
    this.refresh()
  }

  /** Inspects the value of an expression, by default the name at the cursor: the command. */
  async ask(): Promise<void> {
    const active = vscode.window.activeTextEditor
    const editor = active !== undefined && isLisp(active.document) ? active : undefined
    const range = editor && (editor.selection.isEmpty ? editor.document.getWordRangeAtPosition(editor.selection.active) : editor.selection)
    const code = await askText({ title: 'Inspect', prompt: 'A Lisp form, whose value is inspected; * is the last value', value: range === undefined ? '' : editor?.document.getText(range) ?? '' })
    if (code === undefined || code.trim() === '') return
    const place = editor === undefined ? {} : { uri: editor.document.uri.toString(), position: plain(editor.selection.active) }
    const isFocusUnmoved = trackFocus()
    const asked = ++this.asked
    const result = await this.server.run<EvalResult>('eval', { code, ...place })
    const error = result.error
    if (error !== null) throw new Error(`${error.type}: ${error.message}`)
    const text = result.values[0]
    if (text === undefined) throw new Error(`${code} has no value.`)
    await this.enter({ name: code, value: { text, type: null, reference: result.references?.[0] ?? 0 } }, isFocusUnmoved(), asked)
  }

  async back(): Promise<void> {
    if (this.path.length < 2) return
    this.path.pop()
    await vscode.commands.executeCommand('setContext', 'consort.inspectorBack', this.path.length > 1)
    this.refresh()
  }

  /** The row that a command is about: the selected one if the command was given by key. */
  private meant(node: Inspecting | undefined): Inspecting {
    const one = node ?? this.view.selection[0] ?? this.path.at(-1)
    if (one === undefined) throw new Error('Nothing is inspected yet. Inspect a value with "Consort: Inspect…".')
    return one
  }

  /** Shows a part as the value of the view. */
  async into(given?: Inspecting): Promise<void> {
    const node = this.meant(given)
    if (node.value.reference !== 0) await this.enter(node)
  }

  async set(given?: Inspecting): Promise<void> {
    const node = this.meant(given)
    if (node.of === undefined) throw new Error('This is the inspected value itself: a part of one is set.')
    const code = await askText({ title: `New value of ${label(node.name)}`, prompt: 'A Lisp form; * is the value that this is a part of' })
    if (code === undefined || code.trim() === '') return
    first(await this.server.run<Evaluated>('inspectSet', { ...node.of, code }))
    this.refresh()
  }

  async evaluate(given?: Inspecting): Promise<void> {
    const node = this.meant(given)
    if (node.value.reference === 0) throw new Error('This value is evaluated by writing it.')
    const code = await askText({ title: `Evaluate on ${label(node.name)}`, prompt: 'A Lisp form; * is this value', value: '*' })
    if (code === undefined || code.trim() === '') return
    const shown = this.path.at(-1)
    const isFocusUnmoved = trackFocus()
    const value = first(await this.server.run<Evaluated>('inspectEval', { reference: node.value.reference, code }))
    // The view shows another value meanwhile.
    if (this.path.at(-1) !== shown) vscode.window.setStatusBarMessage(`⇒ ${label(value.text)}`, 8000)
    else await this.enter({ name: code, value }, isFocusUnmoved())
  }

  /** Shows a text about a value, unless one that was requested later is shown. */
  private async tell<T>(name: string, answer: Promise<T>, text: (answer: T) => string): Promise<void> {
    const request = this.texts.begin()
    const shown = text(await answer)
    if (request.isLate()) return
    request.show()
    await this.documents.open(`inspector/${name}.txt`, `${shown}\n`, { language: 'plaintext' })
  }

  async table(given?: Inspecting): Promise<void> {
    const node = this.meant(given)
    const answer = this.server.run<ValueTable>('inspectTable', { reference: node.value.reference, count: ROWS })
    await this.tell('table', answer, (table) => tableText(node.name, table))
  }

  /** Goes to where the value is defined; for an instance, to its class. */
  async definition(given?: Inspecting): Promise<void> {
    const node = this.meant(given)
    const items = definitionItems(await withUnmovedFocus(this.server.run<ValueDefinitions>('inspectDefinition', { reference: node.value.reference })))
    if (items.length === 0) throw new Error(`${label(node.name)} is from no file that can be read.`)
    const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title: `Definitions of ${label(node.name)}` })
    if (chosen === undefined) return
    const { uri, range } = chosen.definition
    const at = new vscode.Position(range.start.line, range.start.character)
    await vscode.window.showTextDocument(vscode.Uri.parse(uri), { selection: new vscode.Range(at, at) })
  }

  async describe(given?: Inspecting): Promise<void> {
    const node = this.meant(given)
    await this.tell('description', this.server.run<Described>('inspectDescribe', { reference: node.value.reference }), descriptionText)
  }

  /** Marks the first value, and compares the second with it. */
  async compare(given?: Inspecting): Promise<void> {
    const node = this.meant(given)
    const marked = this.marked
    if (marked === undefined || marked === node) {
      this.marked = node
      void vscode.window.setStatusBarMessage(`${label(node.name)} is marked: give the command at the value to compare it with`, 8000)
      return
    }
    this.marked = undefined
    const answer = this.server.run<Comparison>('inspectCompare', { reference: marked.value.reference, other: node.value.reference })
    await this.tell('differences', answer, (found) => comparisonText(`${marked.name} = ${marked.value.text}`, `${node.name} = ${node.value.text}`, found))
  }

  async copy(given?: Inspecting): Promise<void> {
    await vscode.env.clipboard.writeText(this.meant(given).value.text)
  }
}

/** The first value of code that was evaluated. */
function first({ status, values, error }: Evaluated): InspectedValue {
  if (error !== null) throw new Error(`${error.type}: ${error.message}`)
  const [value] = values
  if (status !== 'ok' || value === undefined) throw new Error(status === 'ok' ? 'It has no value.' : `It did not end: ${status}.`)
  return value
}
