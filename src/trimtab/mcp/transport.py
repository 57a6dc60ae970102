"""The interface of MCP transports."""

from collections.abc import Callable, Mapping
from typing import Protocol

from trimtab.contracts.events.envelope import JsonObject

Deliver = Callable[[JsonObject], None]
"""Called with each message of the server."""
NO_HEADERS: Mapping[str, str] = {}


class Channel(Protocol):
    """Carries messages to a server and back.

    `deliver` is called with each message of the server; `lost` once, with the reason, when the
    connection ends.
    """

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        """Prepare to send. Raises `ServerProblem`."""
        ...

    async def send(self, message: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> bool:
        """Send a message; return True if its answer may still arrive.

        `headers` go with it where the transport has headers. Raises `ServerProblem`, or
        `RemoteError` if the server answers in the head of its answer.
        """
        ...

    @property
    def cancels_by_closing(self) -> bool:
        """True if giving up `send` tells the server that nobody waits for the answer."""
        ...

    @property
    def noise(self) -> str:
        """The beginning of what the server wrote that is not a message; empty if nothing."""
        ...

    def ready(self, version: str) -> None:
        """Called once the protocol version is known."""
        ...

    async def aclose(self) -> None: ...
