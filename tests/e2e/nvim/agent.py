"""An agent: the official MCP SDK over `consort mcp`, in a thread of its own, so that the person can answer while a call waits."""

import asyncio
import os
import queue
import threading

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client


class Agent:
    def __init__(self, workspace, env):
        self.parameters = StdioServerParameters(command=os.environ["CONSORT_BIN"], args=["mcp", "--workspace", workspace], env=env)
        self.calls, self.thread = queue.Queue(), threading.Thread(target=lambda: asyncio.run(self.run()), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.calls.put(None)
        self.thread.join(30)

    async def run(self):
        who = types.Implementation(name="Claude Code", version="2.1")
        async with stdio_client(self.parameters) as (read, write), ClientSession(read, write, client_info=who) as session:
            await session.initialize()
            while call := await asyncio.to_thread(self.calls.get):
                name, arguments, answer = call
                try:
                    answer.put(await session.call_tool(name, arguments))
                except Exception as error:  # to be raised where it is asked for
                    answer.put(error)

    def call(self, name, **arguments):
        """Start a call; the queue gets its result."""
        answer = queue.Queue()
        self.calls.put((name, arguments, answer))
        return answer

    @staticmethod
    def result(answer, patience=120):
        got = answer.get(timeout=patience)
        if isinstance(got, Exception):
            raise got
        return got
