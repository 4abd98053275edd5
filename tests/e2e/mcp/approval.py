"""Approval through the official Python SDKs (`mcp` 1.x: elicitation; `mcp` 2.x: an input-required result, which the SDK answers itself), and over HTTP.

In a workspace of its own, with evaluation set to `ask`.
"""

import asyncio
import glob
import http.client
import json
import os
import re
import subprocess
import sys
import traceback
from contextlib import AsyncExitStack

from mcp import StdioServerParameters, types

from contract import eventually

try:
    from mcp import Client
except ImportError:
    Client = None
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

CONSORT = os.environ["CONSORT_BIN"]
HERE = os.path.join(os.environ["CONSORT_WORKSPACE"], "asking")
WORKSPACE = os.path.join(HERE, "workspace")
ENVIRONMENT = os.environ | {"XDG_CONFIG_HOME": os.path.join(HERE, "config"), "XDG_STATE_HOME": os.path.join(HERE, "state")}
PATIENCE = int(os.environ.get("CONSORT_TEST_PATIENCE", "120000")) / 1000
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def audit():
    entries = []
    for name in glob.glob(os.path.join(HERE, "state/consort/*.audit.jsonl")):
        assert os.stat(name).st_mode & 0o777 == 0o600, name
        with open(name) as lines:
            # The last line may be half written.
            entries += [json.loads(line) for line in lines if line.endswith("\n")]
    return entries


class Agent:
    """A client whose person answers with ANSWERS in turn; without them it cannot ask."""

    def __init__(self, answers=None):
        self.answers, self.asked = answers, []
        self.parameters = StdioServerParameters(command=CONSORT, args=["mcp", "--workspace", WORKSPACE], env=ENVIRONMENT)

    async def elicited(self, _context, params):
        self.asked.append(params.message)
        action, content = self.answers.pop(0)
        return types.ElicitResult(action=action, content=content)

    async def __aenter__(self):
        self.stack = AsyncExitStack()
        callback = self.elicited if self.answers is not None else None
        if Client:
            mode = os.environ.get("MCP_MODE", "auto")
            self.client = await self.stack.enter_async_context(Client(self.parameters, mode=mode, elicitation_callback=callback))
        else:
            read, write = await self.stack.enter_async_context(stdio_client(self.parameters))
            self.client = await self.stack.enter_async_context(ClientSession(read, write, elicitation_callback=callback))
            await self.client.initialize()
        return self

    async def __aexit__(self, *_):
        await self.stack.aclose()

    async def call(self, name, arguments):
        result = (await self.client.call_tool(name, arguments)).model_dump(by_alias=True, mode="json", exclude_none=True)
        return result.get("isError", False), result["content"][0]["text"]


ALLOW, SESSION, DENY = (("accept", {"decision": decision}) for decision in ["allow", "allow-session", "deny"])


@check
async def the_person_behind_the_client_is_asked():
    before = len(audit())
    async with Agent([ALLOW, DENY, ("decline", None), ("cancel", None)]) as agent:
        assert await agent.call("evaluate-lisp", {"in": "image", "code": "(+ 20 22)"}) == (False, "=> 42")
        for _ in range(3):
            failed, answer = await agent.call("repl_eval", {"in": "image", "code": "(+ 1 1)"})
            assert failed and answer.startswith("Refused: evaluate-lisp"), answer
        assert len(agent.asked) == 4
        assert "(+ 20 22)" in agent.asked[0] and "wants to evaluate code in the image" in agent.asked[0], agent.asked
    decisions = [(entry["decision"], entry["tool"]) for entry in audit()[before:]]
    assert decisions == [("allowed", "evaluate-lisp")] + 3 * [("refused", "evaluate-lisp")], decisions


@check
async def an_evaluation_that_changes_nothing_is_answered_from_a_copy_and_nobody_is_asked():
    async with Agent([DENY]) as agent:
        failed, answer = await agent.call("evaluate-lisp", {"code": "(+ 20 22)"})
        assert not failed and answer.startswith("=> 42") and "nobody was asked" in answer, answer
        assert agent.asked == []
        failed, answer = await agent.call("evaluate-lisp", {"code": "(defun made-by-agent () 1)"})
        assert failed and answer.startswith("Refused: evaluate-lisp"), answer
        assert "Tried in a copy of the image: it changed compiler, functions" in agent.asked[0], agent.asked


@check
async def for_this_session_is_for_this_connection():
    async with Agent([SESSION]) as agent:
        for _ in range(3):
            assert await agent.call("evaluate-lisp", {"in": "image", "code": "1"}) == (False, "=> 1")
        async with Agent([DENY]) as other:
            assert (await other.call("evaluate-lisp", {"in": "image", "code": "1"}))[0]
    async with Agent([DENY]) as again:
        assert (await again.call("evaluate-lisp", {"in": "image", "code": "1"}))[0]


@check
async def a_client_that_cannot_ask_is_told_what_a_person_can_do():
    before = len(audit())
    async with Agent() as agent:
        failed, answer = await agent.call("evaluate-lisp", {"in": "image", "code": "1"})
        assert failed and "nobody can be asked" in answer and "eval" in answer, answer
        # Calls that need no approval ask nobody.
        assert not (await agent.call("compile-form", {"code": "(defun f (x) x)"}))[0]
        assert not (await agent.call("diagnostics", {}))[0]

    # Where nobody was asked, the log may have the refusal after the answer.
    async def refused():
        return any(entry["decision"] == "refused" and "nobody can be asked" in entry["why"] for entry in audit()[before:])

    await eventually(refused, "the refusal in the audit log")


