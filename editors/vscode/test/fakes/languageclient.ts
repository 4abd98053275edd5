// In the place of `vscode-languageclient/node`, which runs only in VS Code: the names of it that
// are imported, and clients that a test starts and ends.
export const State = { Stopped: 1, Running: 2, Starting: 3 }

/** The clients that were made. */
export const clients: LanguageClient[] = []

export class LanguageClient {
  state = State.Stopped
  readonly initializeResult = { capabilities: { executeCommandProvider: { commands: [] } } }
  /** Called by the test: the program has answered, or has ended. */
  isStarted = (): void => undefined
  isStopped = (): void => undefined
  private readonly handlers = new Map<string, (told: unknown) => void>()
  constructor() {
    clients.push(this)
  }
  registerFeature(): void {}
  onDidChangeState(): void {}
  onRequest(): void {}
  onNotification(name: string, handler: (told: unknown) => void): void {
    this.handlers.set(name, handler)
  }
  tell(name: string, told: unknown): void {
    this.handlers.get(name)?.(told)
  }
  start(): Promise<void> {
    this.state = State.Starting
    return new Promise((resolve) => {
      this.isStarted = () => {
        this.state = State.Running
        resolve()
      }
    })
  }
  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.isStopped = () => {
        this.state = State.Stopped
        resolve()
      }
    })
  }
}
export class RequestType {}
export const CloseAction = {}
export const ErrorAction = {}
export const TransportKind = {}
