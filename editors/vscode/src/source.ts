// Opens the definition of a symbol, and the place of a frame of a backtrace.
import * as vscode from 'vscode'
import { toRange } from './convert.js'
import { calleeOf, callIn, frameAt, sourced, type Sourced } from './frames.js'
import type { Definition, LispError, SourceLocations } from './lsp_ext.js'
import { complain, FocusMoved, trackFocus, Refused, type Server } from './server.js'

/**
 * Opens the first definition of a symbol, read in a package if one is given. Uses the server's
 * command if it has one, and the workspace's symbols otherwise.
 */
export async function goToSymbol(server: Server, symbol: string, where: { package?: string } = {}): Promise<void> {
  const isFocusUnmoved = trackFocus()
  const name = symbol.replace(/^\((?:setf|flet|labels|lambda|sb-pcl::fast-method|method)\s+/i, '').replace(/[)\s].*$/, '')
  if (server.can('sourceLocation')) {
    const answer = await server.ask<SourceLocations>('sourceLocation', { symbol: name, ...where })
    const place = answer.definitions.find(({ location }) => location != null)?.location
    if (place != null) {
      await show(vscode.Uri.parse(place.uri), toRange(place.range).start, isFocusUnmoved)
      return
    }
  }
  const bare = name.replace(/^.*:/, '').toLowerCase()
  const files = await vscode.workspace.findFiles('**/*.{lisp,lsp,cl,asd}', '**/{node_modules,.git}/**', 500)
  const defined = new RegExp(`^\\(\\s*def\\S*\\s+\\(?${bare.replace(/[.*+?^\${}()|[\]\\]/g, '\\$&')}(?=[\\s()])`, 'im')
  for (const file of files) {
    const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(file))
    const match = defined.exec(text)
    if (match === null) continue
    const line = text.slice(0, match.index).split('\n').length - 1
    await show(file, new vscode.Position(line, 0), isFocusUnmoved)
    return
  }
  throw new Refused(`No definition of ${symbol} was found in the workspace.`, undefined)
}

/**
 * Opens the source of a frame at the line that called `callee`; at the definition where that call
 * is not found.
 */
export async function goToFrame(server: Server, frame: Sourced, callee: string | undefined): Promise<void> {
  const isFocusUnmoved = trackFocus()
  const answer = await server.ask<SourceLocations>('sourceLocation', { symbol: frame.name })
  const definition = definitionOf(frame, answer.definitions)
  if (definition?.location == null) {
    // The definition is gone, or another one has its name: the frame knows the file that it was
    // loaded from.
    if (frame.file === null) throw new Refused(`The definition of ${frame.name} is not known: it was not loaded from a file.`, undefined)
    await show(vscode.Uri.file(frame.file), new vscode.Position(Math.max(0, (frame.line ?? 1) - 1), 0), isFocusUnmoved)
    return
  }
  const uri = vscode.Uri.parse(definition.location.uri)
  let place = toRange(definition.location.range).start
  if (callee !== undefined && definition.form != null) {
    const document = await vscode.workspace.openTextDocument(uri)
    const form = toRange(definition.form)
    const at = callIn(document.getText(form), callee)
    if (at !== undefined) place = document.positionAt(document.offsetAt(form.start) + at)
  }
  await show(uri, place, isFocusUnmoved)
}

/** A definition with its present text. */
export interface DefinitionPlace {
  document: vscode.TextDocument
  form: vscode.Range
  text: string
}

/**
 * The place of a function's definition; undefined if it is not known. If the text was edited
 * meanwhile, the range in the answer does not hold, and the request is repeated.
 */
export async function definitionPlace(server: Server, name: string): Promise<DefinitionPlace | undefined> {
  if (!server.can('sourceLocation')) return undefined
  const versions = new Map(vscode.workspace.textDocuments.map((document) => [document, document.version]))
  const { definitions } = await server.ask<SourceLocations>('sourceLocation', { symbol: name })
  const definition = definitions.find(({ kind, location, form }) => /function|macro/.test(kind ?? '') && location != null && form != null)
  if (definition?.location == null || definition.form == null) return undefined
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(definition.location.uri))
  if ((versions.get(document) ?? document.version) !== document.version) return definitionPlace(server, name)
  const form = toRange(definition.form)
  return { document, form, text: document.getText(form) }
}

function definitionOf(frame: Sourced, all: Definition[]): Definition | undefined {
  const known = all.filter(({ location }) => location != null)
  if (frame.method !== null) {
    const wanted = frame.method.replace(/[\s()]+/g, ' ').trim().toLowerCase()
    const methods = known.filter(({ kind }) => kind === 'method')
    const written = ({ name }: Definition): string => (/\(([^]*)\)\s*$/.exec(name ?? '')?.[1] ?? '').replace(/[\s()]+/g, ' ').trim().toLowerCase()
    return methods.find((one) => written(one) === wanted) ?? methods[0] ?? known[0]
  }
  return known.find(({ kind }) => /function|macro/.test(kind ?? '')) ?? known[0]
}

async function show(uri: vscode.Uri, at: vscode.Position, isFocusUnmoved: () => boolean): Promise<void> {
  if (!isFocusUnmoved()) throw new FocusMoved()
  const there = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString())
  await vscode.window.showTextDocument(uri, { viewColumn: there?.viewColumn ?? vscode.ViewColumn.One, selection: new vscode.Range(at, at) })
}

/** A link to a frame's source, for hovers and documents; undefined for frames that have none. */
export function frameLink(error: LispError, index: number): string | undefined {
  const frame = sourced(error, index)
  return frame === undefined ? undefined : `command:consort.editor.goToFrame?${encodeURIComponent(JSON.stringify([frame, calleeOf(error, index)]))}`
}

class FrameLink extends vscode.TerminalLink {
  constructor(
    start: number,
    length: number,
    readonly frame: Sourced,
    readonly callee: string | undefined,
  ) {
    super(start, length, 'Go to the source')
  }
}

/** Frames in the document that shows a whole result, and in the REPL, are links too. */
export class FrameLinks implements vscode.DocumentLinkProvider, vscode.TerminalLinkProvider {
  constructor(
    private readonly server: Server,
    /**
     * The error whose backtrace is shown: that of the document with a whole result, or the REPL's
     * last one.
     */
    private readonly shownIn: (where: vscode.Terminal | vscode.TextDocument) => LispError | undefined,
  ) {}
  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    const error = this.shownIn(document)
    if (error === undefined) return []
    const links: vscode.DocumentLink[] = []
    for (let line = 0; line < document.lineCount; line++) {
      const text = document.lineAt(line).text
      const shown = frameAt(error, text)
      const target = shown && frameLink(error, shown.index)
      if (shown === undefined || target === undefined) continue
      const link = new vscode.DocumentLink(new vscode.Range(line, shown.start, line, text.length), vscode.Uri.parse(target))
      link.tooltip = 'Go to the source'
      links.push(link)
    }
    return links
  }
  provideTerminalLinks({ terminal, line }: vscode.TerminalLinkContext): FrameLink[] {
    const error = this.shownIn(terminal)
    const shown = error && frameAt(error, line)
    const frame = error && shown && sourced(error, shown.index)
    if (error === undefined || shown === undefined || frame === undefined) return []
    return [new FrameLink(shown.start, line.length - shown.start, frame, calleeOf(error, shown.index))]
  }
  async handleTerminalLink(link: vscode.TerminalLink): Promise<void> {
    if (link instanceof FrameLink) await goToFrame(this.server, link.frame, link.callee).catch(complain)
  }
}
