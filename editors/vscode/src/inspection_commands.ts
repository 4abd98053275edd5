// The commands of the inspector, of frames, of threads and of frozen failures.
import type { PackagesTree } from './browse.js'
import type { Features, Register } from './features.js'
import type { Sourced } from './frames.js'
import { failures } from './frozen.js'
import type { Inspecting } from './inspector.js'
import type { Thread } from './lsp_ext.js'
import { complain } from './server.js'
import { goToFrame } from './source.js'

export function registerInspectionCommands(features: Features, command: Register): void {
  const { server, inspector, packages, threads } = features
  command('goToFrame', (frame: Sourced, callee?: string | null) => goToFrame(server, frame, callee ?? undefined).catch(complain))
  command('openSymbol', (symbol: Parameters<PackagesTree['open']>[0]) => packages.open(symbol))
  command('interruptThread', (thread?: Thread) => threads.stop('interruptThread', thread))
  command('killThread', (thread?: Thread) => threads.stop('killThread', thread))
  command('inspect', () => inspector.ask().catch(complain))
  command('inspectResult', (text: string, reference: number) => inspector.open('result', { text, type: null, reference }).catch(complain))
  command('inspectInto', (row?: Inspecting) => inspector.into(row).catch(complain))
  command('inspectBack', () => inspector.back().catch(complain))
  command('inspectRefresh', () => inspector.refresh())
  command('inspectSet', (row?: Inspecting) => inspector.set(row).catch(complain))
  command('inspectEval', (row?: Inspecting) => inspector.evaluate(row).catch(complain))
  command('inspectTable', (row?: Inspecting) => inspector.table(row).catch(complain))
  command('inspectDefinition', (row?: Inspecting) => inspector.definition(row).catch(complain))
  command('inspectDescribe', (row?: Inspecting) => inspector.describe(row).catch(complain))
  command('inspectCompare', (row?: Inspecting) => inspector.compare(row).catch(complain))
  command('inspectCopy', (row?: Inspecting) => inspector.copy(row).catch(complain))
  command('failures', (failure?: unknown) => failures(server, failure).catch(complain))
}
