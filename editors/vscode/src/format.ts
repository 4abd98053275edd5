// Results as text. Plain data in, text out.
import { backtraceLines } from './frames.js'
import type { ErrorData, EvalResult, LogEntry, ReloadReport, TestReport, Timing } from './lsp_ext.js'

/** A line, at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= limit ? line : `${line.slice(0, limit - 1)}…`
}

/** The columns of a line of an editor. */
export function columns(line: string, tabSize: number): number {
  let at = 0
  for (const char of line) at += char === '\t' ? tabSize - (at % tabSize) : WIDE.test(char) ? 2 : 1
  return at
}

/** Characters that are two columns wide, by their scripts. */
const WIDE = /[\p{scx=Han}\p{scx=Hangul}\p{scx=Hiragana}\p{scx=Katakana}\uff01-\uff60\p{Emoji_Presentation}]/u

/** Lines of at most `width` characters, broken between words. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** The values as text: one a line. */
export function valuesText(result: EvalResult): string {
  return result.values.join('\n')
}

/** The text at the end of the line. */
export function inlineText(result: EvalResult, limit: number): string {
  if (result.status !== 'ok') {
    const error = result.error
    if (result.status === 'interrupted') return '✗ interrupted'
    if (error === null) return `✗ ${result.status}`
    // The rest of the message is in the hover.
    return `✗ ${oneLine(`${error.type}: ${error.message.trim().split('\n')[0] ?? ''}`, limit)}`
  }
  const value = result.values.length === 0 ? 'no value' : oneLine(result.values.join(' ; '), limit)
  const output = result.stdout.trim() === '' ? '' : `  │ ${oneLine(result.stdout, 40)}`
  // Warnings of the compiler or the code are in the hover.
  const warned = result.warnings.length > 0 ? '⚠ ' : ''
  return `${warned}⇒ ${value}${output}`
}

export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`
  const units = ['KB', 'MB', 'GB']
  let value = bytes / 1024
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit] ?? 'KB'}`
}

export function timingText(timing: Timing): string {
  const gc = timing.gc_ms > 0 ? `, ${milliseconds(timing.gc_ms)} of it collecting garbage` : ''
  return `${milliseconds(timing.real_ms)}${gc}, ${bytesText(timing.bytes)} allocated`
}

function milliseconds(ms: number): string {
  if (ms < 1) return '< 1 ms'
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`
}

/**
 * Text of an agent, a file or the image, shown as it is in a notification, a label or a status bar
 * item, where VS Code makes links of `[text](command:...)` and icons of `$(name)`.
 */
export function plain(text: string): string {
  return visible(text).replace(/\]\(/g, ']\\u{28}').replace(/\$\(/g, '$\\u{28}')
}

/** The same in one line, for a row of a tree or list, a status bar item and a title. */
export function label(text: string, limit = 200): string {
  return plain(oneLine(text, limit))
}

/**
 * Text with control, invisible and direction-changing characters escaped as `\u{...}`
 * (`server/src/shown.rs` has the same for the server's messages).
 */
export function visible(text: string): string {
  return text.replace(HIDDEN, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)
}

const HIDDEN = /(?![\n\t])\p{Cc}|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{13430}-\u{1343f}\u{16fe4}\u{1bca0}-\u{1bca3}\u{1d159}\u{e0000}-\u{e0fff}\u{1d173}-\u{1d17a}]/gu

/** Text inside a line of Markdown, shown literally, also where icons are on. */
export function markdown(text: string): string {
  return visible(text).replace(/[\\`*_{}[\]()#+.!|<>~$&-]/g, '\\$&')
}

