// The settings of the server. Other settings of the section `consort` belong to this extension and
// are not sent to the server.

/** The keys of docs/configuration.md; a test compares them with that and with package.json. */
export const SERVER_KEYS = [
  'lisp.command', 'lisp.heap', 'lisp.init_file', 'lisp.end_programs', 'check.debounce_ms', 'check.deadline_s', 'check.memory_mb', 'check.notes',
  'check.unreachable', 'check.confine', 'check.chain', 'check.shadow_mb', 'check.workspace', 'check.read', 'check.copies', 'approval.eval', 'approval.compile-file', 'approval.modify-running-code',
  'approval.edit-file', 'approval.restart-image', 'approval.debug', 'debug.on_error', 'debug.frozen', 'lenses.tests', 'lenses.references', 'hints.parameters', 'completion.snippets', 'docs.hyperspec', 'lint.rules', 'lint.rule', 'format.indent', 'eval.timeout_s', 'eval.in_copy', 'host.linger_s',
] as const

/**
 * Keys that are read when the host starts, before any editor's settings, or that no editor may set.
 * Such keys have to be set in a file.
 */
export const FILE_ONLY = new Set([
  'lisp.command', 'lisp.heap', 'lisp.init_file', 'lisp.end_programs', 'host.linger_s', 'check.confine', 'check.read', 'check.copies', 'eval.in_copy',
])

/**
 * Keys that count only in a person's own settings, such as approval and limits: a workspace's
 * settings are files that others can write. The client declares this to the server (`ownSettings`),
 * which trusts no editor that does not.
 */
export const OWN = /^approval\.|^check\.(deadline_s|memory_mb|chain|shadow_mb|workspace)$|^eval\.timeout_s$|^debug\.frozen$|^docs\.hyperspec$/

/** A setting, as VS Code inspects it. */
export interface Inspected {
  globalValue?: unknown
  workspaceValue?: unknown
  workspaceFolderValue?: unknown
}

/**
 * The server's settings as nested objects, with only those that a person has set: an editor's
 * settings override the workspace's consort.toml, and the defaults of package.json must not.
 */
export function serverSettings(inspect: (key: string) => Inspected | undefined): Record<string, Record<string, unknown>> {
  const settings: Record<string, Record<string, unknown>> = {}
  for (const key of SERVER_KEYS) {
    if (FILE_ONLY.has(key)) continue
    const found = inspect(key)
    const value = OWN.test(key) ? found?.globalValue : (found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue)
    if (value === undefined) continue
    const [table, name] = key.split('.') as [string, string]
    ;(settings[table] ??= {})[name] = value
  }
  return settings
}
