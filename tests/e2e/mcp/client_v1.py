"""The official Python SDK, first line (`mcp` 1.x): the `initialize` handshake, revisions up to 2025-11-25."""

import asyncio
from contextlib import AsyncExitStack

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

import runner
from contract import ProtocolError


class Agent:
    def __init__(self, consort, workspace):
        self.parameters = StdioServerParameters(command=consort, args=["mcp", "--workspace", workspace], env=runner.os.environ.copy())
        self.made_of = (consort, workspace)

    async def __aenter__(self):
        self.stack = AsyncExitStack()
        read, write = await self.stack.enter_async_context(stdio_client(self.parameters))
        self.session = await self.stack.enter_async_context(ClientSession(read, write))
        self.greeting = await self.session.initialize()
        return self

    async def __aexit__(self, *_):
        await self.stack.aclose()

    async def another(self):
        return await self.stack.enter_async_context(Agent(*self.made_of))

    async def tools(self):
        tools = (await self.session.list_tools()).tools
        return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools]

    async def call(self, name, arguments, on_progress=None):
        async def progress(amount, _total, message):
            on_progress(amount, message)

        try:
            result = await self.session.call_tool(name, arguments, progress_callback=progress if on_progress else None)
        except McpError as error:
            raise ProtocolError(error.error.message) from error
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def start(self, name, arguments):
        """This line of the SDK does not cancel the request of a task that is cancelled: send what the specification says."""
        agent = self

        class Started:
            def __init__(self):
                self.request = agent.session._request_id
                self.task = asyncio.ensure_future(agent.session.call_tool(name, arguments))

            def cancel(self):
                parameters = types.CancelledNotificationParams(requestId=self.request, reason="the test says so")
                notification = types.ClientNotification(types.CancelledNotification(params=parameters))
                self.sent = asyncio.ensure_future(agent.session.send_notification(notification))
                self.task.cancel()

        return Started()


async def the_handshake_names_consort_and_the_newest_revision(agent):
    assert agent.greeting.serverInfo.name == "consort", agent.greeting
    assert agent.greeting.protocolVersion == types.LATEST_PROTOCOL_VERSION, agent.greeting.protocolVersion
    assert "compile-form" in agent.greeting.instructions


async def a_ping_is_answered(agent):
    await agent.session.send_ping()


if __name__ == "__main__":
    runner.main("python-v1", Agent, [the_handshake_names_consort_and_the_newest_revision, a_ping_is_answered])
