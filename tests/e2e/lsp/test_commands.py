"""consort.eval and its sisters; cancelling; a client that vanishes; an image that dies."""

import asyncio
import json
import os
import signal

import pytest
from conftest import CONSORT, PATIENCE
from lsprotocol import types
from pygls.exceptions import JsonRpcException


def first(answer):
    return answer["values"][0]


async def test_eval_answers_with_values_output_and_package(client):
    answer = await client.eval('(princ "hello") (warn "careful") (values 1 "two" :three)')
    assert answer["values"] == ["1", '"two"', ":THREE"]
    assert answer["stdout"] == "hello"
    assert [warning["message"] for warning in answer["warnings"]] == ["careful"]
    await client.eval("(defpackage :there (:use :cl)) (in-package :there)")
    assert first(await client.eval("(package-name *package*)")) == '"THERE"'
    assert first(await client.eval("(package-name *package*)", package="CL-USER")) == '"COMMON-LISP-USER"'
    assert first(await client.eval("(package-name *package*)")) == '"THERE"'


async def test_an_error_is_an_answer_with_a_backtrace(client):
    answer = await client.eval("(defun trouble (x) (list (/ 1 x))) (trouble 0)")
    assert answer["status"] == "error" and answer["error"]["type"] == "DIVISION-BY-ZERO"
    assert answer["error"]["operation"] == "/"
    [frame] = [frame for frame in answer["error"]["backtrace"] if frame["name"] == "TROUBLE"]
    assert frame == {"text": "(TROUBLE 0)", "name": "TROUBLE", "method": None, "role": "program", "args": ["0"], "file": None, "line": None}


@pytest.mark.parametrize("argument", [{}, {"code": 7}, {"code": "1", "package": 3}, "1", None, [1]])
async def test_bad_arguments_are_refused_in_words(client, argument):
    with pytest.raises(JsonRpcException) as refused:
        await client.command("consort.eval", argument)
    assert refused.value.code == -32602
    assert "code" in str(refused.value) or "package" in str(refused.value) or "object" in str(refused.value)


async def test_an_unknown_command_and_an_unknown_package_are_refused(client):
    with pytest.raises(JsonRpcException):
        await client.command("consort.noSuchCommand", {})
    with pytest.raises(JsonRpcException) as refused:
        await client.eval("1", package="NO-SUCH")
    assert "NO-SUCH" in str(refused.value)


async def test_code_that_cannot_be_read_is_placed_by_its_characters(workspace):
    for encodings, column in (["utf-16"], 7), (["utf-8"], 11), (["utf-32"], 5):
        client = await workspace.connect([types.PositionEncodingKind(one) for one in encodings])
        uri = workspace.uri(f"{encodings[0]}.lisp")
        text = '"𝄞𝄞" (list 1\n'
        client.open(uri, text)
        code = text.strip()[5:]
        answer = await client.eval(code, uri=uri, position={"line": 0, "character": column})
        assert answer["error"]["message"].endswith("(line 1, column 6)"), (encodings, answer)


async def test_cancelling_stops_the_loop_and_keeps_the_state(workspace, client):
    await client.eval("(defvar *kept* 41)")
    other = await workspace.connect()
    loop = client.start_eval("(incf *kept*) (loop)", "the-loop")
    await other.eval_until("*kept*", "42")
    client.cancel_request(types.CancelParams(id="the-loop"))
    with pytest.raises(JsonRpcException) as cancelled:
        await asyncio.wait_for(loop, PATIENCE)
    assert cancelled.value.code == -32800
    assert first(await client.eval("*kept*")) == "42"
    await other.shutdown_session()


async def test_interrupt_stops_the_loop_and_keeps_the_state(workspace, client):
    await client.eval("(defvar *kept* 41)")
    loop = client.start_eval("(incf *kept*) (loop)", "the-loop")
    other = await workspace.connect()
    await other.eval_until("*kept*", "42")
    await client.command("consort.interrupt", {})
    answer = await asyncio.wait_for(loop, PATIENCE)
    assert answer["status"] == "interrupted"
    assert first(await client.eval("*kept*")) == "42"
    await other.shutdown_session()


async def test_two_clients_share_an_image_and_each_has_its_package(workspace, client):
    other = await workspace.connect()
    await client.eval("(defpackage :mine (:use :cl)) (in-package :mine) (defun cl-user::shared () 7)")
    assert first(await other.eval("(cl-user::shared)")) == "7"
    assert first(await other.eval("(package-name *package*)")) == '"COMMON-LISP-USER"'
    assert first(await client.eval("(sb-posix:getpid)")) == first(await other.eval("(sb-posix:getpid)"))
    await other.shutdown_session()


async def test_a_client_that_vanishes_takes_its_evaluation_and_nothing_else(workspace, client):
    await client.eval("(defvar *runs* nil)")
    doomed = await workspace.connect()
    loop = doomed.start_eval("(unwind-protect (loop (setf *runs* t) (sleep 0.01)) (setf *runs* :ended))", "the-loop")
    await client.eval_until("*runs*", "T")
    doomed._server.kill()
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(loop, PATIENCE)
    await client.eval_until("*runs*", ":ENDED")


async def test_a_dead_image_comes_back_and_says_so(workspace, client):
    (workspace.path / "kept.asd").write_text('(defsystem "kept" :components ((:file "kept")))')
    (workspace.path / "kept.lisp").write_text("(defun cl-user::kept () :still-here)\n")
    await client.command("consort.loadSystem", {"system": "kept"})
    pid = int(first(await client.eval("(sb-posix:getpid)")))
    before = len(client.messages)
    os.kill(pid, signal.SIGKILL)
    await client.wait_until(lambda: client.messages[before:], "nobody was told")
    assert first(await client.eval("(cl-user::kept)")) == ":STILL-HERE"
    assert int(first(await client.eval("(sb-posix:getpid)"))) != pid


async def test_restart_image_gives_a_new_one(client):
    pid = first(await client.eval("(sb-posix:getpid)"))
    await client.eval("(defvar *gone* 1)")
    await client.command("consort.restartImage", {})
    assert first(await client.eval("(sb-posix:getpid)")) != pid
    assert first(await client.eval("(boundp (intern \"*GONE*\"))")) == "NIL"


async def run(workspace, *arguments):
    return await asyncio.create_subprocess_exec(
        CONSORT, *arguments, cwd=workspace.path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


async def test_a_command_is_told_that_the_image_is_suspended(workspace, client):
    pid = int(first(await client.eval("(sb-posix:getpid)")))
    os.kill(pid, signal.SIGSTOP)
    try:
        command = await run(workspace, "eval", "(+ 40 2)")
        line = await asyncio.wait_for(command.stderr.readline(), PATIENCE)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert f"(process {pid}) is suspended" in line.decode(), line
    out, _ = await asyncio.wait_for(command.communicate(), PATIENCE)
    assert out.decode() == "=> 42\n"


async def test_a_stray_signal_leaves_the_host(workspace, client):
    async def host():
        command = await run(workspace, "status", "--json")
        out, _ = await asyncio.wait_for(command.communicate(), PATIENCE)
        return json.loads(out)["host_pid"]

    pid = await host()
    for stray in signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPROF:
        os.kill(pid, stray)
    assert first(await client.eval("(+ 40 2)")) == "42"
    assert await host() == pid
