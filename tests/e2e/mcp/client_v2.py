"""The official Python SDK, second line (`mcp` 2.x): revision 2026-07-28, found by `server/discover`; with `legacy`, the handshake."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from mcp import Client, MCPError, StdioServerParameters

import runner
from contract import ProtocolError

MODE = os.environ.get("MCP_MODE", "auto")


class Agent:
    def __init__(self, consort, workspace):
        self.parameters = StdioServerParameters(command=consort, args=["mcp", "--workspace", workspace], env=os.environ.copy())
        self.made_of = (consort, workspace)

    async def __aenter__(self):
        self.stack = AsyncExitStack()
        self.client = await self.stack.enter_async_context(Client(self.parameters, mode=MODE))
        return self

    async def __aexit__(self, *_):
        await self.stack.aclose()

    async def another(self):
        return await self.stack.enter_async_context(Agent(*self.made_of))

    async def tools(self):
        tools = (await self.client.list_tools()).tools
        return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools]

    async def call(self, name, arguments, on_progress=None):
        async def progress(amount, _total, message):
            on_progress(amount, message)

        try:
            result = await self.client.call_tool(name, arguments, progress_callback=progress if on_progress else None)
        except MCPError as error:
            raise ProtocolError(error.error.message) from error
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def start(self, name, arguments):
        return asyncio.ensure_future(self.client.call_tool(name, arguments))


async def the_newest_revision_of_its_era_is_spoken(agent):
    version = agent.client.protocol_version
    assert version == ("2026-07-28" if MODE == "auto" else "2025-11-25"), version
    assert agent.client.server_info.name == "consort"
    assert "compile-form" in agent.client.instructions


if __name__ == "__main__":
    sys.exit(runner.main(f"python-v2-{MODE}", Agent, [the_newest_revision_of_its_era_is_spoken]))
