// Another editor in the same workspace: `consort lsp`, with the messages that a test needs.
import { spawn } from 'node:child_process'

export class OtherEditor {
  /** The question that waits: the request `consort/approve`. */
  asked
  bytes = Buffer.alloc(0)

  static async start(workspace) {
    const editor = new OtherEditor(workspace)
    const params = { rootUri: `file://${workspace}`, capabilities: {}, clientInfo: { name: 'Vim', version: '9' }, initializationOptions: { approve: true } }
    await editor.request('initialize', params)
    editor.send({ method: 'initialized', params: {} })
    return editor
  }
  constructor(cwd) {
    this.process = spawn(process.env.CONSORT_BIN, ['lsp'], { cwd, stdio: ['pipe', 'pipe', 'ignore'] })
    this.process.stdout.on('data', (data) => {
      this.bytes = Buffer.concat([this.bytes, data])
      for (;;) {
        const length = /^Content-Length: (\d+)\r\n\r\n/.exec(this.bytes.subarray(0, 100).toString('latin1'))
        if (length === null || this.bytes.length < length[0].length + Number(length[1])) return
        const end = length[0].length + Number(length[1])
        this.receive(JSON.parse(this.bytes.subarray(length[0].length, end).toString()))
        this.bytes = this.bytes.subarray(end)
      }
    })
  }
  receive(message) {
    if (message.method === 'consort/approve') this.asked = message
    else if (message.method !== undefined && message.id !== undefined) this.send({ id: message.id, result: null })
    else if (message.id === 1) this.begun(message.result)
  }
  send(message) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    this.process.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  }
  /** The first request. */
  request(method, params) {
    return new Promise((resolve) => {
      this.begun = resolve
      this.send({ id: 1, method, params })
    })
  }
  /** Answers the question that waits. */
  decide(decision) {
    this.send({ id: this.asked.id, result: { decision } })
    this.asked = undefined
  }
  end() {
    return new Promise((resolve) => {
      this.process.on('exit', resolve)
      this.process.stdin.end()
    })
  }
}
