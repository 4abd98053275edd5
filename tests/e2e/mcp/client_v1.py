"""The official Python SDK, first major version (`mcp` 1.x): the `initialize` handshake, revisions up to 2025-11-25."""

import asyncio

from mcp import ClientSession, McpError, types
from mcp.client.stdio import stdio_client

import agent as common
import runner


class Agent(common.Agent):
    Error = McpError

    async def connect(self):
        read, write = await self.stack.enter_async_context(stdio_client(self.parameters))
        session = await self.stack.enter_async_context(ClientSession(read, write))
        self.greeting = await session.initialize()
        return session

    def start(self, name, arguments):
        """Sends the cancellation itself, because this version of the SDK does not cancel the request of a cancelled task."""
        agent = self

        class Started:
            def __init__(self):
                self.request = agent.peer._request_id
                self.task = asyncio.ensure_future(agent.peer.call_tool(name, arguments))

            def cancel(self):
                parameters = types.CancelledNotificationParams(requestId=self.request, reason="the test says so")
                notification = types.ClientNotification(types.CancelledNotification(params=parameters))
                self.sent = asyncio.ensure_future(agent.peer.send_notification(notification))
                self.task.cancel()

        return Started()


async def the_handshake_names_consort_and_the_newest_revision(agent):
    assert agent.greeting.serverInfo.name == "consort", agent.greeting
    assert agent.greeting.protocolVersion == types.LATEST_PROTOCOL_VERSION, agent.greeting.protocolVersion
    assert "compile-form" in agent.greeting.instructions


async def a_ping_is_answered(agent):
    await agent.peer.send_ping()


if __name__ == "__main__":
    runner.main("python-v1", Agent, [the_handshake_names_consort_and_the_newest_revision, a_ping_is_answered])
