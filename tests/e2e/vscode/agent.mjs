// An agent in the same workspace: JSON-RPC over the standard streams of `consort mcp`.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export class Agent {
  static async start(workspace) {
    const agent = new Agent(spawn(process.env.CONSORT_BIN, ['mcp', '--workspace', workspace], { stdio: ['pipe', 'pipe', 'ignore'] }))
    await agent.request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'Robot', version: '1' } })
    agent.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return agent
  }
  constructor(process) {
    this.process = process
    this.last = 0
    this.waiting = new Map()
    createInterface({ input: process.stdout }).on('line', (line) => {
      const message = JSON.parse(line)
      this.waiting.get(message.id)?.(message)
      this.waiting.delete(message.id)
    })
  }
  send(message) {
    this.process.stdin.write(`${JSON.stringify(message)}\n`)
  }
  request(method, params) {
    const id = ++this.last
    return new Promise((resolve, reject) => {
      this.waiting.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)))
      this.send({ jsonrpc: '2.0', id, method, params })
    })
  }
  async tools() {
    return (await this.request('tools/list', {})).tools.map(({ name }) => name)
  }
  call(name, args) {
    return this.request('tools/call', { name, arguments: args })
  }
  end() {
    this.process.stdin.end()
  }
}
