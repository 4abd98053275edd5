// The MCP Inspector's command line against `consort mcp`, as a person tries a server with it: tools
// listed, schemas looked at, code evaluated.

import { spawnSync } from "node:child_process";
import assert from "node:assert/strict";
import path from "node:path";

const inspector = path.join(
  process.env.CONSORT_TEST_CACHE,
  "mcp/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
);
const workspace = process.env.CONSORT_WORKSPACE;

// The Inspector passes little more than HOME and PATH on to servers, so the directories of this run
// are passed as arguments.
const environment = Object.entries(process.env)
  .filter(([name]) => /^(XDG_|TMPDIR$|CONSORT_)/.test(name))
  .flatMap(([name, value]) => ["-e", `${name}=${value}`]);

const PATIENCE = Number(process.env.CONSORT_TEST_PATIENCE ?? 120_000);

/** The output of the Inspector when it is run with these arguments; it must end with `status`. */
function inspect(status, ...args) {
  const all = [inspector, "--cli", process.env.CONSORT_BIN, "mcp", "--cwd", workspace, ...environment, ...args];
  const run = spawnSync(process.execPath, all, { encoding: "utf8", timeout: PATIENCE, cwd: workspace });
  assert.equal(run.status, status, `${args.join(" ")}: ${run.error ?? ""}\n${run.stdout}\n${run.stderr}`);
  return JSON.parse(run.stdout);
}

const TOOL_FAILED = 5; // the Inspector's exit code for an answer with `isError`
const evaluate = (code, status = 0) =>
  inspect(status, "--method", "tools/call", "--tool-name", "evaluate-lisp", "--tool-arg", `code=${code}`);

const checks = {
  lists_tools() {
    const { tools } = inspect(0, "--method", "tools/list");
    const names = tools.map((tool) => tool.name);
    for (const name of ["evaluate-lisp", "compile-form"]) assert.ok(names.includes(name), names.join(" "));
    assert.equal(tools.find((tool) => tool.name === "evaluate-lisp").inputSchema.type, "object");
  },
  finds_no_fault_in_the_schemas() {
    // With --strict it exits with 6 when a schema has an error.
    inspect(0, "--method", "tools/list", "--strict");
  },
  evaluates_in_one_image() {
    const first = evaluate("(progn (defun inspected () 41) (1+ (inspected)))");
    assert.ok(!first.isError, JSON.stringify(first));
    assert.match(first.content[0].text, /42/);
    // Another process of the Inspector, the same image.
    assert.match(evaluate("(inspected)").content[0].text, /41/);
  },
  tells_errors() {
    const failed = evaluate("(car 1)", TOOL_FAILED);
    assert.equal(failed.isError, true);
    assert.equal(failed.structuredContent.error.type, "TYPE-ERROR");
  },
};

const chosen = new RegExp(process.argv[2] ?? "");
let [passed, failed] = [0, 0];
for (const [name, check] of Object.entries(checks)) {
  if (!chosen.test(name)) continue;
  try {
    check();
    passed += 1;
    console.log(`ok      inspector ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  inspector ${name}\n${error.stack}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed || !passed ? 1 : 0;
