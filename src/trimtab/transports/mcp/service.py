"""The interface between what is served over MCP and how it is served."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from trimtab.contracts.events.envelope import JsonObject

Notify = Callable[[str, JsonObject], None]
"""Sends the client a notification: its method and its parameters."""
Request = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Asks the client something. Raises `RemoteError`."""


class ClientLink:
    """One client of a service: its capabilities, and ways to tell and to ask it something."""

    def __init__(self, capabilities: JsonObject, notify: Notify, request: Request) -> None:
        self.capabilities = capabilities
        self.notify = notify
        self.request = request


class Service(Protocol):
    """Answers the requests of one client. It is made anew for each client."""

    async def describe(self) -> JsonObject:
        """Return `capabilities`, `serverInfo` and perhaps `instructions`. Raises `RemoteError`."""
        ...

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a request. Raises `RemoteError`."""
        ...

    async def aclose(self) -> None: ...


NewService = Callable[[ClientLink], Service]
