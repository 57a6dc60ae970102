"""Serves one client on the standard streams until its input ends."""

import asyncio
import os
import signal
from contextlib import suppress

from trimtab.contracts.errors import ConfigurationError
from trimtab.host.standard_input import read_stdin
from trimtab.transports.acp.agent import EditorAgent

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
