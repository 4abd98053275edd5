// Compiling and loading a form or a file, which can be loaded even if it does not compile.
import * as vscode from 'vscode'
import { tellOfPlace } from './help.js'
import type { Name, ReloadReport } from './lsp_ext.js'
import { Refused, type Server } from './server.js'
import { runReload } from './undo.js'
import { saveFiles } from './unsaved.js'

const ANYWAY = 'Load Anyway'
/** The commands that load code that does not compile, if `anyway` says so. */
const TEXTS: readonly Name[] = ['compileForm', 'compileFile', 'loadFile']

interface What {
  uri?: string
}

const documentOf = ({ uri }: What): vscode.TextDocument | undefined => vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri)

/**
 * Compiles and loads. If the text does not compile, shows why and offers to load it anyway, if it
 * can be read. Resolves to undefined if the person declines.
 */
export async function compileAndLoad(server: Server, ask: Name, what: object): Promise<ReloadReport | undefined> {
  // These commands read the saved files.
  if (ask === 'reloadSystem' || ask === 'reloadPackage') await saveFiles()
  const before = documentOf(what)?.version
  try {
    return await runReload<ReloadReport>(server, ask, what)
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== 'COMPILATION_ERROR') throw error
    const buttons = TEXTS.includes(ask) && !error.unreadable ? [ANYWAY] : []
    if ((await tellOfPlace(error.message, error.place, ...buttons)) !== ANYWAY) return undefined
    if (documentOf(what)?.version !== before) throw new Error('The text has changed since: compile it again.')
    return await runReload<ReloadReport>(server, ask, { ...what, anyway: true })
  }
}
