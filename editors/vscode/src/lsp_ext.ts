// What Consort adds to LSP, in types: docs/protocol.md of the server says what each means. Positions are LSP's.

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
  | { state: 'starting'; what: string }
  | { state: 'ready'; pid: number; image: string; lisp: string }
  | { state: 'dead'; reason: string; final: boolean }

export interface LispError {
  type: string
  message: string
  backtrace: string[]
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
  /** Of the form that was evaluated; the commands that find it themselves. */
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

/** The answer of `consort.status`. */
export interface Status {
  workspace: string
  host_pid: number
  version: string
  host_memory: number | null
  image: ImageState
  clients: { door: string; name: string }[]
  work: string[]
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
  selection?: Range | null
}

/** The commands by which the extension asks the server for something. What a server does not announce is not offered. */
export const COMMANDS = [
  'eval', 'evalForm', 'evalRegion', 'evalBuffer', 'evalToComment', 'loadSystem', 'restartImage', 'interrupt', 'status', 'macroexpand',
  'profileForm', 'disassemble', 'describe', 'trace', 'untrace', 'runTests', 'runTestAtPoint', 'reloadSystem', 'reloadPackage',
  'undoReload', 'compileForm', 'compileFile', 'loadFile', 'sourceLocation', 'structure', 'log', 'editorContext',
] as const
export type Name = (typeof COMMANDS)[number]

/** An answer of `consort.macroexpand`. What else it tells is not needed here. */
export interface Expansion {
  expansion?: string
  text?: string
  range?: Range
  changed?: boolean
  expanded?: boolean
  error?: LispError | null
}

/** An answer of `consort.profileForm`. */
export interface Profile {
  mode?: string
  samples?: number
  interval?: number
  duration?: number
  rows?: ProfileRow[]
  /** `a;b;c N`, outermost first. */
  folded?: string[] | string
  warning?: string | null
  result?: string
  error?: LispError | null
}
export interface ProfileRow {
  function: string
  samples: number
  bytes?: number | null
  /** Per cent. */
  self?: number
  cumulative?: number
}

/** An answer of `consort.runTests`. */
export interface TestReport {
  tests?: TestOutcome[]
  passed?: number
  failed?: number
  error?: LispError | null
}
export interface TestOutcome {
  name: string
  suite?: string | null
  system?: string | null
  status: 'passed' | 'failed' | 'error' | 'skipped'
  message?: string | null
  uri?: string | null
  range?: Range | null
  milliseconds?: number | null
}

/** An answer of `consort.log`. */
export interface LogEntry {
  time?: string
  who?: string
  client?: string
  door?: string
  kind?: string
  what?: string
  text?: string
}
