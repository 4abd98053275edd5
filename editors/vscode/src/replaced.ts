// The outcome of a change of running code that a person has allowed, with buttons that undo it and
// that write it into the file.
import * as vscode from 'vscode'
import { label, oneLine, plain } from './format.js'
import type { Approval, LogEntry } from './lsp_ext.js'
import { packageAt } from './reader.js'
import type { Server } from './server.js'
import type { DefinitionPlace } from './source.js'
import { effect, tellReload } from './undo.js'

const UNDO = 'Undo'
const WRITE = 'Write to file'
/** The time limit for the outcome of an allowed call, in milliseconds. */
const PATIENCE = 60_000

/** Shows the outcome of the call, and offers what can be done next. */
export async function offerNext(server: Server, approval: Approval, place: DefinitionPlace | undefined): Promise<void> {
  if (approval.class !== 'modify-running-code') return
  let own: LogEntry | undefined
  let isLast = true
  const heard = server.onLogEntry((entry) => {
    const isOwn = own === undefined && isOf(entry, approval)
    if (isOwn) own = entry
    if (isOwn || effect(entry) !== undefined) isLast = isOwn
  })
  try {
    const entry = await outcome(server, approval)
    // The agent gets the error of a failed change; the image is as it was.
    if (entry !== undefined && effect(entry) === 'adds') tellReload(server, approval.what, entry)
    if (entry === undefined || entry.status === 'ok') await offer(approval, place, () => isLast)
  } finally {
    heard.dispose()
  }
}

/** `isLast`: whether nothing else was replaced, or undone, since. */
async function offer(approval: Approval, place: DefinitionPlace | undefined, isLast: () => boolean): Promise<void> {
  const { function: name, new_code: code } = (approval.arguments ?? {}) as { function?: unknown; new_code?: unknown }
  const replaced = typeof name === 'string' ? `${label(name.toUpperCase(), 80)} replaced` : `Allowed: ${plain(oneLine(approval.what, 120))}`
  const writable = place !== undefined && typeof code === 'string' ? [WRITE] : []
  const choice = await vscode.window.showInformationMessage(`${replaced}. Only the image is changed, not the file.`, UNDO, ...writable)
  // The server undoes the last change, whichever that is.
  if (choice === UNDO && !isLast()) void vscode.window.showWarningMessage(`Not undone: something else was replaced, or undone, since. "Consort: Undo the Last Reload" undoes the newest change.`)
  else if (choice === UNDO) await vscode.commands.executeCommand('consort.editor.undoReload')
  if (choice === WRITE && place !== undefined && typeof code === 'string') await write(approval, place, code.trim())
}

/** The call's entry in the log; undefined when none comes in time. */
function outcome(server: Server, approval: Approval): Promise<LogEntry | undefined> {
  return new Promise((resolve) => {
    const end = (entry: LogEntry | undefined): void => {
      clearTimeout(timer)
      heard.dispose()
      resolve(entry)
    }
    const timer = setTimeout(() => end(undefined), PATIENCE)
    const heard = server.onLogEntry((entry) => {
      if (isOf(entry, approval)) end(entry)
    })
  })
}

/** True if an entry of the log is of the call, and not another agent's or about another name. */
function isOf({ frontend, tool, client, about }: LogEntry, approval: Approval): boolean {
  const { system, function: name, symbol } = (approval.arguments ?? {}) as Record<string, unknown>
  const named = system ?? name ?? symbol
  // The log clips long names.
  const isAbout = about == null || typeof named !== 'string' || named.length > 100 || named === about
  return frontend === 'mcp' && tool === approval.tool && client === approval.client && isAbout
}

/**
 * Replaces the old definition in its file by the new one, by an edit that can be undone and is not
 * saved.
 */
async function write(approval: Approval, { document, text }: DefinitionPlace, code: string): Promise<void> {
  const file = label(vscode.workspace.asRelativePath(document.uri))
  const form = formOf(document, text)
  if (form === undefined) {
    const show = 'Show the file'
    const choice = await vscode.window.showWarningMessage(`Not written: the old definition is no longer in ${file} as it was when the agent asked.`, show)
    if (choice === show) await vscode.window.showTextDocument(document)
    return
  }
  const edit = new vscode.WorkspaceEdit()
  edit.replace(document.uri, form, code)
  if (!(await vscode.workspace.applyEdit(edit))) {
    void vscode.window.showWarningMessage(`Not written: ${file} cannot be edited.`)
    return
  }
  const editor = await vscode.window.showTextDocument(document)
  editor.revealRange(new vscode.Range(form.start, form.start), vscode.TextEditorRevealType.InCenterIfOutsideViewport)
  const read = (approval.arguments as { package?: unknown }).package
  const here = packageAt(document.getText(), document.offsetAt(form.start))
  const other = typeof read === 'string' && here !== undefined && read.toUpperCase() !== here.toUpperCase()
  const names = other ? ` The agent's names were read in ${label(read.toUpperCase(), 40)}, the file's are read in ${label(here.toUpperCase(), 40)}.` : ''
  void vscode.window.showInformationMessage(`Written to ${file}, not saved yet.${names}`)
}

/** The place of a text in a document, if it is there once. */
function formOf(document: vscode.TextDocument, text: string): vscode.Range | undefined {
  const all = document.getText()
  const at = all.indexOf(text)
  if (at < 0 || all.includes(text, at + 1)) return undefined
  return new vscode.Range(document.positionAt(at), document.positionAt(at + text.length))
}
