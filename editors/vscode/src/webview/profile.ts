// The profile's page: a table of functions and a flame graph. The page loads nothing.
import { flamegraph } from 'd3-flame-graph'
import flameStyle from 'd3-flame-graph/dist/d3-flamegraph.css'
import { select } from 'd3-selection'
import { totals, type Node } from '../folded.js'

interface Row {
  function: string
  samples: number
  bytes?: number | null
}
interface Data {
  profile: { mode: string; samples: number; seconds: number; rows: Row[]; values?: string[] }
  tree: Node
}
declare function acquireVsCodeApi(): { postMessage(message: unknown): void }

const api = acquireVsCodeApi()
const data = JSON.parse(document.getElementById('data')?.textContent ?? '{}') as Data
const main = document.getElementById('main') as HTMLElement

const style = document.createElement('style')
style.textContent = `${flameStyle}
body { color: var(--vscode-foreground); font-family: var(--vscode-font-family); font-size: var(--vscode-font-size); padding: 0 16px 16px; }
h1 { font-size: 1.3em; font-weight: 600; margin: 16px 0 4px; }
p { margin: 4px 0 16px; color: var(--vscode-descriptionForeground); }
p.warning { color: var(--vscode-editorWarning-foreground); }
table { border-collapse: collapse; width: 100%; margin-top: 16px; }
th { text-align: left; font-weight: 600; border-bottom: 1px solid var(--vscode-widget-border, #8884); padding: 4px 8px; }
td { padding: 3px 8px; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; width: 4em; }
td.name { overflow: hidden; text-overflow: ellipsis; max-width: 12em; }
td.share { width: 25%; min-width: 4em; }
tr:hover td { background: var(--vscode-list-hoverBackground); }
a { color: var(--vscode-textLink-foreground); text-decoration: none; cursor: pointer; font-family: var(--vscode-editor-font-family); }
a:hover { text-decoration: underline; }
.bar { height: 0.8em; background: #d18616; border-radius: 2px; min-width: 1px; }
.d3-flame-graph-label { font-family: var(--vscode-editor-font-family); font-size: 12px; line-height: 1.5; color: #1e1e1e; }
.d3-flame-graph rect { stroke: var(--vscode-editor-background); fill-opacity: 1; }
#details { min-height: 1.4em; font-family: var(--vscode-editor-font-family); margin: 4px 0; }
`
document.head.append(style)

const element = (tag: string, text = '', className = ''): HTMLElement => {
  const made = document.createElement(tag)
  made.textContent = text
  if (className !== '') made.className = className
  return made
}
const percent = (part: number, whole: number): string => `${whole === 0 ? '0.0' : ((100 * part) / whole).toFixed(1)} %`

const { profile, tree } = data
const all = tree.value > 0 ? tree.value : profile.samples
const modes: Record<string, string> = { cpu: 'CPU time', time: 'Elapsed time', alloc: 'Allocation' }
main.append(element('h1', `Profile: ${modes[profile.mode] ?? profile.mode}`))
const facts = [`${profile.samples} samples`, `${profile.seconds.toFixed(2)} s`, ...(profile.values?.[0] === undefined ? [] : [`value: ${profile.values[0].slice(0, 80)}`])]
main.append(element('p', facts.join(' · ')))
if (profile.samples < 100)
  main.append(element('p', 'Few samples: the figures are rough. Let the code run longer.', 'warning'))

if (tree.value > 0) {
  const holder = element('div')
  const details = element('div', '', '')
  details.id = 'details'
  main.append(holder, details, element('p', 'A click on a frame zooms in and goes to its source, as does one on a name below.'))
  const chart = flamegraph()
    .width(Math.max(320, main.clientWidth))
    .cellHeight(20)
    .minFrameSize(2)
    .transitionDuration(150)
    .inverted(true)
    .sort(true)
    .setDetailsElement(details)
    .label((frame: { data: Node }) => `${frame.data.name}: ${percent(frame.data.value, all)}, ${frame.data.value} samples`)
    .onClick((frame: { data: Node }) => {
      if (frame.data !== tree) api.postMessage({ symbol: frame.data.name, quiet: true })
    })
  select(holder).datum(tree).call(chart as never)
  // The graph is as high as the call tree is deep.
  const depth = (node: Node): number => 1 + Math.max(0, ...(node.children ?? []).map(depth))
  holder.querySelector('svg')?.setAttribute('height', String(20 * depth(tree) + 4))
  let timer: number | undefined
  window.addEventListener('resize', () => {
    window.clearTimeout(timer)
    timer = window.setTimeout(() => chart.width(Math.max(320, main.clientWidth)).update(tree), 100)
  })
}

const counted = totals(tree)
const rows = counted.size > 0
  ? [...counted].map(([name, count]) => ({ name, self: count.self, total: count.total }))
  : profile.rows.map((row) => ({ name: row.function, self: row.samples, total: row.samples }))
rows.sort((a, b) => b.self - a.self || b.total - a.total)
const table = element('table')
const head = element('tr')
head.append(element('th', 'Function'), element('th', 'Self', 'number'), element('th', '', 'number'), element('th', 'Total', 'number'), element('th', ''))
table.append(head)
for (const row of rows.slice(0, 200)) {
  const line = element('tr')
  const name = element('td', '', 'name')
  const link = element('a', row.name)
  link.title = row.name
  link.addEventListener('click', () => api.postMessage({ symbol: row.name }))
  name.append(link)
  const bar = element('td', '', 'share')
  const fill = element('div', '', 'bar')
  fill.style.width = percent(row.self, all).replace(' ', '')
  bar.append(fill)
  line.append(name, element('td', String(row.self), 'number'), element('td', percent(row.self, all), 'number'), element('td', percent(row.total, all), 'number'), bar)
  table.append(line)
}
main.append(table)
