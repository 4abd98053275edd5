// A notification that the extension closes again, with links in its text. Notifications of
// `showWarningMessage` stay until a person closes them.
import * as vscode from 'vscode'
import { plain } from './format.js'

/** The link of a notification that runs a command. */
export function noticeLink(title: string, command: string, given: unknown[]): string {
  return `[${title.replace(/\[/g, '(').replace(/\]/g, ')')}](command:${command}?${encodeURIComponent(JSON.stringify(given))})`
}

/** Text before links: a bracket that nothing in it closes would take the next link's title. */
export function beforeLinks(text: string): string {
  return plain(text).replace(/\[(?=[^\]]*$)/g, '\\u{5b}')
}

/** A progress notification. `dismiss` is the title of the button that closes it. */
export class Notice {
  private finish: () => void = () => undefined
  private progress: vscode.Progress<{ message?: string; increment?: number }> | undefined
  /** What was said before VS Code has opened the notification. */
  private said: { message: string; increment: number } | undefined
  private isClosed = false

  constructor(dismiss: string, dismissed: () => void = () => undefined) {
    // VS Code shows the whole text of a notification only if it has a button. It takes the button's
    // title here, though its types say `boolean`.
    const cancellable = dismiss as unknown as boolean
    void vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, cancellable }, (progress, token) => {
      // Closed while VS Code was opening the notification.
      if (this.isClosed) return Promise.resolve()
      token.onCancellationRequested(() => {
        this.close()
        dismissed()
      })
      this.progress = progress
      if (this.said !== undefined) progress.report(this.said)
      return new Promise<void>((resolve) => (this.finish = resolve))
    })
  }

  /** Shows another text, and moves the bar by a percentage. */
  say(message: string, increment: number): void {
    if (this.progress === undefined) this.said = { message, increment: (this.said?.increment ?? 0) + increment }
    else this.progress.report({ message, increment })
  }

  close(): void {
    this.isClosed = true
    this.finish()
  }
}
