"""Serves the clients of a session's socket, whichever transport hosts the session."""

import asyncio
import socket
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.host.hosted import HostedSession
from trimtab.host.participants import Capabilities
from trimtab.runtime.live import LiveSession
from trimtab.transports.rpc.protocol import FAILED, RpcError
from trimtab.transports.rpc.server import Server

if TYPE_CHECKING:
    from trimtab.runtime.runtime import Runtime

_servers: "WeakKeyDictionary[LiveSession, VisitServer]" = WeakKeyDictionary()
"""The server of each session that was visited; it ends with the session."""


class HostClient:
    """The process that hosts a session, as one of its clients: others do not own the session."""

    def send_event(self, session_id: str, event: Event, line: bytes) -> None:
        """Do nothing: the host subscribed to the session itself."""

    async def ask(self, method: str, params: JsonObject) -> Any:
        """Leave the question to others."""
        await asyncio.get_running_loop().create_future()


class VisitedSession(HostedSession):
    """A session whose host is no `HostedSession`: clients follow it and send it prompts.

    They add no tools. Its questions are put where it is hosted; the first answer counts.
    """

    def __init__(self, live: LiveSession) -> None:
        super().__init__(live.id, lambda _: None)
        self.questions = live.questions
        self.join(HostClient(), Capabilities())
        self.attach(live)
        live.on_close(live.subscribe(self.as_client().on_event or (lambda _event, _line: None)))

    def refresh(self) -> None:
        """Do nothing: the host chose the tools."""


class VisitServer(Server):
    """Serves the clients of one session's socket. They can leave the session, not close it."""

    def __init__(self, live: LiveSession) -> None:
        setup = live.controls.setup
        super().__init__(setup.env, defaults=live.controls.options)
        host = live.host
        hosted = host if isinstance(host, HostedSession) else VisitedSession(live)
        self.sessions[hosted.id] = hosted

    @property
    def runtime(self) -> "Runtime":
        raise RpcError(FAILED, "This socket serves one session; open others with `trimtab`.")

    def runtime_for(self, token: str | None) -> "Runtime":
        return self.runtime

    async def close_session(self, session_id: str, *, suspend: bool = False) -> None:
        """Do nothing: the session belongs to the process that hosts it."""

    async def shut_down(self) -> None:
        """Do nothing, for the same reason."""


def serve(live: LiveSession, connection: socket.socket) -> None:
    """Serve a client that has connected to the socket of a session."""
    server = _servers.get(live)
    if server is None:
        server = _servers[live] = VisitServer(live)

        def end() -> None:
            for peer in tuple(server.peers):
                peer.close()

        live.on_close(end)
    server.serve_socket(connection)
