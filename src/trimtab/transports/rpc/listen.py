"""Listens for clients: on the standard streams, or on a port of this machine."""

import asyncio
import os
import signal
import sys

from trimtab.contracts.errors import ConfigurationError
from trimtab.host.connection_owner import can_find_owner, is_own
from trimtab.host.standard_input import read_stdin
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.server import Server


async def serve_stdio(server: Server) -> int:
    """Serve one client on the standard streams until its input ends."""
    loop = asyncio.get_running_loop()
    peer = server.new_peer()
    out_fd = _take_stdout()
    try:
        transport, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(out_fd, "wb", buffering=0)
        )
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            f"Standard output cannot carry frames ({error}); start the program with pipes."
        ) from None
    peer.use(transport, strict=False)
    await read_stdin(_StdinProtocol(server, peer))
    _end_on_signals(server)
    await server.ended.wait()
    await server.close()
    return 0


async def serve_port(server: Server, port: int) -> int:
    """Serve any number of clients on a port of this machine until a signal arrives."""
    loop = asyncio.get_running_loop()
    try:
        listener = await loop.create_server(lambda: new_peer(server), "127.0.0.1", port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"Port {port} cannot be used ({reason}); choose another."
        ) from None
    number = listener.sockets[0].getsockname()[1]
    print(f"Copilot-compatible server listening on port {number}", flush=True)
    print(describe_access(server), file=sys.stderr, flush=True)
    _end_on_signals(server)
    await server.ended.wait()
    listener.close()
    await server.close()
    return 0


def new_peer(server: Server) -> Peer:
    """Return the peer for a new connection; without a token only our own user may connect."""
    peer = server.new_peer()
    if not server.needs_token and can_find_owner():
        peer.admits = is_own
    return peer


def describe_access(server: Server) -> str:
    if server.needs_token:
        return "Clients need the token."
    if can_find_owner():
        return "Only clients of this user are served; set COPILOT_CONNECTION_TOKEN to serve others."
    return (
        "Every user of this machine is served, since the system does not say whose a connection "
        "is; set COPILOT_CONNECTION_TOKEN to serve only those who know it."
    )


def _take_stdout() -> int:
    """Reserve standard output for frames; redirect everything else to standard error."""
    fd = os.dup(1)
    os.dup2(2, 1)
    return fd


class _StdinProtocol(asyncio.Protocol):
    """Forwards bytes to the peer; ends the server at the end of the input."""

    def __init__(self, server: Server, peer: asyncio.Protocol) -> None:
        self._server = server
        self._peer = peer

    def data_received(self, data: bytes) -> None:
        self._peer.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.ended.set()


def _end_on_signals(server: Server) -> None:
    """End the server at the first signal, and the process at the second."""
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        server.ended.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
