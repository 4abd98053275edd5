// Compiling and loading a form or a file: where it does not compile, it can be loaded all the same.
import * as vscode from 'vscode'
import type { Name, ReloadReport } from './lsp_ext.js'
import { plain } from './format.js'
import { Refused, type Server } from './server.js'
import { saveFiles } from './unsaved.js'

const ANYWAY = 'Load Anyway'

/** The version of the document of a request. */
function version(what: { uri?: string }): number | undefined {
  return vscode.workspace.textDocuments.find((one) => one.uri.toString() === what.uri)?.version
}

/**
 * Compiles and loads. Where the text does not compile, says so and offers to load it all the same;
 * undefined if the person does not want that.
 */
export async function compileAndLoad(server: Server, ask: Name, what: object): Promise<ReloadReport | undefined> {
  // These read the files.
  if (ask === 'reloadSystem' || ask === 'reloadPackage') await saveFiles()
  const before = version(what)
  try {
    return await server.run<ReloadReport>(ask, what)
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== 'COMPILATION_ERROR') throw error
    if ((await vscode.window.showErrorMessage(`Consort: ${plain(error.message)}`, ANYWAY)) !== ANYWAY) return undefined
    if (version(what) !== before) throw new Error('The text has changed since: compile it again.')
    return await server.run<ReloadReport>(ask, { ...what, anyway: true })
  }
}
