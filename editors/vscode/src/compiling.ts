// Compiling and loading a form or a file: where it does not compile, it can be loaded all the same.
import * as vscode from 'vscode'
import { unbalanced } from './balance.js'
import { tellOfPlace } from './help.js'
import type { Name, Position, ReloadReport } from './lsp_ext.js'
import { topLevelFormAt } from './reader.js'
import { Refused, type Server } from './server.js'
import { runReload } from './undo.js'
import { saveFiles } from './unsaved.js'

const ANYWAY = 'Load Anyway'
/** The commands that load what does not compile, if they are told to. */
const TEXTS: readonly Name[] = ['compileForm', 'compileFile', 'loadFile']
/** Reasons why a text cannot be read, which those that `unbalanced` finds are not among. */
const UNREADABLE = /: (?:READ error|Package \S+ does not exist|Symbol "[^]*" not found|The symbol "[^]*" is not external|illegal sharp macro)|a form must follow it|The text ends after/

interface What {
  uri?: string
  position?: Position
}

const documentOf = ({ uri }: What): vscode.TextDocument | undefined => vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri)

/** True if the text that a request compiles can be read, as far as is known here. */
function readable(error: Refused, what: What): boolean {
  if (UNREADABLE.test(error.message)) return false
  const document = documentOf(what)
  if (document === undefined) return true
  const text = document.getText()
  if (what.position === undefined) return unbalanced(text).length === 0
  const form = topLevelFormAt(text, document.offsetAt(new vscode.Position(what.position.line, what.position.character)))
  return form === undefined || unbalanced(text.slice(form.start, form.end)).length === 0
}

/**
 * Compiles and loads. Where the text does not compile, says so and offers to load it all the same,
 * if it can be read; undefined if the person does not want that.
 */
export async function compileAndLoad(server: Server, ask: Name, what: object): Promise<ReloadReport | undefined> {
  // These read the files.
  if (ask === 'reloadSystem' || ask === 'reloadPackage') await saveFiles()
  const before = documentOf(what)?.version
  try {
    return await runReload<ReloadReport>(server, ask, what)
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== 'COMPILATION_ERROR') throw error
    const buttons = TEXTS.includes(ask) && readable(error, what) ? [ANYWAY] : []
    if ((await tellOfPlace(error.message, error.place, ...buttons)) !== ANYWAY) return undefined
    if (documentOf(what)?.version !== before) throw new Error('The text has changed since: compile it again.')
    return await runReload<ReloadReport>(server, ask, { ...what, anyway: true })
  }
}
