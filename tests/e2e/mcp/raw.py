"""Messages that no well-behaved client sends, and others that every client may send: handwritten lines to `consort mcp`, handwritten requests to `serve --http`."""

import contextlib
import http.client
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from hostile import Clone

CONSORT = os.environ["CONSORT_BIN"]
WORKSPACE = os.environ["CONSORT_WORKSPACE"]
# The time limit for something that must come, in seconds; run.sh sets it by the machine's speed. No
# test asserts that anything comes sooner.
PATIENCE = int(os.environ.get("CONSORT_TEST_PATIENCE", "120000")) / 1000
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def initialize(version="2025-11-25"):
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def request(id, method, params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def evaluation(id, code, **more):
    return request(id, "tools/call", {"name": "evaluate-lisp", "arguments": {"code": code, **more}})


class Wire:
    """A connection to `consort mcp`."""

    def __init__(self, version="2025-11-25", workspace=WORKSPACE):
        self.process = subprocess.Popen([CONSORT, "mcp", "--workspace", workspace], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.watch = threading.Timer(5 * PATIENCE, self.process.kill)
        self.watch.start()
        self.next_id = 0
        if version:
            self.greeting = self.ask("initialize", initialize(version))["result"]
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watch.cancel()
        self.process.kill()
        self.process.wait()
        # Messages in the buffer cannot be written any more.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()

    def line(self, data):
        self.process.stdin.write(data if isinstance(data, bytes) else data.encode())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def send(self, message):
        self.line(json.dumps(message))

    def read(self):
        line = self.process.stdout.readline()
        assert line, "the connection ended"
        return json.loads(line)

    def answers(self, *ids):
        """Returns the answers up to those to all of IDS, in order, without the server's own requests and notifications. Answers to no request have the id None."""
        seen, missing = [], list(ids)
        while missing:
            message = self.read()
            if "method" not in message:
                seen.append(message)
                if message.get("id") in missing:
                    missing.remove(message["id"])
        return seen

    def answer(self, id):
        return self.answers(id)[-1]

    def ask(self, method, params):
        self.next_id += 1
        self.send(request(self.next_id, method, params))
        return self.answer(self.next_id)

    def evaluate(self, code, **more):
        return self.ask("tools/call", {"name": "evaluate-lisp", "arguments": {"code": code, **more}})["result"]["content"][0]["text"]

    def lives(self):
        assert self.evaluate("(+ 1 2)") == "=> 3"


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s in vain: {what}"
        time.sleep(0.05)


LOOP = "(setf cl-user::*raw-loops* t) (unwind-protect (loop) (setf cl-user::*raw-loops* nil))"


def looping(wire):
    return wire.evaluate("(and (boundp 'cl-user::*raw-loops*) (symbol-value 'cl-user::*raw-loops*))") == "=> T"


@check
def every_revision_with_a_handshake_is_spoken():
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]:
        with Wire(version) as wire:
            assert wire.greeting["protocolVersion"] == version, wire.greeting
            assert wire.ask("ping", {})["result"] == {}
            assert len(wire.ask("tools/list", {})["result"]["tools"]) >= 2
            wire.lives()


@check
def a_hostile_clone_runs_nothing_for_an_agent_until_a_person_trusts_it():
    with tempfile.TemporaryDirectory() as place:
        clone = Clone(os.path.join(place, "clone"))

        def told(text):
            return [line for line in text.splitlines() if "consort trust" in line]

        def image(wire):
            return wire.ask("tools/call", {"name": "image", "arguments": {"action": "status"}})["result"]["content"][0]["text"]

        try:
            with Wire(workspace=clone.directory) as wire:
                wire.ask("tools/list", {})
                assert clone.ran() == [], clone.ran()
                first = wire.evaluate("(+ 1 2)")
                assert "=> 3" in first and len(told(first)) == 1, first
                assert told(wire.evaluate("(+ 1 2)")) == []
                assert told(image(wire))
                # No tool of an agent can give trust.
                names = [tool["name"] for tool in wire.ask("tools/list", {})["result"]["tools"]]
                assert not [name for name in names if "trust" in name], names
                assert clone.ran() == [], clone.ran()
            clone.trust()
            with Wire(workspace=clone.directory) as wire:
                assert wire.evaluate("(+ 1 2)") == "=> 3"
                assert clone.ran() == ["init"], clone.ran()
                assert told(image(wire)) == []
        finally:
            clone.consort("stop")


@check
def an_unknown_revision_is_answered_with_one_we_speak():
    with Wire("1999-12-31") as wire:
        assert wire.greeting["protocolVersion"] == "2025-11-25"
        wire.lives()


@check
def the_2026_revision_needs_no_handshake():
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with Wire(None) as wire:
        discovered = wire.ask("server/discover", {"_meta": meta})["result"]
        assert "2026-07-28" in discovered["supportedVersions"] and "2025-11-25" in discovered["supportedVersions"], discovered
        assert len(wire.ask("tools/list", {"_meta": meta})["result"]["tools"]) >= 2
        call = {"name": "evaluate-lisp", "arguments": {"code": "(in-package :keyword)"}, "_meta": meta}
        assert wire.ask("tools/call", call)["result"]["resultType"] == "complete"
        call["arguments"]["code"] = "(cl:package-name cl:*package*)"
        assert wire.ask("tools/call", call)["result"]["content"][0]["text"] == '=> "KEYWORD"'


@check
def after_discover_a_client_may_still_shake_hands():
    with Wire(None) as wire:
        wire.ask("server/discover", {})
        assert wire.ask("initialize", initialize())["result"]["protocolVersion"] == "2025-11-25"
        wire.lives()


@check
def lines_that_are_no_json_are_answered_and_survived():
    with Wire() as wire:
        for bad in [b"{not json", b"\xff\xfe\x00", b"[" * 200_000, b'{"jsonrpc": "2.0", "id": 1,']:
            wire.line(bad)
            error = wire.answer(None)
            assert error["error"]["code"] == -32700 and error["id"] is None, error
        wire.lives()


@check
def a_line_of_20_mb_is_answered_under_its_id_and_survived():
    with Wire() as wire:
        wire.send(evaluation("big", '"' + "x" * (20 << 20) + '"'))
        error = wire.answer("big")["error"]
        assert error["code"] == -32600 and "bytes" in error["message"], error
        wire.lives()


@check
def requests_that_are_none_are_answered():
    with Wire() as wire:
        for bad, id, code in [
            ({"jsonrpc": "2.0", "id": 71, "method": "no/such"}, 71, -32601),
            ({"jsonrpc": "2.0", "id": 72, "method": "tools/call", "params": {"arguments": {}}}, 72, -32602),
            ({"jsonrpc": "2.0", "id": 73, "method": "tools/call", "params": {"name": "evaluate-lisp", "arguments": "code"}}, 73, -32602),
            ({"jsonrpc": "2.0", "id": 74, "method": "tools/call", "params": {"name": "nothing", "arguments": {}}}, 74, -32602),
            ({"id": 75}, 75, -32600),
        ]:
            wire.send(bad)
            error = wire.answer(id)
            assert error["error"]["code"] == code, error
        wire.line('{"jsonrpc": "2.0", "id": 76, "method": "tools/call", "params": {"name": "evaluate-lisp", "arguments": {"code": "\\ud800"}}}')
        assert wire.answer(76)["error"]["code"] == -32700
        wire.lives()


@check
def a_batch_of_the_old_revision_is_answered():
    with Wire("2025-03-26") as wire:
        wire.send([evaluation("a", "(+ 1 1)"), request("b", "ping", {})])
        wire.answers("a", "b")


@check
def ping_is_answered_while_lisp_loops_and_a_cancelled_request_is_not():
    with Wire() as wire:
        wire.send(evaluation("endless", LOOP, timeout=300))
        with Wire() as other:
            until(lambda: looping(other), "the loop never began")
            assert wire.ask("ping", {})["result"] == {}
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "endless", "reason": "test"}}
            wire.send(cancelled)
            until(lambda: not looping(other), "the loop was not stopped")
        # An answer to it would come before this one.
        wire.send(evaluation("after", "(+ 1 2)"))
        answers = wire.answers("after")
        assert [answer["id"] for answer in answers] == ["after"], answers


