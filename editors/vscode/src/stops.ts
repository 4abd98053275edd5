// The list of stopped threads and the texts of their restarts, for the debugger's views. Imports no
// `vscode`, so that it is tested without.
import { label, oneLine, plain } from './format.js'
import { read } from './reader.js'

/** The first number of threads that programs started; those of evaluations have lower numbers. */
export const PROGRAM_THREADS = 1_000_000_000

/** A restart as `consort/restarts` gives it. */
export interface Restart {
  index: number
  name: string | null
  report: string
  /** True if the restart takes arguments. */
  arguments: boolean
  /** The number of its stop; undefined for a frozen failure. */
  stop?: number | null
}

/** A stop of a thread, known to a debug session. */
export interface Stop {
  session: string
  thread: number
  /** Distinguishes this stop from an earlier one of the same thread. */
  serial: number
}

/**
 * The stops that the debug sessions know. Every session reports every stop; a person is notified
 * once.
 */
export class Stops {
  private readonly known: Stop[] = []
  /** For each stopped thread, the session that reported it first. */
  private readonly speakers = new Map<number, string>()
  private serial = 0

  /** Records a stop; `first` is true when no other session has reported its thread. */
  stopped(session: string, thread: number): { stop: Stop; first: boolean } {
    this.forget((one) => one.session === session && one.thread === thread)
    const stop = { session, thread, serial: ++this.serial }
    this.known.push(stop)
    if (!this.speakers.has(thread)) this.speakers.set(thread, session)
    return { stop, first: this.speakers.get(thread) === session }
  }

  continued(session: string, thread: number): void {
    this.forget((one) => one.session === session && one.thread === thread)
    if (this.speakers.get(thread) === session) this.speakers.delete(thread)
  }

  ended(session: string): void {
    this.forget((one) => one.session === session)
    for (const [thread, speaker] of [...this.speakers]) if (speaker === session) this.speakers.delete(thread)
  }

  /** True if nobody has left the stop, as far as is known. */
  has(stop: Stop): boolean {
    return this.known.includes(stop)
  }

  /**
   * The stop of this thread of a session; without a thread, or when that is not stopped, the newest
   * of the session; else the newest of all.
   */
  find(session?: string, thread?: number): Stop | undefined {
    const newest = (condition: (one: Stop) => boolean): Stop | undefined => this.known.filter(condition).at(-1)
    return (
      newest((one) => one.session === session && one.thread === thread) ??
      newest((one) => one.session === session) ??
      newest(() => true)
    )
  }

  private forget(condition: (one: Stop) => boolean): void {
    for (let at = this.known.length - 1; at >= 0; at--) if (condition(this.known[at] as Stop)) this.known.splice(at, 1)
  }
}

/** The message of a stop: its condition, or another reason. */
export function stopText(text: string | undefined, description: string | undefined): string {
  return plain(oneLine(text ?? description ?? 'Stopped', 300))
}

/** The number of restarts that a notification has beside the list of all. */
const FIRST = 3

/**
 * The first restarts of a stop, with their titles. Restarts of the same name have their reports
 * too.
 */
export function firstRestarts<R extends Restart>(restarts: readonly R[]): { title: string; restart: R }[] {
  return restarts.slice(0, FIRST).map((restart) => {
    const isNamedAlike = restart.name !== null && restarts.filter(({ name }) => name === restart.name).length > 1
    return { title: isNamedAlike ? label(`${restart.index}: ${restart.name ?? ''}: ${restart.report}`, 80) : restartTitle(restart), restart }
  })
}

/** The rows of a list of restarts, each with its number. */
export function restartRows<R extends Restart>(restarts: readonly R[]): { label: string; description: string; restart: R }[] {
  return restarts.map((restart) => ({
    label: restartTitle(restart),
    description: label(`${restart.report}${restart.arguments ? ' (takes arguments)' : ''}`),
    restart,
  }))
}

/** A restart's number and name. */
export function restartTitle({ index, name, report }: Restart): string {
  return label(`${index}: ${name ?? report}`, 40)
}

/** The restart with the number that a single digit gives. */
export function restartOf<R extends Restart>(typed: string, restarts: readonly R[]): R | undefined {
  return /^[0-9]$/.test(typed) ? restarts.find(({ index }) => index === Number(typed)) : undefined
}

/**
 * The Lisp forms of a text that a person typed, one by one; undefined when the text ends inside of
 * one.
 */
export function formsOf(text: string): string[] | undefined {
  const { forms, open, inside } = read(text)
  // A line break ends a comment on the last line.
  if (open.length > 0 || (inside !== undefined && inside !== 'comment')) return undefined
  return forms.map(({ start, end }) => text.slice(start, end))
}
