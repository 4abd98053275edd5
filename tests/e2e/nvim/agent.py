"""An agent: the official MCP SDK over `consort mcp`, in a thread of its own, so that the person can answer while a call waits."""

import asyncio
import os
import queue
import threading

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from terminal import PATIENCE


class Agent:
    def __init__(self, workspace, env):
        self.parameters = StdioServerParameters(command=os.environ["CONSORT_BIN"], args=["mcp", "--workspace", workspace], env=env)

    def __enter__(self):
        self.calls, begun = queue.Queue(), queue.Queue()
        self.thread = threading.Thread(target=self.live, args=[self.calls, begun], daemon=True)
        self.thread.start()
        self.result(begun)
        return self

    def __exit__(self, *_):
        self.calls.put(None)
        self.thread.join(PATIENCE)

    def anew(self):
        """Opens another connection. The one before still gets the answers to its calls."""
        self.calls.put(None)
        self.__enter__()

    def live(self, calls, begun):
        """Runs in the thread. BEGUN gets a value once the agent is connected, or the error; calls after the end of the connection get the error too."""
        try:
            asyncio.run(self.run(calls, begun))
        except BaseException as error:  # also exception groups, which a failing client raises
            begun.put(error)
            while call := calls.get():
                call[2].put(error)

    async def run(self, calls, begun):
        who = types.Implementation(name="Claude Code", version="2.1")
        async with stdio_client(self.parameters) as (read, write), ClientSession(read, write, client_info=who) as session:
            begun.put(await session.initialize())
            while call := await asyncio.to_thread(calls.get):
                name, arguments, answer = call
                try:
                    answer.put(await session.call_tool(name, arguments))
                except Exception as error:  # raised by `result`
                    answer.put(error)

    def call(self, name, **arguments):
        """Starts a call; the queue gets its result."""
        answer = queue.Queue()
        self.calls.put((name, arguments, answer))
        return answer

    @staticmethod
    def result(answer, patience=PATIENCE):
        got = answer.get(timeout=patience)
        if isinstance(got, BaseException):
            raise got
        return got
