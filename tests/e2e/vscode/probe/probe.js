// An extension of the tests alone: tells over loopback what the editor and Consort's extension
// know, which a picture shows later or not at all. $CONSORT_PROBE names the file that gets its port
// and its process.
const http = require('node:http')
const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const vscode = require('vscode')

const place = (document) => document && { uri: document.uri.toString(), version: document.version, dirty: document.isDirty, text: document.getText() }

/**
 * The editor's state, and below `consort` what Consort's extension says of itself; undefined before
 * that is active.
 */
async function state() {
  const editor = vscode.window.activeTextEditor
  return {
    pid: process.pid,
    consort: await Promise.resolve(vscode.commands.executeCommand('_consort.state')).catch(() => undefined),
    active: editor && {
      ...place(editor.document),
      selection: editor.selection,
      line: editor.document.lineAt(editor.selection.active.line).text,
    },
    documents: vscode.workspace.textDocuments.filter(({ uri }) => ['file', 'consort', 'consort-macrostep', 'untitled'].includes(uri.scheme)).map(place),
    tabs: vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ label }) => label)),
    terminals: vscode.window.terminals.map(({ name }) => name),
    debugging: vscode.debug.activeDebugSession !== undefined,
    breakpoints: vscode.debug.breakpoints.length,
    onError: vscode.workspace.getConfiguration('consort').inspect('debug.on_error')?.globalValue,
    diagnostics: vscode.languages.getDiagnostics().flatMap(([uri, found]) => found.map(({ message, range }) => ({ uri: uri.toString(), message, range }))),
  }
}

/** True if a document is not as its file is. */
function differs({ isDirty, uri, getText }) {
  if (isDirty || uri.scheme !== 'file' || !existsSync(uri.fsPath)) return isDirty
  return getText() !== readFileSync(uri.fsPath, 'utf8')
}

const calls = {
  state,
  /** At its first line. */
  async open({ path }) {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path))
    const editor = await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.One, preview: false, selection: new vscode.Range(0, 0, 0, 0) })
    editor.revealRange(new vscode.Range(0, 0, 0, 0), vscode.TextEditorRevealType.AtTop)
  },
  async execute({ command, args }) {
    return (await vscode.commands.executeCommand(command, ...args)) ?? null
  },
  async set({ section, key, value }) {
    const settings = vscode.workspace.getConfiguration(section)
    if (settings.inspect(key)?.globalValue !== value) await settings.update(key, value, vscode.ConfigurationTarget.Global)
  },
  /**
   * No editor, terminal, session, breakpoint or unsaved text is left, and no text that its file has
   * not.
   */
  async clear() {
    if (vscode.debug.activeDebugSession !== undefined) await vscode.debug.stopDebugging()
    vscode.debug.removeBreakpoints(vscode.debug.breakpoints)
    for (const document of vscode.workspace.textDocuments.filter(differs)) {
      await vscode.window.showTextDocument(document)
      // One in no file that began with a text is unsaved as long as it is open.
      await vscode.commands.executeCommand(document.isUntitled ? 'workbench.action.revertAndCloseActiveEditor' : 'workbench.action.files.revert')
    }
    await vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs))
    for (const terminal of vscode.window.terminals) terminal.dispose()
    for (const command of ['workbench.action.closePanel', 'workbench.view.explorer', 'notifications.clearAll']) await vscode.commands.executeCommand(command)
  },
}

exports.activate = () => {
  const server = http.createServer((request, response) => {
    let body = ''
    request.on('data', (data) => (body += data)).on('end', async () => {
      try {
        const { call, ...argument } = JSON.parse(body)
        response.end(JSON.stringify({ answer: (await calls[call](argument)) ?? null }))
      } catch (error) {
        response.end(JSON.stringify({ error: String(error?.stack ?? error) }))
      }
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const file = process.env.CONSORT_PROBE
    writeFileSync(`${file}.new`, JSON.stringify({ port: server.address().port, pid: process.pid }))
    renameSync(`${file}.new`, file)
  })
  return { dispose: () => server.close() }
}