@check
async def resources_and_prompts_are_there():
    async with Agent() as agent:
        resources = {str(one.uri) for one in (await agent.client.list_resources()).resources}
        assert resources == {"consort://diagnostics", "consort://log"}, resources
        contents = (await agent.client.read_resource("consort://symbol/cl:car")).contents[0]
        facts = json.loads(contents.text)["symbols"][0]
        assert facts["name"] == "CAR" and facts["package"] == "COMMON-LISP" and facts["lambda_list"] == "(list)", facts
        prompts = {prompt.name for prompt in (await agent.client.list_prompts()).prompts}
        assert prompts == {"hot-reload-development", "debugging", "profiling", "test-first"}, prompts
        prompt = await agent.client.get_prompt("profiling", {"code": "(slow)"})
        assert "(slow)" in prompt.messages[0].content.text and "profile-code" in prompt.messages[0].content.text


@check
async def the_http_front_end_has_the_same_gate():
    subprocess.run([CONSORT, "stop", "--workspace", WORKSPACE], env=ENVIRONMENT, capture_output=True)
    command = [CONSORT, "serve", "--workspace", WORKSPACE, "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as host:
        try:
            found, said = None, []
            while not found:
                said.append(await asyncio.to_thread(host.stderr.readline))
                assert said[-1], f"`consort serve --http` does not listen: {''.join(said)}"
                found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp .* the token is in (\S+)", said[-1])
            port, bearer = int(found[1]), open(found[2]).read().strip()
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "web", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            }

            def post(params, token=bearer, origin=None):
                headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
                           "Mcp-Method": "tools/call", "Mcp-Name": params["name"]}
                headers |= {"Authorization": f"Bearer {token}"} if token else {}
                headers |= {"Origin": origin} if origin else {}
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params | {"_meta": meta}}
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
                connection.request("POST", "/mcp", json.dumps(body), headers)
                answer = connection.getresponse()
                text = answer.read().decode()
                connection.close()
                data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()] or [text]
                return answer.status, data[-1]

            call = {"name": "evaluate-lisp", "arguments": {"in": "image", "code": "(list 7)"}}
            before = len(audit())
            assert post(call, token=None)[0] == 401 and post(call, token="x" * 64)[0] == 401
            assert post(call, origin="http://evil.example")[0] == 403
            assert len(audit()) == before, "what does not come in is not asked"
            status, text = post(call)
            assert status == 200, (status, text)
            asked = json.loads(text)["result"]
            assert asked["resultType"] == "input_required", asked

            def retry(decision, **more):
                answer = {"approval": {"action": "accept", "content": {"decision": decision}}}
                return call | {"requestState": asked["requestState"], "inputResponses": answer} | more

            refused = json.loads(post(retry("allow", arguments={"in": "image", "code": "(list 8)"}))[1])["result"]
            assert refused["isError"] and "the arguments are not those" in refused["content"][0]["text"], refused
            asked = json.loads(post(call)[1])["result"]
            done = json.loads(post(retry("allow-session"))[1])["result"]
            assert done["content"][0]["text"] == "=> (7)", done
            # Clients of the same name cannot be distinguished, so no permission is for the session.
            assert json.loads(post(call)[1])["result"]["resultType"] == "input_required"
            assert {entry["client"] for entry in audit()[before:]} == {"web 1"}, audit()[before:]
            assert [entry["decision"] for entry in audit()[before:]] == ["refused", "allowed"], audit()[before:]
        finally:
            subprocess.run([CONSORT, "stop", "--workspace", WORKSPACE], env=ENVIRONMENT, capture_output=True)


@check
async def a_workspace_or_an_agent_cannot_loosen_it():
    settings = os.path.join(WORKSPACE, "consort.toml")
    try:
        with open(settings, "w") as file:
            file.write('[approval]\neval = "allow"\n')
        # For the host that is to come.
        subprocess.run([CONSORT, "stop", "--workspace", WORKSPACE], env=ENVIRONMENT, capture_output=True)
        async with Agent() as agent:
            assert "nobody can be asked" in (await agent.call("evaluate-lisp", {"in": "image", "code": "1"}))[1]
        with open(settings, "w") as file:
            file.write('[approval]\neval = "deny"\n')
        subprocess.run([CONSORT, "stop", "--workspace", WORKSPACE], env=ENVIRONMENT, capture_output=True)
        async with Agent([ALLOW]) as agent:
            failed, answer = await agent.call("evaluate-lisp", {"in": "image", "code": "1"})
            assert failed and "the workspace's consort.toml denies" in answer and not agent.asked, answer
    finally:
        open(settings, "w").close()
        subprocess.run([CONSORT, "stop", "--workspace", WORKSPACE], env=ENVIRONMENT, capture_output=True)


async def run():
    chosen = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    os.makedirs(os.path.join(HERE, "config/consort"), exist_ok=True)
    os.makedirs(WORKSPACE, exist_ok=True)
    open(os.path.join(WORKSPACE, "consort.toml"), "w").close()
    with open(os.path.join(HERE, "config/consort/config.toml"), "w") as file:
        file.write('[approval]\neval = "ask"\n')
    passed = failed = 0
    for test in CHECKS:
        if not chosen.search(test.__name__):
            continue
        try:
            async with asyncio.timeout(5 * PATIENCE):
                await test()
            passed += 1
            print(f"ok      approval {test.__name__}", flush=True)
        except BaseException as error:  # also cancellations and exception groups, which a failing client raises
            failed += 1
            print(f"FAILED  approval {test.__name__}", flush=True)
            traceback.print_exception(error, limit=-3)
    subprocess.run([CONSORT, "stop", "--workspace", WORKSPACE], env=ENVIRONMENT, capture_output=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
