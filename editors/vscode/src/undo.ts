// Undoing the last reload that a message reported to the person. The server undoes the newest
// reload of the image, whoever asked for it: if the log has a newer one, the person is asked about
// that first.
import * as vscode from 'vscode'
import { doneText, label } from './format.js'
import type { LogEntry, Name, ReloadReport } from './lsp_ext.js'
import type { Server } from './server.js'

const UNDO = 'Undo It'
/** The tools and commands that add a reload to be undone, and those that undo one. */
const ADDS = /^(code_(compile_string|load_fasl|reload_package|reload_system|replace_function)|consort\.(replaceFunction|reload(System|Package)|compile(Form|File)|loadFile|recompileCallers|undefine))$/
const UNDOES = /^(code_undo|consort\.undoReload)$/
/** Matches the outcome of an edit that was also loaded, or an outcome that was clipped. */
const LOADED = /^Reloaded |\.\.\.$/m

/** The effect of an entry of the log on the reloads that can be undone. */
export function effect({ tool, status, outcome }: LogEntry): 'adds' | 'undoes' | undefined {
  // Forms are loaded one after the other, and the ones before a form that fails stay.
  if (tool === 'lisp-edit-form') return LOADED.test(outcome ?? '...') ? 'adds' : undefined
  if (status !== 'ok') return undefined
  return ADDS.test(tool) ? 'adds' : UNDOES.test(tool) ? 'undoes' : undefined
}

type IsOf = (entry: LogEntry) => boolean
/** A reload that was reported to the person. */
interface Reload {
  words: string
  /** The server's name of it, if that is known. */
  what: string | undefined
  isOf: IsOf
}
interface Reloads {
  image: string | undefined
  /** The newest last. */
  told: Reload[]
  /** About this editor's commands that have changed nothing. */
  nothing: IsOf[]
}
const known = new WeakMap<Server, Reloads>()

/** The reloads of the present image: a new image has none of the reported reloads. */
function reloads(server: Server): Reloads {
  const image = server.condition.state === 'ready' ? server.condition.image : undefined
  const present = known.get(server)
  if (present !== undefined && (image === undefined || present.image === undefined || present.image === image)) {
    present.image ??= image
    return present
  }
  const fresh = { image, told: [], nothing: [] }
  known.set(server, fresh)
  return fresh
}

/** Runs a command that may add a reload, and remembers what is reported to the person. */
export async function runReload<T extends object>(server: Server, name: Name, argument: object): Promise<T> {
  const from = new Date().toISOString()
  const mine = (): IsOf => {
    const to = new Date().toISOString()
    return ({ frontend, tool, time }) => frontend === 'lsp' && tool === `consort.${name}` && from <= time && time <= to
  }
  try {
    const answer = await server.run<T>(name, argument)
    const report = (('report' in answer ? answer.report : answer) ?? {}) as Partial<ReloadReport>
    const changed = [...(report.redefined ?? []), ...(report.new ?? []), ...(report.gone ?? [])].map(String)
    if (changed.length === 0) reloads(server).nothing.push(mine())
    else reloads(server).told.push({ words: `${report.what ?? name} (${changed[0] ?? ''}${changed.length > 1 ? ', ...' : ''})`, what: report.what, isOf: mine() })
    return answer
  } catch (error) {
    // The log has some of these as done.
    reloads(server).nothing.push(mine())
    throw error
  }
}

/** Remembers a change by an agent whose outcome is reported to the person. */
export function tellReload(server: Server, words: string, { number }: LogEntry): void {
  reloads(server).told.push({ words, what: undefined, isOf: (entry) => entry.number === number })
}

interface Log {
  entries: LogEntry[]
  last: number
}

/** The newest reload that is not undone, and the entry that undid one of before. */
function newest(entries: LogEntry[], nothing: IsOf[]): { entry: LogEntry | undefined; undid: LogEntry | undefined } {
  const open: LogEntry[] = []
  let undid: LogEntry | undefined
  for (const entry of entries) {
    const done = effect(entry)
    if (done === 'adds' && !nothing.some((isOf) => isOf(entry))) open.push(entry)
    else if (done === 'undoes' && open.pop() === undefined) undid ??= entry
  }
  return { entry: open.at(-1), undid }
}

/**
 * The last reload that was reported to the person, if it is the newest one; else the reason, and
 * the newest one of the log.
 */
function toldLast({ told, nothing }: Reloads, entries: LogEntry[]): { one: Reload } | { why: string; other: LogEntry | undefined } {
  const other = newest(entries, nothing).entry
  const one = told.at(-1)
  if (one === undefined) return { why: 'it was not reported to you', other }
  const at = entries.findIndex(one.isOf)
  const since = newest(entries.slice(at + 1), nothing)
  if (at >= 0 && since.undid === undefined) return since.entry === undefined ? { one } : { why: `it is newer than ${label(one.words, 120)}`, other }
  told.pop()
  return { why: `${label(one.words, 120)} ${at < 0 ? 'is not in the log any more' : `was undone by ${label(since.undid?.client ?? '?')}`}`, other }
}

const described = (entry: LogEntry): string =>
  `${label(entry.code == null || entry.about != null ? doneText(entry) : `${doneText(entry)}: ${entry.code}`, 120)} (${label(entry.client)}, ${new Date(entry.time).toLocaleTimeString()})`

/**
 * Undoes the last reload that was reported to the person. If it is not the newest one, asks whether
 * the newest one is to be undone; undefined if it is not.
 */
export async function undoReload(server: Server): Promise<ReloadReport | undefined> {
  const { entries, last } = await server.ask<Log>('log', {})
  const mine = reloads(server)
  const found = toldLast(mine, entries)
  const one = 'one' in found ? found.one : undefined
  // If the log is complete and nothing is left to undo, the server says so.
  if (!('one' in found) && !(found.other === undefined && (entries[0]?.number ?? 1) === 1)) {
    const which = found.other === undefined ? 'a reload that is no longer in the log' : described(found.other)
    if ((await vscode.window.showWarningMessage(`Consort: the newest reload is ${which}; ${found.why}.`, UNDO)) !== UNDO) return undefined
    const since = (await server.ask<Log>('log', { since: last })).entries.find((entry) => effect(entry) !== undefined)
    if (since !== undefined) throw new Error(`Nothing was undone: there was ${described(since)} since the question. Undo again to be asked anew.`)
  }
  const report = await server.run<ReloadReport>('undoReload', {})
  if (one !== undefined && (one.what === undefined || one.what === report.what)) mine.told = mine.told.filter((other) => other !== one)
  else if (one !== undefined) void vscode.window.showWarningMessage(`Consort: ${label(report.what)} was undone instead of ${label(one.words, 120)}, because it was loaded just before.`)
  return report
}
