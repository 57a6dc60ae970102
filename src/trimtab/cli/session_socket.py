"""Makes the sessions of this process reachable for others."""

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.contracts.run import Prompt
    from trimtab.runtime.live import LiveSession


def open_socket(live: "LiveSession") -> None:
    """Listen on the socket of a session; what serves its clients is imported with the first."""
    from trimtab.host.session_socket import listen

    def serve(live: "LiveSession", connection: socket.socket) -> None:
        from trimtab.transports.rpc.visits import serve

        serve(live, connection)

    listen(live, serve)
    live.start_fleet = start_fleet


async def start_fleet(live: "LiveSession", goal: "Prompt") -> str:
    """Start a fleet for a session; what runs it is imported with the first."""
    from trimtab.fleet.session_fleet import start_in_session

    return await start_in_session(live, goal)
