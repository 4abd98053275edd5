// The extension's features, put together.
import * as vscode from 'vscode'
import { copyConfiguration, registerMcpServer } from './agents.js'
import { Approvals } from './approval.js'
import { apropos } from './apropos.js'
import { PackagesTree, ThreadsTree } from './browse.js'
import { compileAndLoad } from './compiling.js'
import { Debugger } from './debugger.js'
import { Documents, SCHEME } from './documents.js'
import { DifferenceMarks } from './differences.js'
import { chosenText, Evaluator, lispEditor, placeHere, type What } from './evaluate.js'
import { label, reportText, testText } from './format.js'
import type { Sourced } from './frames.js'
import { failures, tellOfTests } from './frozen.js'
import { askInBox } from './input.js'
import { Inspector, type Inspecting } from './inspector.js'
import { keySheet, type Contributions } from './keys.js'
import type { ImageState, LispError, Name, Recompiled, Status, TestReport, Thread, Told } from './lsp_ext.js'
import { MacroStepper } from './macro_stepper.js'
import { moveDefinition } from './moving.js'
import { openManual, referencesByKind } from './names.js'
import { newProject, showNewProject } from './new_project.js'
import { Profiles } from './profile.js'
import { Recordings } from './recordings.js'
import { Repl } from './repl.js'
import { Results } from './results.js'
import { scratch } from './scratch.js'
import { complain, isLisp, SELECTOR, Server } from './server.js'
import { FrameLinks, goToFrame, goToSymbol } from './source.js'
import { registerState } from './state.js'
import { currentPackage, readIn, showMenu, StatusBar } from './status.js'
import { ACTIONS, deleteStrictly, structure } from './structure.js'
import { TracedView } from './traced.js'
import { Tests } from './testing.js'
import { chooseSystem, ImageTree, loadSystem, LogTree, SystemsTree, type System } from './trees.js'
import { registerIndentation } from './typing.js'
import { undefine } from './undefine.js'
import { runReload, undoReload } from './undo.js'
import { Unbalanced } from './untrusted.js'
import { Expansions, named, tell } from './views.js'

