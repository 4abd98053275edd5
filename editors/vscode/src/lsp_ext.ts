// The types of Consort's extensions of LSP: docs/protocol.md of the server describes each.
// Positions are LSP's.

export interface Position {
  line: number
  character: number
}
export interface Range {
  start: Position
  end: Position
}

/** `consort/imageState`, and the answer of `consort.restartImage`. */
export type ImageState =
  | { state: 'idle' }
  | { state: 'starting'; what: string }
  | { state: 'ready'; pid: number; image: string; lisp: string }
  | { state: 'dead'; reason: string; final: boolean }

/** A frame of a backtrace. */
export interface StackFrame {
  /** The call as printed: `(SHOP::PRICE 3)`. */
  text: string
  /** The definition that it is in: `SHOP::PRICE`, `(SETF SHOP::PRICE)`. */
  name: string | null
  /** The qualifiers and specializers of a method: `:AROUND (SHOP::BOOK)`. */
  method: string | null
  role: 'program' | 'signal' | 'standard' | 'internal'
  args: string[]
  file: string | null
  /** From 1; null when the file is not as it was loaded. */
  line: number | null
}
export interface LispError {
  type: string
  message: string
  /** The function whose call failed and left no frame of its own. */
  operation: string | null
  backtrace: StackFrame[]
}
export interface Timing {
  real_ms: number
  run_ms: number
  gc_ms: number
  bytes: number
}
/** The answer of `consort.eval` and of everything else that evaluates. */
export interface EvalResult {
  status: 'ok' | 'error' | 'timeout' | 'interrupted'
  values: string[]
  stdout: string
  stderr: string
  omitted: number
  warnings: unknown[]
  error: LispError | null
  timing: Timing | null
  package: string
  /** The references to the values, for inspecting them; 0 for a value without parts. */
  references?: number[]
  /** The frozen failure of the error. */
  failure?: { number: number }
  /** The range of the form that was evaluated, for the commands that find it themselves. */
  range?: Range
}
export interface LoadResult extends EvalResult {
  loaded: boolean
}

/** `consort/output`. */
export interface Output {
  token: string | number
  stream: 'stdout' | 'stderr'
  text: string
}

/** The notifications about an evaluation before its answer. */
export interface EvaluationListener {
  /** `consort/begun`. */
  begun?: () => void
  output: (output: Output) => void
}

/** The request `consort/input`: running code reads a line. */
export interface InputWanted {
  id: number
  /** The command that runs the code: `consort.eval` in the REPL. */
  command: string
  /** The last line of the output so far. */
  prompt: string
}
/** Null is end of file. */
export type InputLine = { text: string } | null

/** The answer of `consort.status`. */
export interface Status {
  workspace: string
  host_pid: number
  version: string
  host_memory: number | null
  image: ImageState & { facts?: { systems?: string[]; dynamic_usage?: number } | null }
  clients: { frontend: string; name: string }[]
  work: string[]
}

/** A frozen failure, in the answer of `consort.status`. */
export interface Failure {
  failure: number
  session: string
  type: string
  message: string
  seconds: number
}

/** The request `consort/approve`: an agent's call waits for a person. */
export interface Approval {
  id: string | number
  client: string
  tool: string
  class: string
  what: string
  file?: string | null
  code?: string | null
  arguments?: unknown
  /** The question, in words for a person. */
  message?: string | null
  deadlineSeconds: number
}
export type Decision = 'allow' | 'allow-session' | 'deny'

/** An answer of `consort.structure`. */
export interface Structure {
  edits: { range: Range; newText: string }[]
  /** In the text afterwards. */
  selection?: Range | null
}

/**
 * The server's commands that the extension uses. One that the server does not announce is not
 * offered.
 */
export const COMMANDS = [
  'eval', 'evalForm', 'evalRegion', 'differences', 'evalBuffer', 'evalToCursor', 'evalToComment', 'loadSystem', 'restartImage', 'interrupt', 'status', 'macroexpand', 'macrostep', 'macroCalls',
  'profileForm', 'record', 'recordingQuery', 'inspect', 'inspectTable', 'inspectCompare', 'inspectEval', 'inspectSet', 'inspectDefinition', 'inspectDescribe', 'disassemble', 'describe', 'hyperspec', 'apropos', 'callTemplate', 'references', 'trace', 'untrace', 'tracedCalls', 'runTests', 'runTestAtPoint', 'reloadSystem', 'reloadPackage',
  'undoReload', 'compileForm', 'recompileCallers', 'moveDestinations', 'moveDefinition', 'removable', 'undefine', 'compileFile', 'loadFile', 'sourceLocation', 'structure', 'log', 'editorContext', 'packages',
  'packageSymbols', 'packageManual', 'complete', 'threads', 'interruptThread', 'killThread',
] as const
export type Name = (typeof COMMANDS)[number]

