"""Serves one client on the standard streams until its input ends."""

import asyncio
import os
import signal
import sys
from contextlib import suppress

from trimtab.contracts.errors import ConfigurationError
from trimtab.transports.acp.agent import EditorAgent
from trimtab.transports.acp.connection import Connection

CLOSING = 0.8
"""Seconds that sessions have to close when the client has gone."""


async def serve_stdio(agent: EditorAgent) -> int:
    loop = asyncio.get_running_loop()
    out = os.dup(1)
    os.dup2(2, 1)  # standard output carries the protocol only; everything else goes to stderr
    try:
        transport, _ = await loop.connect_write_pipe(
            lambda: OutputWatcher(agent), os.fdopen(out, "wb", buffering=0)
        )
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            f"Standard output cannot carry the protocol ({error}); start the program with pipes."
        ) from None
    agent.connection.write_to(transport)
    await read_stdin(agent.connection)
    end_on_signals(agent)
    await agent.ended.wait()
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSING):
            await agent.close()
    return 0


async def read_stdin(connection: Connection) -> None:
    loop = asyncio.get_running_loop()
    try:
        await loop.connect_read_pipe(lambda: connection, sys.stdin)
    except (ValueError, PermissionError):  # a regular file cannot be polled
        data = await loop.run_in_executor(None, sys.stdin.buffer.read)
        connection.data_received(data)
        connection.eof_received()
        loop.call_later(0.1, connection.connection_lost, None)


class OutputWatcher(asyncio.BaseProtocol):
    """Ends the agent when nobody reads its output."""

    def __init__(self, agent: EditorAgent) -> None:
        self._agent = agent

    def connection_lost(self, exc: Exception | None) -> None:
        self._agent.ended.set()


def end_on_signals(agent: EditorAgent) -> None:
    loop = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        if agent.ended.is_set():
            os._exit(128 + number)
        agent.ended.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
