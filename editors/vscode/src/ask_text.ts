// Input boxes of commands.
import * as vscode from 'vscode'

/**
 * Asks for a text. The box stays when the focus goes elsewhere: what was typed is kept, and VS
 * Code's own page "Get Started" takes the focus back after a command of the palette.
 */
export function askText(options: vscode.InputBoxOptions): Thenable<string | undefined> {
  return vscode.window.showInputBox({ ignoreFocusOut: true, ...options })
}
