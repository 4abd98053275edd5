// A call tree from folded stacks. No `vscode` and no DOM here: it is tested without.

export interface Node {
  name: string
  value: number
  children: Node[]
}

/** The call tree of lines `a;b;c N`, outermost first. Lines in another format are ignored. */
export function treeOf(folded: readonly string[]): Node {
  const root: Node = { name: 'all', value: 0, children: [] }
  for (const line of folded) {
    const match = /^(.*\S)\s+(\d+(?:\.\d+)?)\s*$/.exec(line)
    if (match === null) continue
    const count = Number(match[2])
    let node = root
    root.value += count
    for (const name of (match[1] ?? '').split(';')) {
      let child = node.children.find((child) => child.name === name)
      if (child === undefined) {
        child = { name, value: 0, children: [] }
        node.children.push(child)
      }
      child.value += count
      node = child
    }
  }
  return root
}

/** Self and total counts by function; a function that calls itself is counted once in its total. */
export function totals(root: Node): Map<string, { self: number; total: number }> {
  const counts = new Map<string, { self: number; total: number }>()
  const walk = (node: Node, above: ReadonlySet<string>): void => {
    const self = node.value - node.children.reduce((sum, child) => sum + child.value, 0)
    const count = counts.get(node.name) ?? { self: 0, total: 0 }
    count.self += self
    if (!above.has(node.name)) count.total += node.value
    counts.set(node.name, count)
    const inside = new Set([...above, node.name])
    for (const child of node.children) walk(child, inside)
  }
  for (const child of root.children) walk(child, new Set())
  return counts
}