/** The answer of `consort.moveDestinations`. */
export interface MoveDestinations {
  name: string
  files: { uri: string; path: string }[]
}

/** The answer of `consort.moveDefinition`. */
export interface Moved {
  name: string
  applied: boolean
  note: string | null
}

/** The answer of `consort.apropos`. */
export interface Apropos {
  total: number
  symbols: { name: string; kind: string; lambda_list?: string; summary?: string }[]
}

/** The answer of `consort.callTemplate`. */
export interface CallTemplate {
  /** `(name argument ...)`. */
  text: string
  name: string
  arguments: string[]
}

/** The answer of `consort.differences`. */
export interface Differences {
  version: number
  forms: { range: Range; names: string[]; state: 'changed' | 'new' }[]
}

/** The answer of `consort.macroexpand` and `consort.macrostep`. */
export interface Expansion {
  /** Null when there is an `error`. */
  expansion: string | null
  /** True if anything was a macro call. */
  expanded: boolean
  package: string
  /** The number of characters left out of the expansion. */
  omitted?: number
  range?: Range
  error: { type: string; message: string } | null
  /** With `inPlace`. */
  applied?: boolean
}

/** The answer of `consort.macroCalls`. */
export interface MacroCalls {
  calls: Range[]
  error: { type: string; message: string } | null
}

/** The answer of `consort.profileForm`. */
export interface ProfileAnswer {
  /** The report as an agent gets it. */
  text: string
  profile: Profile
}
export interface Profile {
  status: EvalResult['status']
  values?: string[]
  mode: 'cpu' | 'time' | 'alloc'
  samples: number
  seconds: number
  rows: { function: string; samples: number; self_percent: number; inclusive_percent?: number }[]
  /** `a;b;c N`, outermost first. */
  folded: string[]
  error?: LispError | null
}

/** The answer of `consort.record`. */
export interface RecordAnswer {
  text: string
  recording: {
    /** The recording's number; 0 if nothing is kept. */
    recording: number
    /** The number of recorded calls. */
    calls: number
    outcome: { values: string[]; error?: LispError | null }
    answer: RecordingAnswer
  }
}
/** The answer of a recording. */
export interface RecordingAnswer {
  rows: RecordedRow[]
  total: number
  event?: number
}
export interface RecordedRow {
  kind: string
  text: string
  value?: string
  event?: number
  depth?: number
  file?: string
  /** From 1: the line and the column of the start and of the end. */
  position?: [number, number, number, number]
}

/** A value as the inspector has it. */
export interface InspectedValue {
  text: string
  type: string | null
  /** 0 for a value without parts. */
  reference: number
}
/** The answer of `consort.inspect`. */
export interface Inspected {
  value: InspectedValue
  kind: string
  note: string | null
  total: number
  parts: { label: string; key?: InspectedValue | null; value: InspectedValue; missing: boolean }[]
}
/** A definition of a value, of `consort.inspectDefinition`. */
export interface ValueDefinition {
  kind: string
  name: string
  uri: string
  range: { start: { line: number; character: number }; end: { line: number; character: number } }
}
/** The answer of `consort.inspectDefinition`. */
export interface ValueDefinitions {
  definitions: ValueDefinition[]
}
/** The answer of `consort.inspectDescribe`. */
export interface Described {
  text: string
  error: string | null
}
/** The answer of `consort.inspectTable`. */
export interface ValueTable {
  total: number
  columns: string[]
  rows: { label: string; cells: (InspectedValue | null)[] }[]
}
/** The answer of `consort.inspectCompare`. */
export interface Comparison {
  differences: { path: string[]; one: InspectedValue; other: InspectedValue }[]
  /** True if the values were too large to be compared whole. */
  partial: boolean
}

