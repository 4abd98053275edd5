"""The common part of agents with the two major versions of the official Python SDK; client_v1 and client_v2 have how each connects and calls."""

from contextlib import AsyncExitStack

from mcp import StdioServerParameters

import runner
from contract import ProtocolError


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Agent:
    """One connection to `consort mcp`. A subclass has `connect`, which gives `peer`, by which tools are listed and called, and `Error`, which a refusal raises."""

    def __init__(self, consort, workspace):
        self.parameters = StdioServerParameters(command=consort, args=["mcp", "--workspace", workspace], env=runner.os.environ.copy())
        self.made_of = (consort, workspace)

    async def __aenter__(self):
        self.stack = AsyncExitStack()
        self.peer = await self.connect()
        return self

    async def __aexit__(self, *_):
        await self.stack.aclose()

    async def another(self):
        return await self.stack.enter_async_context(type(self)(*self.made_of))

    async def tools(self):
        return [plain(tool) for tool in (await self.peer.list_tools()).tools]

    async def call(self, name, arguments, on_progress=None):
        async def progress(amount, _total, message):
            on_progress(amount, message)

        try:
            result = await self.peer.call_tool(name, arguments, progress_callback=progress if on_progress else None)
        except self.Error as error:
            raise ProtocolError(error.error.message) from error
        return plain(result)