@check
def a_client_that_vanishes_ends_its_loop():
    with Wire() as other:
        with Wire() as wire:
            wire.send(evaluation(99, LOOP, timeout=300))
            until(lambda: looping(other), "the loop never began")
        until(lambda: not looping(other), "the loop of a client that has gone runs on")


@check
def requests_piped_in_are_answered_before_it_leaves():
    lines = [request(1, "initialize", initialize()), evaluation(2, "(progn (sleep 1) (* 6 7))"), evaluation(3, "(sleep 0.1)")]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([CONSORT, "mcp", "--workspace", WORKSPACE], input=text, capture_output=True, text=True, timeout=PATIENCE)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines()) if "method" not in answer}
    assert answers.keys() == {1, 2, 3}, done
    assert answers[2]["result"]["content"][0]["text"] == "=> 42"
    assert done.returncode == 0


@check
def a_client_that_never_reads_holds_up_nobody():
    with Wire() as deaf, Wire() as other:
        asked = []

        def flood():
            try:
                for id in range(2000):
                    deaf.send(evaluation(1000 + id, "(make-string 100000 :initial-element #\\x)"))
                    asked.append(id)
            except (BrokenPipeError, ValueError):
                pass

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        until(lambda: len(asked) > 20, "the flood never began")
        for _ in range(20):
            other.lives()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the flood goes on without anybody to read it"
    with Wire() as wire:
        wire.lives()


