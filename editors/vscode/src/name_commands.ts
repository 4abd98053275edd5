// The commands on names and forms: expansions, documentation, references, structural editing.
import * as vscode from 'vscode'
import { askText } from './ask_text.js'
import { apropos } from './apropos.js'
import type { Features, Register } from './features.js'
import { openManual, referencesByKind } from './names.js'
import { complain } from './server.js'
import { goToSymbol } from './source.js'
import { currentPackage, readIn } from './status.js'
import { ACTIONS, deleteStrictly, structure } from './structure.js'
import { tell } from './views.js'

export function registerNameCommands(features: Features, command: Register): void {
  const { server, documents, expansions, stepper } = features
  command('macroexpand', () => expansions.expand('one'))
  command('macroexpandFull', () => expansions.expand('full'))
  command('expandCompilerMacro', () => expansions.expand('compiler'))
  command('expandFurther', () => expansions.further())
  command('expandBack', () => expansions.back())
  command('expandInPlace', () => expansions.inPlace())
  command('macrostep', () => stepper.step().catch(complain))
  command('macrostepExpand', () => stepper.step().catch(complain))
  command('macrostepCollapse', () => stepper.collapse().catch(complain))
  command('macrostepNext', () => stepper.go(true).catch(complain))
  command('macrostepPrevious', () => stepper.go(false).catch(complain))
  command('macrostepQuit', () => stepper.quit().catch(complain))
  command('describe', () => tell(server, documents, 'describe'))
  command('disassemble', () => tell(server, documents, 'disassemble'))
  command('hyperspec', () => openManual(server))
  command('referencesByKind', () => referencesByKind(server))
  command('packageManual', async () => {
    const name = await askText({ title: 'Documentation of a Package or System', value: currentPackage() ?? '' })
    if (name !== undefined && name.trim() !== '') await tell(server, documents, 'packageManual', name.trim())
  })
  command('apropos', () => apropos(server, documents))
  command('goToDefinition', async () => {
    const editor = vscode.window.activeTextEditor
    const range = editor?.document.getWordRangeAtPosition(editor.selection.active)
    const name = await askText({ title: 'Go to a definition', prompt: 'A symbol', value: range && editor ? editor.document.getText(range) : '' })
    if (name !== undefined && name !== '') await goToSymbol(server, name, readIn(name)).catch(complain)
  })
  for (const action of Object.keys(ACTIONS) as (keyof typeof ACTIONS)[]) {
    const strict = action === 'deleteForward' || action === 'deleteBackward'
    command(`structure.${action}`, () => strict ? deleteStrictly(server, action) : structure(server, action))
  }
}
