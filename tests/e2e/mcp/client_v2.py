"""The official Python SDK, second major version (`mcp` 2.x): revision 2026-07-28, found by `server/discover`; with `legacy`, the handshake."""

import asyncio
import os

from mcp import Client, MCPError

import agent as common
import runner

MODE = os.environ.get("MCP_MODE", "auto")


class Agent(common.Agent):
    Error = MCPError

    async def connect(self):
        return await self.stack.enter_async_context(Client(self.parameters, mode=MODE))

    def start(self, name, arguments):
        return asyncio.ensure_future(self.peer.call_tool(name, arguments))


async def the_newest_revision_of_its_era_is_spoken(agent):
    version = agent.peer.protocol_version
    assert version == ("2026-07-28" if MODE == "auto" else "2025-11-25"), version
    assert agent.peer.server_info.name == "consort"
    assert "compile-form" in agent.peer.instructions


if __name__ == "__main__":
    runner.main(f"python-v2-{MODE}", Agent, [the_newest_revision_of_its_era_is_spoken])
