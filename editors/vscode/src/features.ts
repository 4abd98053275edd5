// The features of the extension: made once, and registered with VS Code.
import * as vscode from 'vscode'
import { Approvals } from './approval.js'
import { PackagesTree, ThreadsTree } from './browse.js'
import { Debugger } from './debugger.js'
import { DifferenceMarks } from './differences.js'
import { Documents, SCHEME } from './documents.js'
import { Evaluator } from './evaluate.js'
import { askInBox } from './input.js'
import { Inspector } from './inspector.js'
import type { LispError } from './lsp_ext.js'
import { MacroStepper } from './macro_stepper.js'
import { Profiles } from './profile.js'
import { Recordings } from './recordings.js'
import { Repl } from './repl.js'
import { Results } from './results.js'
import { SELECTOR, Server } from './server.js'
import { FrameLinks } from './source.js'
import { StatusBar } from './status.js'
import { Tests } from './testing.js'
import { TracedView } from './traced.js'
import { ImageTree, LogTree, SystemsTree } from './trees.js'
import { registerIndentation } from './typing.js'
import { Unbalanced } from './untrusted.js'
import { Expansions } from './views.js'

/** Registers a command under `consort.editor.` and its name. */
export type Register = (name: string, run: (...args: never[]) => unknown) => void

export class Features {
  readonly log = vscode.window.createOutputChannel('Consort', { log: true })
  readonly output = vscode.window.createOutputChannel('Lisp Output', 'commonlisp')
  readonly server: Server
  readonly results = new Results()
  readonly documents = new Documents()
  readonly evaluator: Evaluator
  readonly repl: Repl
  readonly differences: DifferenceMarks
  readonly expansions: Expansions
  readonly stepper: MacroStepper
  readonly profiles: Profiles
  readonly recordings: Recordings
  readonly inspector: Inspector
  readonly systems: SystemsTree
  readonly image: ImageTree
  readonly logTree: LogTree
  readonly packages: PackagesTree
  readonly threads: ThreadsTree
  readonly traced: TracedView
  readonly tests: Tests
  readonly debugger: Debugger
  /** The error of the result that the document of results shows. */
  openedError: LispError | undefined

  constructor(readonly context: vscode.ExtensionContext) {
    const server = new Server(context, this.log)
    this.server = server
    this.evaluator = new Evaluator(server, this.results, this.output)
    this.repl = new Repl(server, context.workspaceState)
    this.differences = new DifferenceMarks(server, this.evaluator, context.extensionUri)
    this.expansions = new Expansions(server, this.documents)
    this.stepper = new MacroStepper(server)
    this.profiles = new Profiles(server, context.extensionUri)
    this.recordings = new Recordings(server)
    this.inspector = new Inspector(server, this.documents)
    this.systems = new SystemsTree(server)
    this.image = new ImageTree(server)
    this.logTree = new LogTree(server)
    this.packages = new PackagesTree(server)
    this.threads = new ThreadsTree(server)
    this.traced = new TracedView(server)
    this.tests = new Tests(server, this.recordings)
    this.debugger = new Debugger(server)
    this.evaluator.before = () => this.debugger.ready()
    server.input = (wanted, token) => this.repl.input(wanted, token) ?? askInBox(wanted, token)
  }

  /** Registers the features with VS Code, until the extension is deactivated. */
  register(): void {
    const { server, results, documents, systems, image, logTree, packages, threads } = this
    const links = new FrameLinks(server, (where) => ('lineCount' in where ? this.openedError : this.repl.errorIn(where)))
    this.context.subscriptions.push(
      this.log, this.output, server, results, documents, this.stepper, this.repl, this.profiles, systems, image, logTree,
      new StatusBar(server),
      registerIndentation(SELECTOR),
      new Unbalanced(() => void server.start()),
      new Approvals(server, documents),
      this.differences,
      this.debugger,
      this.tests, packages, threads, this.inspector, this.traced,
      threads.view('consort.threads'),
      vscode.window.registerTreeDataProvider('consort.packages', packages),
      vscode.languages.registerDocumentLinkProvider({ scheme: SCHEME, pattern: '/result/**' }, links),
      vscode.window.registerTerminalLinkProvider(links),
      systems.view('consort.systems'),
      vscode.window.registerTreeDataProvider('consort.image', image),
      vscode.window.registerTreeDataProvider('consort.log', logTree),
    )
  }
}
