// Going to where a symbol is defined.
import * as vscode from 'vscode'
import { toRange } from './convert.js'
import type { SourceLocations } from './lsp_ext.js'
import { Refused, type Server } from './server.js'

/** Open the first definition of a symbol; by the server's command where there is one, by the workspace's symbols otherwise. */
export async function goToSymbol(server: Server, symbol: string): Promise<void> {
  const name = symbol.replace(/^\((?:setf|flet|labels|lambda|sb-pcl::fast-method|method)\s+/i, '').replace(/[)\s].*$/, '')
  if (server.can('sourceLocation')) {
    const answer = await server.ask<SourceLocations>('sourceLocation', { symbol: name })
    const place = answer.definitions.find(({ location }) => location != null)?.location
    if (place != null) {
      const { start } = toRange(place.range)
      await vscode.window.showTextDocument(vscode.Uri.parse(place.uri), { viewColumn: vscode.ViewColumn.One, selection: new vscode.Range(start, start) })
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
