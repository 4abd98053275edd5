// The commands that load, compile, move and remove definitions.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { compileAndLoad } from './compiling.js'
import { placeHere } from './evaluate.js'
import type { Features, Register } from './features.js'
import { label, reportText } from './format.js'
import type { Name, Recompiled } from './lsp_ext.js'
import { moveDefinition } from './moving.js'
import { complain } from './server.js'
import { currentPackage } from './status.js'
import { chooseSystem, loadSystem, type System } from './trees.js'
import { undefine } from './undefine.js'
import { runReload, undoReload } from './undo.js'

/** Compiles the users of a definition again. */
async function recompile({ server, documents }: Features, place: object | undefined): Promise<void> {
  if (place === undefined) return
  try {
    const done = await runReload<Recompiled>(server, 'recompileCallers', place)
    await documents.open('report/callers.txt', `${done.text}\n`, { language: 'plaintext' })
  } catch (error) {
    complain(error)
  }
}

/** Offers to compile the `count` users that hold the old code of the definition at `place`. */
async function offerUsers(features: Features, count: number, place: object): Promise<void> {
  const again = 'Compile Them'
  const still = count === 1 ? '1 definition still holds the old code.' : `${count} definitions still hold the old code.`
  if ((await vscode.window.showInformationMessage(still, again)) === again) await recompile(features, place)
}

/**
 * Changes definitions. The report is shown beside the editor if it says more than that the change
 * was made.
 */
async function change(features: Features, request: Name, what: object): Promise<void> {
  const { server, documents } = features
  const isUndo = request === 'undoReload'
  const report = isUndo ? await undoReload(server) : await compileAndLoad(server, request, what)
  if (report === undefined) return
  vscode.window.setStatusBarMessage(`$(check) ${isUndo ? 'Undone: ' : ''}${label(report.what)}`, 4000)
  const notable = [report.gone, report.stale, report.layouts, report.not_undone, report.warnings, report.errors ?? []].some((list) => list.length > 0)
  if (request === 'compileForm' && report.stale.length > 0) void offerUsers(features, report.stale.length, what)
  if (notable || request === 'reloadSystem' || request === 'reloadPackage') await documents.open('report/reload.txt', `${reportText(report, isUndo)}\n`, { language: 'plaintext' })
}

export function registerLoadingCommands(features: Features, command: Register): void {
  const { server, systems, output } = features
  const reload = (name: string, request: Name, argument: (given?: System) => Promise<object | undefined> | object | undefined): void =>
    command(name, async (given?: System) => {
      try {
        const what = await argument(given)
        if (what !== undefined) await change(features, request, what)
      } catch (error) {
        complain(error)
      }
    })
  command('loadSystem', (system?: System) => loadSystem(server, systems, system, output))
  reload('reloadSystem', 'reloadSystem', async (given) => {
    const system = given?.name ?? (await chooseSystem('Reload a System'))
    return system === undefined ? undefined : { system }
  })
  reload('reloadPackage', 'reloadPackage', async () => {
    const name = await askText({ title: 'Reload a Package', value: currentPackage() ?? '' })
    return name === undefined || name === '' ? undefined : { package: name }
  })
  reload('undoReload', 'undoReload', () => ({}))
  reload('compileForm', 'compileForm', placeHere)
  reload('compileFormForDebugging', 'compileForm', () => {
    const place = placeHere()
    return place && { ...place, debug: true }
  })
  reload('compileFileForDebugging', 'compileFile', () => {
    const place = placeHere()
    return place && { uri: place.uri, debug: true }
  })
  reload('compileFile', 'compileFile', () => {
    const place = placeHere()
    return place && { uri: place.uri }
  })
  command('recompileCallers', () => recompile(features, placeHere()))
  command('undefine', async () => {
    const place = placeHere()
    if (place !== undefined) await undefine(server, place).catch(complain)
  })
  command('moveDefinition', async () => {
    const place = placeHere()
    const document = vscode.window.activeTextEditor?.document
    if (place !== undefined && document !== undefined) await moveDefinition(server, document, place).catch(complain)
  })
}
