// Configurations with which agents start Consort. Imports no `vscode`, so that it is tested
// without.

/** The text to paste for each known client, and the file for it. */
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
