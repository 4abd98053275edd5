// Checks with the official TypeScript clients of `consort mcp`. contract.py has the contracts in
// full; these checks cover what another implementation of the protocol could disagree about:
// schemas (Ajv), errors, progress, cancellation, revisions.
//
// Each check takes an agent (see client_v1.mjs, client_v2.mjs) with client, tools(), call(name,
// arguments, options), another().

import assert from 'node:assert/strict';

/**
 * The time limit for something that must come, in milliseconds; run.sh sets it by the machine's
 * speed. No test asserts that anything comes sooner.
 */
export const PATIENCE = Number(process.env.CONSORT_TEST_PATIENCE ?? 120_000);
/** For every request: the SDKs' own limit is a minute. */
export const patient = { timeout: 2 * PATIENCE };

export const text = result => {
    assert.deepEqual(result.content.map(block => block.type), ['text']);
    return result.content[0].text;
};

export const evaluate = (agent, code, more = {}, options = {}) => agent.call('evaluate-lisp', { code, ...more }, { ...patient, ...options });

const eventually = async (condition, what) => {
    const end = Date.now() + PATIENCE;
    while (!(await condition())) {
        assert(Date.now() < end, `waited ${PATIENCE / 1000} s in vain: ${what}`);
        await new Promise(resolve => setTimeout(resolve, 50));
    }
};

export const checks = {
    async 'the tools have schemas and annotations'(agent) {
        const tools = Object.fromEntries((await agent.tools()).map(tool => [tool.name, tool]));
        assert(tools['evaluate-lisp'] && tools['compile-form'] && !tools['repl_eval'], Object.keys(tools).join());
        for (const tool of Object.values(tools)) {
            assert.equal(tool.outputSchema.type, 'object');
            for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']) {
                assert.equal(typeof tool.annotations[hint], 'boolean', `${tool.name}: ${hint}`);
            }
        }
    },

    // The client validates structuredContent against outputSchema by itself, and throws.
    async 'answers pass the validation of the client'(agent) {
        await agent.tools();
        const all = await evaluate(agent, '(warn "w") (print 1) (format *error-output* "e") (values 1 2)', { 'capture-time': true });
        assert.deepEqual(all.structuredContent.values, ['1', '2']);
        assert.equal(all.structuredContent.warnings.length, 1);
        for (const code of ['(values)', '(/ 1 0)', '(list']) await evaluate(agent, code);
        for (const code of ['(defun f (x) (g x))', '(defun f (x)', '(let ((x 1 2)) x)']) await agent.call('compile-form', { code });
    },

    async 'a value, an error, and code that is only checked'(agent) {
        const three = await evaluate(agent, '(+ 1 2)');
        assert.equal(text(three), '=> 3');
        assert.equal(three.isError, false);
        const divided = await evaluate(agent, '(/ 1 0)');
        assert.equal(divided.isError, true);
        assert.match(text(divided), /^\[ERROR\] DIVISION-BY-ZERO\n/);
        const checked = await agent.call('compile-form', { code: '(defun a () (b))' });
        assert.match(text(checked), /^Compilation successful \(with warnings\)\nWarnings: 1\nErrors: 0\n\nWARNING: Undefined function: B\n/);
        assert.notEqual(checked.isError, true);
    },

    async 'bad arguments and unknown packages are results that an agent reads'(agent) {
        const bad = await agent.call('evaluate-lisp', { kode: '1' });
        assert.equal(bad.isError, true);
        assert.match(text(bad), /`code` is missing/);
        const unknown = await agent.call('compile-form', { code: '1', package: 'NO-SUCH' });
        assert.equal(text(unknown), 'Package NO-SUCH not found');
    },

    async 'an unknown tool is an error that names those there are'(agent) {
        await assert.rejects(agent.call('no-such-tool', {}), /Unknown tool: no-such-tool.*evaluate-lisp/s);
    },

    async 'progress is told'(agent) {
        const told = [];
        const other = await agent.another();
        await evaluate(other, '(defvar cl-user::*ts-enough* nil) (setf cl-user::*ts-enough* nil)');
        const code = '(loop for i from 0 until cl-user::*ts-enough* do (format t "step ~D~%" i) (finish-output) (sleep 0.1) finally (return :done))';
        const running = evaluate(agent, code, { timeout: 2 * PATIENCE / 1000 }, { onprogress: progress => told.push(progress) });
        try {
            await eventually(async () => told.length >= 3, 'progress that is told three times');
        } finally {
            await evaluate(other, '(setf cl-user::*ts-enough* t)');
        }
        assert.match(text(await running), /=> :DONE$/);
        assert(told.every((one, index) => index === 0 || one.progress > told[index - 1].progress), JSON.stringify(told));
    },

    async 'an abort stops an endless loop, other calls are answered meanwhile, and the state is kept'(agent) {
        await evaluate(agent, '(defvar cl-user::*ts-kept* :kept) (defvar cl-user::*ts-loops* nil) (setf cl-user::*ts-loops* nil)');
        const other = await agent.another();
        const loops = async () => text(await evaluate(other, 'cl-user::*ts-loops*')) === '=> T';
        const abort = new AbortController();
        const code = '(setf cl-user::*ts-loops* t) (unwind-protect (loop) (setf cl-user::*ts-loops* nil))';
        const endless = evaluate(agent, code, { timeout: 300 }, { signal: abort.signal, timeout: 10 * PATIENCE });
        await eventually(loops, 'the loop never began');
        assert((await agent.tools()).length >= 2);
        abort.abort('the test says so');
        await assert.rejects(endless);
        await eventually(async () => !(await loops()), 'an abort did not stop the loop');
        assert.equal(text(await evaluate(agent, 'cl-user::*ts-kept*')), '=> :KEPT');
    },

    async 'many calls at once are each answered with their own result'(agent) {
        const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => evaluate(agent, `(* ${index} ${index})`)));
        assert.deepEqual(answers.map(text), answers.map((_, index) => `=> ${index * index}`));
    },
};

/** Runs all checks with agents that `connect` makes; exits with 1 if one failed. */
export const run = async (label, connect, more = {}) => {
    const chosen = new RegExp(process.argv[2] ?? '');
    let [passed, failed] = [0, 0];
    for (const [name, check] of Object.entries({ ...more, ...checks })) {
        if (!chosen.test(name)) continue;
        const opened = [];
        const open = async () => {
            const agent = await connect();
            opened.push(agent);
            agent.another = open;
            return agent;
        };
        try {
            await check(await open());
            passed += 1;
            console.log(`ok      ${label} ${name}`);
        } catch (error) {
            failed += 1;
            console.log(`FAILED  ${label} ${name}\n${error?.stack ?? error}`);
        }
        for (const agent of opened) await agent.client.close();
    }
    console.log(`${passed} passed, ${failed} failed`);
    process.exit(failed || !passed ? 1 : 0);
};