export function activate(context: vscode.ExtensionContext): { server: Server } {
  const begun = performance.now()
  const log = vscode.window.createOutputChannel('Consort', { log: true })
  const output = vscode.window.createOutputChannel('Lisp Output', 'commonlisp')
  const server = new Server(context, log)
  const results = new Results()
  const documents = new Documents()
  const evaluator = new Evaluator(server, results, output)
  const repl = new Repl(server, context.workspaceState)
  const differences = new DifferenceMarks(server, evaluator, context.extensionUri)
  const expansions = new Expansions(server, documents)
  const stepper = new MacroStepper(server)
  const profiles = new Profiles(server, context.extensionUri)
  const recordings = new Recordings(server)
  const inspector = new Inspector(server, documents)
  const systems = new SystemsTree(server)
  const image = new ImageTree(server)
  const logTree = new LogTree(server)
  const packages = new PackagesTree(server)
  const threads = new ThreadsTree(server)
  const traced = new TracedView(server)
  const tests = new Tests(server, recordings)
  // The error of the result that the document of results shows.
  let opened: LispError | undefined
  const links = new FrameLinks(server, (where) => ('lineCount' in where ? opened : repl.errorIn(where)))
  const lispDebugger = new Debugger(server)
  evaluator.before = () => lispDebugger.ready()
  context.subscriptions.push(
    log, output, server, results, documents, stepper, repl, profiles, systems, image, logTree,
    new StatusBar(server),
    registerIndentation(SELECTOR),
    new Unbalanced(() => void server.start()),
    new Approvals(server, documents),
    differences,
    lispDebugger,
    tests, packages, threads, inspector, traced,
    threads.view('consort.threads'),
    vscode.window.registerTreeDataProvider('consort.packages', packages),
    vscode.languages.registerDocumentLinkProvider({ scheme: SCHEME, pattern: '/result/**' }, links),
    vscode.window.registerTerminalLinkProvider(links),
    systems.view('consort.systems'),
    vscode.window.registerTreeDataProvider('consort.image', image),
    vscode.window.registerTreeDataProvider('consort.log', logTree),
  )
  context.subscriptions.push(registerState(server, () => tests.isRunning))
  registerMcpServer(context, server)
  server.input = (wanted, token) => repl.input(wanted, token) ?? askInBox(wanted, token)

  const command = (name: string, run: (...args: never[]) => unknown): void => {
    context.subscriptions.push(vscode.commands.registerCommand(`consort.editor.${name}`, run))
  }
  /**
   * Registers a command that changes definitions. Its report is shown beside the editor if it says
   * more than that the command worked.
   */
  const reload = (name: string, ask: Name, argument: (given?: System) => Promise<object | undefined> | object | undefined): void =>
    command(name, async (given?: System) => {
      try {
        const what = await argument(given)
        if (what === undefined) return
        const isUndo = ask === 'undoReload'
        const report = isUndo ? await undoReload(server) : await compileAndLoad(server, ask, what)
        if (report === undefined) return
        vscode.window.setStatusBarMessage(`$(check) ${isUndo ? 'Undone: ' : ''}${label(report.what)}`, 4000)
        const notable = [report.gone, report.stale, report.layouts, report.not_undone, report.warnings, report.errors ?? []].some((list) => list.length > 0)
        if (ask === 'compileForm' && report.stale.length > 0) void offerUsers(report.stale.length, what)
        if (notable || ask === 'reloadSystem' || ask === 'reloadPackage') await documents.open('report/reload.txt', `${reportText(report, isUndo)}\n`, { language: 'plaintext' })
      } catch (error) {
        complain(error)
      }
    })
  /** Compiles the users of a definition again. */
  const recompile = async (place: object | undefined): Promise<void> => {
    if (place === undefined) return
    try {
      const done = await runReload<Recompiled>(server, 'recompileCallers', place)
      await documents.open('report/callers.txt', `${done.text}\n`, { language: 'plaintext' })
    } catch (error) {
      complain(error)
    }
  }
  const offerUsers = async (count: number, place: object): Promise<void> => {
    const again = 'Compile Them'
    const still = count === 1 ? '1 definition still holds the old code.' : `${count} definitions still hold the old code.`
    if ((await vscode.window.showInformationMessage(still, again)) === again) await recompile(place)
  }
  const trace = (name: 'trace' | 'untrace', title: string): void =>
    command(name, async () => {
      try {
        const argument = await named(title)
        if (argument === undefined) return
        vscode.window.setStatusBarMessage(`$(check) ${label((await server.run<Told>(name, argument)).text)}`, 5000)
        if (name === 'trace') await traced.show()
      } catch (error) {
        complain(error)
      }
    })
  const evaluate = (name: string, what: What): void => command(name, () => evaluator.evaluate(what))
  const here = placeHere

  evaluate('evalForm', 'form')
  evaluate('evalTopLevelForm', 'top-level')
  evaluate('evalSelection', 'region')
  evaluate('evalBuffer', 'buffer')
  evaluate('evalToCursor', 'to-cursor')
  command('evalToComment', () => evaluator.evaluateToComment())
  command('loadFile', () => evaluator.loadFile())
  command('clearResults', () => results.clear())
  command('copyResult', async () => {
    if (results.lastValue !== undefined) await vscode.env.clipboard.writeText(results.lastValue)
    vscode.window.setStatusBarMessage(results.lastValue === undefined ? 'Nothing was evaluated yet' : 'Copied', 2000)
  })
  command('goToFrame', (frame: Sourced, callee?: string | null) => goToFrame(server, frame, callee ?? undefined).catch(complain))
  command('openSymbol', (symbol: Parameters<PackagesTree['open']>[0]) => packages.open(symbol))
  command('interruptThread', (thread?: Thread) => threads.stop('interruptThread', thread))
  command('killThread', (thread?: Thread) => threads.stop('killThread', thread))
  command('testSystem', async (system?: System) => {
    const name = system?.name ?? (await chooseSystem('Test a System'))
    if (name !== undefined) await tests.runSystem(name)
  })
  command('copyText', (text: string) => vscode.env.clipboard.writeText(text))
  command('openResult', (text?: string, error?: LispError | null) => {
    opened = (typeof text === 'string' ? error : results.lastError) ?? undefined
    const shown = typeof text === 'string' ? text : results.lastText
    return shown === undefined ? undefined : documents.open('result/result.lisp', `${shown}\n`)
  })
  command('interrupt', async () => {
    try {
      const { interrupted } = await server.ask<{ interrupted: number }>('interrupt', {})
      vscode.window.setStatusBarMessage(interrupted === 0 ? 'Nothing was running' : 'Interrupted', 3000)
    } catch (error) {
      complain(error)
    }
  })
  command('restart', async () => {
    // The new image may have given results before the request is answered.
    const old = results.present()
    try {
      const options = { location: vscode.ProgressLocation.Window, title: 'Restarting Lisp' }
      await vscode.window.withProgress(options, () => server.ask<ImageState>('restartImage', {}))
      old.clear()
    } catch (error) {
      complain(error)
    }
  })
  command('restartServer', () => server.start())
  command('showLog', () => log.show(true))
  command('showOutput', () => output.show(true))
  command('menu', () => showMenu(server))
  command('walkthrough', () => vscode.commands.executeCommand('workbench.action.openWalkthrough', `${context.extension.id}#consort.start`, false))
  command('newProject', (given?: Parameters<typeof newProject>[1]) => newProject(context.globalState, given))
  command('keys', () => {
    const { contributes } = context.extension.packageJSON as { contributes: Contributions }
    const slime = vscode.workspace.getConfiguration('consort').get<string>('keys') === 'slime'
    return documents.open('keys/keys.txt', keySheet(contributes, slime, vscode.workspace.getConfiguration('consort').get('structure.strict') === true), { language: 'plaintext' })
  })
  command('doctor', () => inTerminal('Consort Doctor', server, 'doctor'))
  command('status', async () => {
    try {
      await documents.open('status/status.json', JSON.stringify(await server.ask<Status>('status'), null, 2), { language: 'json' })
    } catch (error) {
      complain(error)
    }
  })

  command('loadChanged', async () => {
    const document = lispEditor()?.document
    if (document !== undefined) await differences.load(document).catch(complain)
  })
  command('repl', () => repl.show())
  command('sendToRepl', () => {
    const chosen = chosenText(({ selection }) => (selection.isEmpty ? 'top-level' : 'region'))
    if (chosen !== undefined) repl.send(chosen.editor.document.getText(chosen.range))
  })

  command('loadSystem', (system?: System) => loadSystem(server, systems, system, output))
  reload('reloadSystem', 'reloadSystem', async (given) => {
    const system = given?.name ?? (await chooseSystem('Reload a System'))
    return system === undefined ? undefined : { system }
  })
  reload('reloadPackage', 'reloadPackage', async () => {
    const name = await vscode.window.showInputBox({ title: 'Reload a Package', value: currentPackage() ?? '' })
    return name === undefined || name === '' ? undefined : { package: name }
  })
  command('packageManual', async () => {
    const name = await vscode.window.showInputBox({ title: 'Documentation of a Package or System', value: currentPackage() ?? '' })
    if (name !== undefined && name.trim() !== '') await tell(server, documents, 'packageManual', name.trim())
  })
  reload('undoReload', 'undoReload', () => ({}))
  reload('compileForm', 'compileForm', here)
  reload('compileFormForDebugging', 'compileForm', () => {
    const place = here()
    return place && { ...place, debug: true }
  })
  reload('compileFileForDebugging', 'compileFile', () => {
    const place = here()
    return place && { uri: place.uri, debug: true }
  })
  reload('compileFile', 'compileFile', () => {
    const place = here()
    return place && { uri: place.uri }
  })
  command('recompileCallers', () => recompile(here()))
  command('undefine', async () => {
    const place = here()
    if (place !== undefined) await undefine(server, place).catch(complain)
  })
  command('moveDefinition', async () => {
    const place = here()
    const document = vscode.window.activeTextEditor?.document
    if (place !== undefined && document !== undefined) await moveDefinition(server, document, place).catch(complain)
  })
  command('callInRepl', async () => {
    const place = here()
    if (place !== undefined) await repl.call(place).catch(complain)
  })
  command('apropos', () => apropos(server, documents))
  command('scratch', () => scratch())
  trace('trace', 'Trace a function')
  trace('untrace', 'Untrace a function')
  command('tracePackage', async () => {
    const name = await vscode.window.showInputBox({ title: 'Trace a Package', prompt: 'All of its own functions', value: currentPackage() ?? '' })
    if (name === undefined || name === '') return
    try {
      vscode.window.setStatusBarMessage(`$(check) ${label((await server.run<Told>('trace', { package: name })).text)}`, 5000)
      await traced.show()
    } catch (error) {
      complain(error)
    }
  })
  command('untraceAll', async () => {
    try {
      vscode.window.setStatusBarMessage(`$(check) ${label((await server.run<Told>('untrace', {})).text)}`, 5000)
    } catch (error) {
      complain(error)
    }
  })
  command('traced', () => traced.show())
  command('tracedClear', () => traced.clear().catch(complain))
  command('runTestAtPoint', async () => {
    const place = here()
    if (place === undefined) return
    try {
      const report = await server.run<TestReport>('runTestAtPoint', place)
      if (report.success) vscode.window.setStatusBarMessage(`$(pass) ${report.passed} passed`, 5000)
      else {
        await documents.open('report/test.txt', testText(report), { language: 'plaintext' })
        void tellOfTests(server, report).catch(complain)
      }
    } catch (error) {
      complain(error)
    }
  })

  command('macroexpand', () => expansions.expand('one'))
  command('macroexpandFull', () => expansions.expand('full'))
  command('expandCompilerMacro', () => expansions.expand('compiler'))
  command('expandFurther', () => expansions.further())
  command('expandBack', () => expansions.back())
  command('expandInPlace', () => expansions.inPlace())
  command('macrostep', () => stepper.step().catch(complain))
  command('macrostepExpand', () => stepper.step().catch(complain))
  command('macrostepCollapse', () => stepper.collapse().catch(complain))
  command('macrostepNext', () => stepper.go(true).catch(complain))
  command('macrostepPrevious', () => stepper.go(false).catch(complain))
  command('macrostepQuit', () => stepper.quit().catch(complain))
  command('describe', () => tell(server, documents, 'describe'))
  command('disassemble', () => tell(server, documents, 'disassemble'))
  command('hyperspec', () => openManual(server))
  command('referencesByKind', () => referencesByKind(server))
  command('profile', () => profiles.profileForm())
  command('recordForm', () => recordings.recordForm())
  command('recordNextCall', () => recordings.recordNextCall())
  command('stepRecording', () => recordings.stepThroughLast())
  command('recordTest', (test?: vscode.TestItem) => tests.recordTest(test).catch(complain))
  command('inspect', () => inspector.ask().catch(complain))
  command('inspectResult', (text: string, reference: number) => inspector.open('result', { text, type: null, reference }).catch(complain))
  command('inspectInto', (row?: Inspecting) => inspector.into(row).catch(complain))
  command('inspectBack', () => inspector.back().catch(complain))
  command('inspectRefresh', () => inspector.refresh())
  command('inspectSet', (row?: Inspecting) => inspector.set(row).catch(complain))
  command('inspectEval', (row?: Inspecting) => inspector.evaluate(row).catch(complain))
  command('inspectTable', (row?: Inspecting) => inspector.table(row).catch(complain))
  command('inspectDefinition', (row?: Inspecting) => inspector.definition(row).catch(complain))
  command('inspectDescribe', (row?: Inspecting) => inspector.describe(row).catch(complain))
  command('inspectCompare', (row?: Inspecting) => inspector.compare(row).catch(complain))
  command('inspectCopy', (row?: Inspecting) => inspector.copy(row).catch(complain))
  command('failures', (failure?: unknown) => failures(server, failure).catch(complain))
  command('goToDefinition', async () => {
    const editor = vscode.window.activeTextEditor
    const range = editor?.document.getWordRangeAtPosition(editor.selection.active)
    const name = await vscode.window.showInputBox({ title: 'Go to a definition', prompt: 'A symbol', value: range && editor ? editor.document.getText(range) : '' })
    if (name !== undefined && name !== '') await goToSymbol(server, name, readIn(name)).catch(complain)
  })
  for (const action of Object.keys(ACTIONS) as (keyof typeof ACTIONS)[]) {
    const strict = action === 'deleteForward' || action === 'deleteBackward'
    command(`structure.${action}`, () => strict ? deleteStrictly(server, action) : structure(server, action))
  }
  command('copyAgentConfiguration', () => copyConfiguration(context, server))
  command('refresh', () => {
    systems.refresh()
    image.refresh()
    logTree.refresh()
    packages.refresh()
    threads.refresh()
  })

  // The position of the person, for the agent. Not sent at each keystroke.
  let contextTimer: NodeJS.Timeout | undefined
  const tellContext = (): void => {
    clearTimeout(contextTimer)
    contextTimer = setTimeout(() => {
      const editor = vscode.window.activeTextEditor
      const visible = editor?.visibleRanges[0]
      if (editor === undefined || visible === undefined || !isLisp(editor.document) || !server.can('editorContext')) return
      const selection = { start: editor.selection.start, end: editor.selection.end }
      const visibleRange = { start: visible.start, end: visible.end }
      void server.ask('editorContext', { uri: editor.document.uri.toString(), selection, visibleRange }).catch(() => undefined)
    }, 300)
  }
  const watcher = vscode.workspace.createFileSystemWatcher('**/*.asd')
  context.subscriptions.push(
    { dispose: () => clearTimeout(contextTimer) },
    vscode.window.onDidChangeActiveTextEditor(tellContext),
    vscode.window.onDidChangeTextEditorSelection(tellContext),
    watcher,
    watcher.onDidCreate(() => systems.refresh()),
    watcher.onDidDelete(() => systems.refresh()),
    watcher.onDidChange(() => systems.refresh()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('consort.server')) void server.start()
    }),
  )
  void showNewProject(context.globalState).catch(complain)
  // Activation does not wait for Lisp.
  void server.start()
  log.info(`activated in ${(performance.now() - begun).toFixed(0)} ms`)
  return { server }
}

function inTerminal(name: string, server: Server, argument: string): void {
  if (server.found === undefined) {
    void vscode.commands.executeCommand('consort.editor.walkthrough')
    return
  }
  const options: vscode.TerminalOptions = { name, ...(server.folder === undefined ? {} : { cwd: server.folder }) }
  const terminal = vscode.window.createTerminal(options)
  terminal.show(true)
  terminal.sendText(`'${server.found.path.replaceAll("'", "'\\''")}' ${argument}`)
}
