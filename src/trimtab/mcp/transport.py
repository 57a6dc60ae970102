"""What carries messages to a server and back."""

from collections.abc import Callable
from typing import Protocol

from trimtab.contracts.events.envelope import JsonObject

Deliver = Callable[[JsonObject], None]


class Channel(Protocol):
    """A connection to one server.

    What comes from it is given to `deliver`; `lost` is told, once, why it is over.
    """

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        """Get ready to send. Raises `ServerProblem`."""
        ...

    async def send(self, message: JsonObject) -> bool:
        """Send a message; whether its answer may still come. Raises `ServerProblem`."""
        ...

    def ready(self, version: str) -> None:
        """The server has agreed to a version of the protocol."""
        ...

    async def aclose(self) -> None: ...
