// Positions and ranges between VS Code and the protocol. Both count UTF-16 code units from 0.
import * as vscode from 'vscode'
import type { Position, Range } from './lsp_ext.js'

export const plain = (position: vscode.Position): Position => ({ line: position.line, character: position.character })
export const plainRange = (range: vscode.Range): Range => ({ start: plain(range.start), end: plain(range.end) })
export const toRange = (range: Range): vscode.Range =>
  new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character)
