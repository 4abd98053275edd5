"""initialize, shutdown, exit, and messages at the wrong time."""

import asyncio

import pytest
from conftest import PATIENCE
from lsprotocol import types
from pygls.exceptions import JsonRpcException

COMMANDS = {"consort.eval", "consort.loadSystem", "consort.restartImage", "consort.interrupt"}


@pytest.mark.parametrize("way", ["pull", "push"])
async def test_initialize_says_what_it_can_do(workspace, way):
    client = await workspace.connect(options={"diagnostics": way})
    answer = client.answer
    assert answer.server_info.name.lower() == "consort"
    sync = answer.capabilities.text_document_sync
    assert sync.open_close is True and sync.change == types.TextDocumentSyncKind.Incremental and sync.save
    assert COMMANDS <= set(answer.capabilities.execute_command_provider.commands)
    # Never both ways, because editors would show each diagnostic twice.
    provider = answer.capabilities.diagnostic_provider
    assert provider.workspace_diagnostics is True if way == "pull" else provider is None
    await client.shutdown_session()


async def test_shutdown_then_exit_leaves_with_0(workspace):
    client = await workspace.connect()
    await client.shutdown_async(None)
    client.exit(None)
    assert await asyncio.wait_for(client._server.wait(), PATIENCE) == 0


async def test_exit_without_shutdown_leaves_with_1(workspace):
    client = await workspace.connect()
    client.exit(None)
    assert await asyncio.wait_for(client._server.wait(), PATIENCE) == 1


async def test_a_closed_input_ends_the_server(workspace):
    client = await workspace.connect()
    client._server.stdin.close()
    await asyncio.wait_for(client._server.wait(), PATIENCE)


async def test_a_request_before_initialize_is_refused(workspace):
    client = await workspace.connect(initialize=False)
    with pytest.raises(JsonRpcException) as refused:
        await asyncio.wait_for(client.start_eval("1", "too-early"), PATIENCE)
    assert refused.value.code == -32002


async def test_a_request_after_shutdown_is_refused(workspace):
    client = await workspace.connect()
    await client.shutdown_async(None)
    with pytest.raises(JsonRpcException) as refused:
        await client.command("consort.eval", {"code": "1"})
    assert refused.value.code == -32600
    client.exit(None)
    assert await asyncio.wait_for(client._server.wait(), PATIENCE) == 0


async def test_an_unknown_method_is_refused_and_the_session_goes_on(client):
    with pytest.raises(JsonRpcException) as refused:
        await client.protocol.send_request_async("textDocument/noSuchMethod", {})
    assert refused.value.code == -32601
    assert (await client.eval("(+ 1 2)"))["values"][0] == "3"
