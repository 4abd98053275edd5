// Going to where a symbol is defined.
import * as vscode from 'vscode'
import type { Range } from './lsp_ext.js'
import { Refused, type Server } from './server.js'

interface Place {
  uri?: string
  file?: string
  range?: Range
  line?: number
  column?: number
}

/** Open the first definition of a symbol; by the server's command where there is one, by the workspace's symbols otherwise. */
export async function goToSymbol(server: Server, symbol: string): Promise<void> {
  const name = symbol.replace(/^\((?:setf|flet|labels|lambda|sb-pcl::fast-method|method)\s+/i, '').replace(/[)\s].*$/, '')
  if (server.can('sourceLocation')) {
    const answer = await server.ask<Place[] | { locations?: Place[]; definitions?: Place[] }>('sourceLocation', { symbol: name })
    const places = Array.isArray(answer) ? answer : (answer.locations ?? answer.definitions ?? [])
    const place = places.find((place) => place.uri !== undefined || place.file !== undefined)
    if (place !== undefined) {
      const uri = place.uri === undefined ? vscode.Uri.file(place.file ?? '') : vscode.Uri.parse(place.uri)
      const start = place.range?.start ?? { line: (place.line ?? 1) - 1, character: (place.column ?? 1) - 1 }
      await vscode.window.showTextDocument(uri, { viewColumn: vscode.ViewColumn.One, selection: new vscode.Range(start.line, start.character, start.line, start.character) })
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
    await vscode.window.showTextDocument(file, { viewColumn: vscode.ViewColumn.One, selection: new vscode.Range(line, 0, line, 0) })
    return
  }
  throw new Refused(`No definition of ${symbol} was found in the workspace.`, undefined)
}
