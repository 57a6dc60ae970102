"""The interface of MCP transports."""

from collections.abc import Callable
from typing import Protocol

from trimtab.contracts.events.envelope import JsonObject

Deliver = Callable[[JsonObject], None]
"""Called with each message of the server."""


class Channel(Protocol):
    """Carries messages to a server and back.

    `deliver` is called with each message of the server; `lost` once, with the reason, when the
    connection ends.
    """

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        """Prepare to send. Raises `ServerProblem`."""
        ...

    async def send(self, message: JsonObject) -> bool:
        """Send a message; return True if its answer may still arrive. Raises `ServerProblem`."""
        ...

    def ready(self, version: str) -> None:
        """Called once the protocol version is negotiated."""
        ...

    async def aclose(self) -> None: ...
