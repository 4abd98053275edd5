// The official TypeScript SDK, second major version, at revision 2026-07-28: `server/discover`,
// then requests that carry their own metadata.

import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { patient, run } from './checks.mjs';

const connect = async () => {
    const client = new Client({ name: 'consort-e2e', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new StdioClientTransport({
        command: process.env.CONSORT_BIN,
        args: ['mcp', '--workspace', process.env.CONSORT_WORKSPACE],
        env: process.env,
    }), patient);
    return {
        client,
        tools: async () => (await client.listTools(undefined, patient)).tools,
        call: (name, args, options) => client.callTool({ name, arguments: args }, { ...patient, ...options }),
    };
};

await run('typescript-v2', connect, {
    async 'the revision is 2026-07-28'(agent) {
        assert.equal(agent.client.getNegotiatedProtocolVersion(), '2026-07-28');
        assert.equal(agent.client.getServerVersion().name, 'consort');
    },
});
