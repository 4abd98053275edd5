// Tables, differences, descriptions and definitions of inspected values as text. Imports no
// `vscode`, so that it is tested without.
import { columns, label, oneLine, visible } from './format.js'
import type { Comparison, Described, ValueDefinition, ValueDefinitions, ValueTable } from './lsp_ext.js'

/** The widest cell of a table, in columns. */
const CELL = 40

/** A table in columns, as a document. */
export function tableText(name: string, table: ValueTable): string {
  const cell = (text: string): string => oneLine(visible(text), CELL)
  const rows = table.rows.map(({ label, cells }) => [label, ...cells.map((value) => value?.text ?? '')].map(cell))
  const head = ['', ...table.columns.map((column) => column.toLowerCase())].map(cell)
  const widths = head.map((title, at) => Math.max(...[title, ...rows.map((row) => row[at] ?? '')].map((text) => columns(text, 8))))
  const line = (row: string[]): string => row.map((text, at) => text + ' '.repeat((widths[at] ?? 0) - columns(text, 8))).join('  ').trimEnd()
  const shown = rows.length < table.total ? `, the first ${rows.length} of ${table.total} rows` : `, ${table.total} rows`
  return [`${cell(name)}${shown}`, '', line(head), widths.map((width) => '─'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}

/** The differences of two values, as a document. */
export function comparisonText(one: string, other: string, { differences, partial }: Comparison): string {
  const cell = (text: string): string => oneLine(visible(text), 200)
  const lines = differences.flatMap((found) => [
    found.path.length === 0 ? 'The values themselves' : found.path.map((label) => oneLine(visible(label), CELL)).join(' › '),
    `  - ${cell(found.one.text)}`,
    `  + ${cell(found.other.text)}`,
  ])
  return [
    `- ${cell(one)}`,
    `+ ${cell(other)}`,
    '',
    ...(lines.length === 0 ? ['They have the same parts.'] : lines),
    ...(partial ? ['', 'The values are too large to be compared whole: there may be more.'] : []),
  ].join('\n')
}

/** The output of `describe`, as a document. */
export function descriptionText({ text, error }: Described): string {
  const printed = text.split('\n').map((line) => visible(line)).join('\n').trimEnd()
  return error === null ? printed : `${printed}\n; It did not end: ${visible(error)}`.trimStart()
}

/** The definitions of a value, to choose one of. */
export function definitionItems({ definitions }: ValueDefinitions): { label: string; description: string; definition: ValueDefinition }[] {
  return definitions.map((definition) => {
    const file = decodeURIComponent(definition.uri.slice(definition.uri.lastIndexOf('/') + 1))
    return { label: label(`${definition.kind} ${definition.name}`), description: label(`${file}:${definition.range.start.line + 1}`), definition }
  })
}
