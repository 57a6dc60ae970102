"""Makes the sessions of this process reachable for others."""

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession


def open_socket(live: "LiveSession") -> None:
    """Host a session; what serves the clients of its socket is imported with the first."""
    from trimtab.host.opened import host_session

    def serve(live: "LiveSession", connection: socket.socket) -> None:
        from trimtab.transports.rpc.visits import serve

        serve(live, connection)

    host_session(live, serve)
