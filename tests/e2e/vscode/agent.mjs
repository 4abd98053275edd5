// An agent in the same workspace: the official MCP SDK's client on the standard streams of `consort mcp`.
import { createRequire } from 'node:module'

// From NODE_PATH, which only `require` knows.
const require = createRequire(import.meta.url)
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')

export class Agent {
  static async start(workspace) {
    const client = new Client({ name: 'Robot', version: '1' })
    await client.connect(new StdioClientTransport({ command: process.env.CONSORT_BIN, args: ['mcp', '--workspace', workspace], env: process.env, stderr: 'ignore' }))
    return new Agent(client)
  }
  constructor(client) {
    this.client = client
  }
  async tools() {
    return (await this.client.listTools()).tools.map(({ name }) => name)
  }
  /** With as much time as a person has to decide. */
  call(name, args = {}) {
    return this.client.callTool({ name, arguments: args }, undefined, { timeout: 150_000 })
  }
  end() {
    return this.client.close()
  }
}
