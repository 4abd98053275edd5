// A server that answers when a test tells it to.
import assert from 'node:assert/strict'
import type { Server } from '../../src/server.js'

export interface Question {
  name: string
  argument: Record<string, unknown>
  answer: (answer: unknown) => void
}

/** The questions that wait for their answers, and the start that questions wait for. */
export const asked = { questions: [] as Question[], ready: Promise.resolve() as Promise<void> }

const ask = (name: string, argument: Record<string, unknown>): Promise<unknown> => new Promise((answer) => asked.questions.push({ name, argument, answer }))
const never = (): { dispose(): void } => ({ dispose: () => undefined })

export const fakeServer = (): Server => ({
  ask, run: ask, can: () => true, settled: () => asked.ready, condition: { state: 'ready' }, started: true, onChange: never, onLogEntry: never, onStopped: never,
}) as unknown as Server

/** Lets promises that can go on do so. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Answers the question that was asked as the `at`th of those that wait. */
export async function answer(at: number, name: string, what: unknown): Promise<void> {
  const [question] = asked.questions.splice(at, 1)
  assert.equal(question?.name, name)
  question.answer(what)
  await settle()
}