/** The answer of `consort.describe`, `disassemble`, `trace` and `untrace`. */
export interface Told {
  name: string | null
  text: string
  error?: string | LispError | null
}

/** The answer of `consort.tracedCalls`. */
export interface TracedCalls {
  calls: TracedCall[]
  /** The number of the last call. */
  last: number
  /** The traced names. */
  names: string[]
}
export interface TracedCall {
  call: number
  parent: number | null
  thread: string
  name: string
  arguments: InspectedValue[]
  outcome: 'open' | 'returned' | 'left'
  values: InspectedValue[]
}

/** The answer of `consort.hyperspec`. */
export interface ManualPage {
  manual: string
  url: string
}

/** The answer of `consort.references`. */
export interface References {
  name: string
  /** All kinds, those that people ask for first. */
  kinds: string[]
  references: { kind: string; by: string | null; uri: string; range: Range }[]
}

/** The answer of `consort.runTests` and `consort.runTestAtPoint`. */
export interface TestReport {
  status: string
  success: boolean
  passed: number
  failed: number
  errors: number
  text: string
  /** The output of the compiler and the tests. */
  output?: string | null
  tests: TestOutcome[]
}
export interface TestOutcome {
  name: string
  suite: string | null
  status: 'passed' | 'failed' | 'error' | 'skipped'
  milliseconds: number | null
  file?: string | null
  /** From 1. */
  line?: number | null
  failures: { message: string; expected?: string | null; actual?: string | null }[]
  /** The number of the frozen failure. */
  failure?: number
  output?: string | null
}

/** The answer of everything that reloads. */
export interface ReloadReport {
  what: string
  files: string[]
  redefined: string[]
  new: string[]
  gone: unknown[]
  stale: unknown[]
  layouts: unknown[]
  /** The errors of forms that were loaded although they do not compile. */
  errors?: string[]
  not_undone: unknown[]
  warnings: unknown[]
  output: string
  undoable: number
}

/** `data` of the error of a command. */
export interface ErrorData {
  kind?: string
  type?: string
  /** The reason, where the message of the error names only what failed. */
  message?: string
  /** From 1; the column in characters. Without a file, in the document of the request. */
  location?: { file?: string; line?: number; column?: number }
  /** The text cannot be read, so that nothing of it can be loaded anyway. */
  unreadable?: boolean
  /** The definitions that should have been restored, and were not. */
  not_undone?: string[]
}

/** The answer of `consort.recompileCallers`. */
export interface Recompiled {
  name: string
  compiled: { name: string; uri: string; range: Range; findings: unknown[] }[]
  left: { name: string; uri: string; range: Range; reason: string }[]
  report: ReloadReport | null
  text: string
}

/** The answer of `consort.removable`. */
export interface Removable {
  name: string
  method: object | null
  parts: { key: string; text: string; lost: string | null }[]
}

/** The answer of `consort.sourceLocation`. */
export interface SourceLocations {
  symbol: string
  definitions: Definition[]
  note?: string | null
}
export interface Definition {
  kind?: string
  name?: string
  location?: { uri: string; range: Range } | null
  form?: Range | null
}

/** `consort/stopped`: an evaluation of this editor, or a thread that one started, has stopped. */
export interface Stopped {
  stop: number
  /** The `threadId` for debuggers. */
  thread: number
  reason: string
  text: string
}

/** `consort/logEntry`, and the entries of `consort.log`. */
export interface LogEntry {
  number: number
  time: string
  client: string
  frontend: string
  tool: string
  code: string | null
  /** The system, function or symbol that it is about. */
  about?: string | null
  status: 'ok' | 'error' | 'cancelled'
  outcome: string | null
  ms: number | null
}

/** The answer of `consort.packages`. */
export interface Packages {
  packages: { name: string; nicknames: string[]; exports: number; own: boolean }[]
}
/** The answer of `consort.packageSymbols`. */
export interface PackageSymbols {
  count: number
  symbols: { name: string; external: boolean; kinds: string[] }[]
}
/** The answer of `consort.complete`, best first. */
export interface Completions {
  items: { label: string; kind: string }[]
  incomplete: boolean
}
/** The answer of `consort.threads`. */
export interface Threads {
  threads: Thread[]
}
export interface Thread {
  number: number
  name: string
  kind: 'user' | 'evaluation' | 'system'
  ms: number | null
}
