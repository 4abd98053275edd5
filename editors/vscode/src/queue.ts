// A queue of questions that wait for a person's decision, one after another. Imports no `vscode`,
// so that it is tested without.
import type { Approval, Decision } from './lsp_ext.js'

export interface Asked {
  approval: Approval
  /** The deadline, in milliseconds since the epoch, after which the call is refused. */
  until: number
  decide: (decision: Decision) => void
}

export class Queue {
  private waiting: Asked[] = []
  constructor(
    private readonly changed: () => void,
    private readonly now: () => number = Date.now,
  ) {}

  /** The one a person is shown. */
  get first(): Asked | undefined {
    return this.waiting[0]
  }
  get length(): number {
    return this.waiting.length
  }
  /** True if the question waits still. */
  has(asked: Asked): boolean {
    return this.waiting.includes(asked)
  }

  /** Adds a question, which is answered by `decide`, `withdraw`, or its deadline. */
  ask(approval: Approval): Promise<Decision> {
    return new Promise((resolve) => {
      const asked: Asked = {
        approval,
        until: this.now() + approval.deadlineSeconds * 1000,
        decide: (decision) => {
          if (!this.has(asked)) return
          this.waiting = this.waiting.filter((other) => other !== asked)
          resolve(decision)
          this.changed()
        },
      }
      this.waiting.push(asked)
      this.changed()
    })
  }

  /**
   * Called when somebody else has decided or the agent has disconnected: an answer here no longer
   * counts. Returns the question, if it waited still.
   */
  withdraw(id: string | number): Asked | undefined {
    const asked = this.waiting.find((asked) => asked.approval.id === id)
    asked?.decide('deny')
    return asked
  }
  withdrawAll(): void {
    for (const asked of [...this.waiting]) asked.decide('deny')
  }

  secondsLeft(asked: Asked): number {
    return Math.max(0, Math.ceil((asked.until - this.now()) / 1000))
  }

  /** No answer in time counts as a refusal. Returns the questions that had none. */
  expire(): Asked[] {
    const late = this.waiting.filter((asked) => asked.until <= this.now())
    for (const asked of late) asked.decide('deny')
    return late
  }
}
