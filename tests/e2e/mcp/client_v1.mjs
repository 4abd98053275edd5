// The official TypeScript SDK, first major version: the `initialize` handshake, revisions up to
// 2025-11-25.

import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js';

import { patient, run } from './checks.mjs';

const connect = async () => {
    const client = new Client({ name: 'consort-e2e', version: '1' });
    await client.connect(new StdioClientTransport({
        command: process.env.CONSORT_BIN,
        args: ['mcp', '--workspace', process.env.CONSORT_WORKSPACE],
        env: process.env,
    }), patient);
    return {
        client,
        tools: async () => (await client.listTools(undefined, patient)).tools,
        call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, { ...patient, ...options }),
    };
};

await run('typescript-v1', connect, {
    async 'the handshake names consort, and a ping is answered'(agent) {
        assert.equal(agent.client.getServerVersion().name, 'consort');
        assert.match(agent.client.getInstructions(), /compile-form/);
        assert.equal(LATEST_PROTOCOL_VERSION, '2025-11-25');
        assert.deepEqual(await agent.client.ping(patient), {});
    },
});
