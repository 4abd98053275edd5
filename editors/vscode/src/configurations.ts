// How agents are told to start Consort. No `vscode` here: it is tested without.

/** What is to be pasted where, for each client that we know. */
export function configurations(binary: string, workspace: string | undefined): { client: string; where: string; text: string }[] {
  const args = workspace === undefined ? ['mcp'] : ['mcp', '--workspace', workspace]
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
  const servers = json({ mcpServers: { consort: { command: binary, args } } })
  return [
    { client: 'Claude Code', where: 'Run it in a terminal', text: ['claude mcp add consort --', binary, ...args].map((part, index) => (index === 0 ? part : quoted(part))).join(' ') },
    { client: 'Cursor', where: '.cursor/mcp.json', text: servers },
    { client: 'Claude Desktop, Windsurf and others', where: 'the client\'s "mcpServers"', text: servers },
    { client: 'VS Code, for a whole team', where: '.vscode/mcp.json', text: json({ servers: { consort: { type: 'stdio', command: 'consort', args: ['mcp', '--workspace', '${workspaceFolder}'] } } }) },
    { client: 'Any other client', where: 'A program that speaks MCP on standard input and output', text: [binary, ...args].map(quoted).join(' ') },
  ]
}

/** For a POSIX shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
