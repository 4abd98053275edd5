// An agent in the same workspace: the official MCP SDK's client on the standard streams of `consort
// mcp`.
import { createRequire } from 'node:module'
import { PATIENCE } from './workbench.mjs'

// From NODE_PATH, which only `require` knows.
const require = createRequire(import.meta.url)
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')

// More than a person has to decide. The SDK's own limit is a minute.
const options = { timeout: 10 * PATIENCE }

export class Agent {
  static start(workspace) {
    return Agent.of({ args: ['mcp', '--workspace', workspace] })
  }
  /**
   * Starts the agent as a person does in a terminal, where it finds its workspace by the directory.
   */
  static startIn(cwd) {
    return Agent.of({ args: ['mcp'], cwd })
  }
  static async of(program) {
    const client = new Client({ name: 'Robot', version: '1' })
    const transport = new StdioClientTransport({ command: process.env.CONSORT_BIN, env: process.env, stderr: 'ignore', ...program })
    await client.connect(transport, options)
    return new Agent(client)
  }
  constructor(client) {
    this.client = client
  }
  async tools() {
    return (await this.client.listTools(undefined, options)).tools.map(({ name }) => name)
  }
  call(name, args = {}) {
    return this.client.callTool({ name, arguments: args }, undefined, options)
  }
  end() {
    return this.client.close()
  }
}
