// The MCP conformance suite against `consort serve --http`: the scenarios for features that every
// server has. The others need tools, prompts and resources with certain names, which only a server
// made for the suite has.
//
// The suite cannot send a bearer token, so it talks to a forwarder on a loopback port that adds it
// and changes nothing else.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';

const suites = {
    // Revisions with a handshake.
    '@modelcontextprotocol/conformance': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
    // The same and 2026-07-28.
    'conformance-next': [
        'server-initialize', 'server-session-lifecycle', 'server-stateless', 'ping', 'tools-list', 'caching', 'http-header-validation',
        'dns-rebinding-protection',
    ],
};

// Checks within those scenarios that do not apply, because they call tools of the suite's own
// server. The test fails unless exactly these fail.
const notOurs = {
    'server-stateless': [
        'sep-2575-http-server-no-independent-requests-on-stream', 'sep-2575-missing-capability-http-400',
        'sep-2575-server-no-log-without-loglevel', 'sep-2575-server-rejects-undeclared-capability',
    ],
};

const workspace = path.join(process.env.CONSORT_WORKSPACE, 'conformance');
mkdirSync(workspace, { recursive: true });
writeFileSync(path.join(workspace, 'consort.toml'), '');

const host = spawn(process.env.CONSORT_BIN, ['serve', '--workspace', workspace, '--http', '127.0.0.1:0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
});
const PATIENCE = Number(process.env.CONSORT_TEST_PATIENCE ?? 120_000);
const chosen = new RegExp(process.argv[2] ?? '');
const said = [];
const [port, token] = await new Promise((resolve, reject) => {
    const tired = setTimeout(() => reject(new Error(`\`consort serve --http\` does not listen: ${said.join('\n')}`)), PATIENCE);
    createInterface({ input: host.stderr }).on('line', line => {
        said.push(line);
        const found = /http:\/\/127\.0\.0\.1:(\d+)\/mcp .* the token is in (\S+)/.exec(line);
        if (!found) return;
        clearTimeout(tired);
        resolve([Number(found[1]), readFileSync(found[2], 'utf8').trim()]);
    });
    host.on('exit', code => reject(new Error(`consort serve ended with ${code}: ${said.join('\n')}`)));
});

const forwarder = http.createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const onward = http.request({ host: '127.0.0.1', port, method: incoming.method, path: incoming.url, headers }, answer => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
});
await new Promise(resolve => forwarder.listen(0, '127.0.0.1', resolve));
const url = `http://localhost:${forwarder.address().port}/mcp`;

/** Runs one scenario; resolves to its output and exit code. */
const scenario = (suite, name) =>
    new Promise(resolve => {
        const main = path.join('node_modules', suite, 'dist', 'index.js');
        const options = { cwd: path.dirname(process.argv[1]), timeout: PATIENCE };
        const run = spawn(process.execPath, [main, 'server', '--url', url, '--scenario', name], options);
        let output = '';
        for (const stream of [run.stdout, run.stderr]) stream.on('data', data => (output += data));
        run.on('close', code => resolve({ code, output }));
    });

let [passed, failed] = [0, 0];
for (const [suite, names] of Object.entries(suites)) {
    for (const name of names.filter(name => chosen.test(`${suite} ${name}`))) {
        const { code, output } = await scenario(suite, name);
        const failures = [...output.replaceAll(/\x1b\[\d*m/g, '').matchAll(/\[(\S+)\s*\] FAILURE/g)].map(found => found[1]).sort();
        const expected = notOurs[name] ?? [];
        if (expected.length ? failures.join() === expected.join() : code === 0) {
            passed += 1;
            console.log(`ok      ${suite} ${name}`);
        } else {
            failed += 1;
            console.log(`FAILED  ${suite} ${name}\n${output}`);
        }
    }
}
forwarder.closeAllConnections();
forwarder.close();
host.removeAllListeners('exit');
host.kill('SIGTERM');
await new Promise(resolve => host.on('exit', resolve));
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