/** A fenced block that its own text cannot end. */
export function fenced(text: string, language: string, limit = 20_000): string {
  const shown = text.length <= limit ? visible(text) : `${visible(text.slice(0, limit))}\n; … ${text.length - limit} more characters`
  const longest = Math.max(2, ...[...shown.matchAll(/`+/g)].map((run) => run[0].length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${shown}\n${fence}`
}

/** The text of a warning of the server, which is a string or an object. */
export function warningText(warning: unknown): string {
  if (typeof warning === 'string') return warning
  if (typeof warning === 'object' && warning !== null) {
    const { type, message } = warning as { type?: unknown; message?: unknown }
    if (typeof message === 'string') return typeof type === 'string' ? `${type}: ${message}` : message
  }
  return JSON.stringify(warning)
}

/** The whole result as a document. */
export function resultText(result: EvalResult): string {
  const parts: string[] = []
  if (result.error !== null) parts.push(`${result.error.type}: ${result.error.message}`)
  if (result.values.length > 0) parts.push(valuesText(result))
  const section = (title: string, text: string): void => {
    if (text.trim() !== '') parts.push(`;; ${title}\n${text.replace(/\s+$/, '')}`)
  }
  section('Output', result.stdout)
  section('Error output', result.stderr)
  section('Warnings', result.warnings.map(warningText).join('\n'))
  section('Backtrace', backtraceLines(result.error).join('\n'))
  if (result.omitted > 0) parts.push(`;; ${result.omitted} characters were left out.`)
  if (result.timing !== null) parts.push(`;; ${timingText(result.timing)}`)
  return parts.join('\n\n')
}

/** An entry of the log that has no code: the operation, its object and its time. */
export function doneText(entry: LogEntry): string {
  const words = entry.tool.replace(/^consort\./, '').replace(/([A-Z])/g, ' $1').replace(/[-_]/g, ' ').toLowerCase()
  const about = entry.about == null ? '' : ` ${entry.about}`
  const time = entry.ms == null || entry.ms < 100 ? '' : `, ${(entry.ms / 1000).toFixed(1)} s`
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${about}${time}`
}

/** The error of a command: the failure, its reason and place, and changes that were not undone. */
export function errorText(message: string, { message: reason, location = {}, not_undone: left = [] }: ErrorData = {}): string {
  const said = reason === undefined ? message : `${message}: ${reason}`
  const { line } = location
  const file = location.file?.replace(/^.*[/\\]/, '')
  const place = file === undefined ? (line === undefined ? undefined : `line ${line}`) : line === undefined ? file : `${file}:${line}`
  const whole = place === undefined ? said : `${said.trimEnd().replace(/\.$/, '')} (${place})`
  return left.length === 0 ? whole : `${whole.replace(/\.$/, '')}. Could not be put back: ${left.join(', ')}.`
}

/** The outcome of tests after their output; for a system that does not compile, the reason. */
export const testText = ({ output, text }: TestReport): string => [output?.trim() ?? '', text].filter((part) => part !== '').join('\n\n')

/** The outcome of a reload, or of the undoing of one, as a document. */
export function reportText(report: ReloadReport, isUndo = false): string {
  const item = (one: unknown): string => (typeof one === 'string' ? one : warningText(one))
  const part = (title: string, items: unknown[]): string[] => (items.length === 0 ? [] : [`${title}:\n${items.map((one) => `  ${item(one)}`).join('\n')}`])
  // The compiler's progress messages for each file are left out.
  const output = report.output.replace(/^; (?:compiling file|wrote|compilation finished) .*\n?/gm, '').trim()
  return [
    `${isUndo ? 'Undone:' : 'Reloaded'} ${report.what}.`,
    ...part('Files', report.files),
    ...part(isUndo ? 'Put back' : 'Redefined', report.redefined),
    ...part(isUndo ? 'There again' : 'New', report.new),
    ...part(isUndo ? 'Taken away' : 'No longer in the source, but still in the image', report.gone),
    ...part('Loaded with errors', report.errors ?? []),
    ...part('Callers that still hold old code', report.stale),
    ...part('Layouts that changed', report.layouts),
    ...part('Could not be put back', report.not_undone),
    ...part('Warnings', report.warnings),
    ...(output === '' ? [] : [`Output:\n${output}`]),
  ].join('\n\n')
}

/** A package's shortest usual name. */
export function shortPackage(name: string): string {
  return name === 'COMMON-LISP-USER' ? 'CL-USER' : name
}
