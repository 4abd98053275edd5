// Profiles: a table and a flame graph, in a webview that loads nothing but its own script.
import { randomBytes } from 'node:crypto'
import * as vscode from 'vscode'
import { plain } from './convert.js'
import { lispEditor } from './evaluate.js'
import { treeOf } from './folded.js'
import { label } from './format.js'
import type { Profile, ProfileAnswer } from './lsp_ext.js'
import { complain, type Server } from './server.js'
import { goToSymbol } from './source.js'

export class Profiles implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined
  constructor(
    private readonly server: Server,
    private readonly extension: vscode.Uri,
  ) {}
  dispose(): void {
    this.panel?.dispose()
  }

  async profileForm(): Promise<void> {
    const editor = lispEditor()
    if (editor === undefined) return
    const modes = [
      { label: 'CPU time', mode: 'cpu', detail: 'Where the processor is busy' },
      { label: 'Elapsed time', mode: 'time', detail: 'Waiting counts too' },
      { label: 'Allocation', mode: 'alloc', detail: 'What allocates memory' },
    ]
    const chosen = await vscode.window.showQuickPick(modes, { title: 'Profile the top-level form', placeHolder: 'What is measured' })
    if (chosen === undefined) return
    try {
      const argument = { uri: editor.document.uri.toString(), position: plain(editor.selection.active), mode: chosen.mode }
      const title = 'Profiling the form'
      const { profile } = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, (_, token) =>
        this.server.run<ProfileAnswer>('profileForm', argument, undefined, token),
      )
      if (profile.error != null) throw new Error(`${profile.error.type}: ${profile.error.message}`)
      this.show(profile)
    } catch (error) {
      complain(error)
    }
  }

  show(profile: Profile): void {
    if (this.panel === undefined) {
      this.panel = vscode.window.createWebviewPanel('consort.profile', 'Lisp Profile', { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true }, {
        enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.extension, 'dist')], retainContextWhenHidden: true,
      })
      this.panel.onDidDispose(() => (this.panel = undefined))
      this.panel.webview.onDidReceiveMessage((message: { symbol?: string; quiet?: boolean }) => {
        if (message.symbol !== undefined) void goToSymbol(this.server, message.symbol).catch(message.quiet === true ? () => vscode.window.setStatusBarMessage(`No source of ${label(message.symbol ?? '')} is known`, 3000) : complain)
      })
    }
    const { webview } = this.panel
    const script = webview.asWebviewUri(vscode.Uri.joinPath(this.extension, 'dist', 'profile.js'))
    const nonce = randomBytes(16).toString('hex')
    const data = JSON.stringify({ profile: { ...profile, folded: undefined }, tree: treeOf(profile.folded) }).replaceAll('<', '\\u003c')
    webview.html = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-${nonce}'; style-src ${webview.cspSource} 'unsafe-inline';">
<title>Lisp Profile</title></head>
<body><script type="application/json" id="data">${data}</script><main id="main"></main><script nonce="${nonce}" src="${script.toString()}"></script></body></html>`
    this.panel.reveal(undefined, true)
  }
}
