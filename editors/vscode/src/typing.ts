// The indentation of a line that was begun with Enter: the server's, and the text's own where the
// server is late, starting or absent.
import * as vscode from 'vscode'
import { indentation } from './indent.js'

/**
 * The time limit for the server's answer, in milliseconds: VS Code drops one that comes after the
 * next key.
 */
const SOON = 120

/** The edits that put the line of the position at the column that the text above determines. */
export function indent(document: vscode.TextDocument, position: vscode.Position): vscode.TextEdit[] {
  const start = new vscode.Position(position.line, 0)
  const column = indentation(document.getText(), document.offsetAt(start))
  const blank = /^[ \t]*/.exec(document.lineAt(position.line).text)?.[0] ?? ''
  if (column === undefined || blank === ' '.repeat(column)) return []
  return [vscode.TextEdit.replace(new vscode.Range(start, start.translate(0, blank.length)), ' '.repeat(column))]
}

type Edits = vscode.ProviderResult<vscode.TextEdit[]>

/** The server's edits if they come soon. */
export async function inTime(document: vscode.TextDocument, position: vscode.Position, ch: string, server: Edits): Promise<vscode.TextEdit[] | undefined | null> {
  if (ch !== '\n') return server
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), SOON)
  })
  const asked = Promise.resolve(server).catch(() => undefined)
  const edits = await Promise.race([asked, late])
  clearTimeout(timer)
  return edits ?? indent(document, position)
}

/** Indents while no server does: VS Code asks the provider that was registered last. */
export function registerIndentation(selector: vscode.DocumentSelector): vscode.Disposable {
  return vscode.languages.registerOnTypeFormattingEditProvider(selector, { provideOnTypeFormattingEdits: indent }, '\n')
}
