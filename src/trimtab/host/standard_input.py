"""Reads standard input for a server, whatever it is connected to."""

import asyncio
import os
import stat
import sys


async def read_stdin(protocol: asyncio.Protocol) -> None:
    """Feed standard input to a protocol: as it arrives, or at once if it cannot be polled.

    The event loop reports a file or /dev/null only later, to nobody, and would wait forever.
    """
    loop = asyncio.get_running_loop()
    if can_be_polled(0):
        await loop.connect_read_pipe(lambda: protocol, sys.stdin)
        return
    data = await loop.run_in_executor(None, sys.stdin.buffer.read)
    protocol.data_received(data)
    protocol.eof_received()
    loop.call_later(0.1, protocol.connection_lost, None)


def can_be_polled(fd: int) -> bool:
    """Return True for pipes, sockets and terminals."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
