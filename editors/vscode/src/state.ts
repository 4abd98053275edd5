// The extension's own state, for tests that drive the editor. The user interface follows it with a
// delay that depends on the machine.
import * as vscode from 'vscode'
import type { Condition } from './condition.js'
import { isLisp, type Server } from './server.js'

export interface State {
  /** The path of the program, undefined when there is none. */
  found: string | undefined
  /** The language server's connection is up. */
  started: boolean
  condition: Condition
  /** Something of this editor is being evaluated. */
  busy: boolean
  /** The number of evaluations that have ended. */
  finished: number
  /**
   * The commands that the server announced, once VS Code knows them as conditions of keys and
   * menus.
   */
  offered: readonly string[]
  /** The settings that were sent to the server last. */
  settings: Readonly<Record<string, Record<string, unknown>>>
  /** Tests are under way. */
  testing: boolean
  /** The open Lisp documents: their versions, and the last ones that were sent to the server. */
  documents: { uri: string; version: number; sent: number | undefined }[]
}

/**
 * Registers `_consort.state`. It is declared nowhere, so it is in no palette and on no key, and it
 * changes nothing.
 */
export function registerState(server: Server, testing: () => boolean): vscode.Disposable {
  return vscode.commands.registerCommand('_consort.state', (): State => ({
    found: server.found?.path,
    started: server.started,
    condition: server.condition,
    busy: server.busy,
    finished: server.finished,
    offered: server.offered,
    settings: server.sentSettings,
    testing: testing(),
    documents: vscode.workspace.textDocuments
      .filter(isLisp)
      .map(({ uri, version }) => ({ uri: uri.toString(), version, sent: server.sentVersion(uri) })),
  }))
}