# HTTP.


class HttpServer:
    """`consort serve --http` for a workspace of its own."""

    def __init__(self):
        self.workspace = os.path.join(WORKSPACE, "http")
        os.makedirs(self.workspace, exist_ok=True)
        open(os.path.join(self.workspace, "consort.toml"), "a").close()
        command = [CONSORT, "serve", "--workspace", self.workspace, "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        watch = threading.Timer(PATIENCE, self.process.kill)
        watch.start()
        said = []
        for line in self.process.stderr:
            said.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp .* the token is in (\S+)", line)
            if found:
                self.port, self.token_file = int(found[1]), found[2]
                break
        else:
            watch.cancel()
            raise AssertionError(f"`consort serve --http` does not listen: {''.join(said)}")
        watch.cancel()
        # Drains standard error, so that the server does not block.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        with open(self.token_file) as file:
            self.token = file.read().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def post(self, message, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", "/mcp", json.dumps(message) if not isinstance(message, str) else message, given)
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response, body


@check
def http_wants_the_token_and_no_host_or_web_page_of_another_machine():
    with HttpServer() as server:
        assert stat.S_IMODE(os.stat(server.token_file).st_mode) == 0o600
        assert len(server.token) >= 32
        hello = request(1, "initialize", initialize())
        bearer = f"Bearer {server.token}"
        for headers, status in [
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": f"Basic {server.token}"}, 401),
            ({"Authorization": bearer, "Host": "evil.example"}, 403),
            ({"Authorization": bearer, "Host": "[::1].evil.example"}, 403),
            ({"Authorization": bearer, "Origin": "http://evil.example"}, 403),
            ({"Authorization": bearer, "Origin": "null"}, 403),
            ({"Authorization": bearer, "Origin": "https://localhost.evil.example"}, 403),
            ({"Authorization": bearer, "Origin": f"http://127.0.0.1:{server.port}"}, 200),
            ({"Authorization": bearer}, 200),
            ({"Authorization": bearer, "Host": f"localhost:{server.port}"}, 200),
        ]:
            response, body = server.post(hello, **headers)
            assert response.status == status, (headers, response.status, body)
            if status == 401:
                assert response.getheader("WWW-Authenticate", "").startswith("Bearer"), response.getheaders()


@check
def http_keeps_a_session_and_survives_what_is_no_request():
    with HttpServer() as server:
        bearer = f"Bearer {server.token}"
        response, body = server.post(request(1, "initialize", initialize()), Authorization=bearer)
        session = response.getheader("Mcp-Session-Id")
        assert session and '"protocolVersion":"2025-11-25"' in body, body
        headers = {"Authorization": bearer, "Mcp_Session_Id": session, "MCP_Protocol_Version": "2025-11-25"}
        server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
        for id, code, answer in [(2, "(in-package :keyword)", "KEYWORD"), (3, "(cl:package-name cl:*package*)", "KEYWORD")]:
            body = server.post(evaluation(id, code), **headers)[1]
            assert answer in body, body
        for bad in ["{not json", "[" * 200_000]:
            assert 400 <= server.post(bad, **headers)[0].status < 500
        assert server.post("x" * (17 << 20), **headers)[0].status == 413
        assert "=> 3" in server.post(evaluation(4, "(cl:+ 1 2)"), **headers)[1]


@check
def http_refuses_an_address_that_others_reach():
    command = [CONSORT, "serve", "--workspace", os.path.join(WORKSPACE, "http"), "--http", "0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0 and "loopback" in done.stderr, done


def main():
    chosen = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    passed = failed = 0
    for one in CHECKS:
        if not chosen.search(one.__name__):
            continue
        try:
            one()
            passed += 1
            print(f"ok      raw {one.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  raw {one.__name__}", flush=True)
            traceback.print_exc(limit=-3)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


main()
