"""The interface between what is served over MCP and how it is served."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import INVALID_PARAMS, RemoteError

Notify = Callable[[str, JsonObject], None]
"""Sends the client a notification: its method and its parameters."""
Request = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Asks the client something. Raises `RemoteError`."""


class ClientLink:
    """One client of a service: its capabilities, and ways to tell and to ask it something."""

    def __init__(
        self, capabilities: JsonObject, notify: Notify, request: Request, *, stateless: bool = False
    ) -> None:
        self.capabilities = capabilities
        self.notify = notify
        self.request = request
        self.stateless = stateless
        """True if the client speaks the version without sessions, whose questions are results."""


class Service(Protocol):
    """Answers the requests of one client. It is made anew for each client."""

    async def describe(self) -> JsonObject:
        """Return `capabilities`, `serverInfo` and perhaps `instructions`. Raises `RemoteError`."""
        ...

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a request. Raises `RemoteError`."""
        ...

    async def take_notice(self, method: str, params: JsonObject) -> None:
        """Take a notification of the client."""
        ...

    async def listen(self, wanted: JsonObject) -> None:
        """Have changes reported to the client until this is cancelled, or as long as it lives."""
        ...

    async def aclose(self) -> None: ...


NewService = Callable[[ClientLink], Service]


def drop_input(params: JsonObject) -> JsonObject:
    """Return the parameters of a request without answers to questions that nobody asked.

    Raises `RemoteError` if they continue a request that is not open: it would be made twice.
    """
    if params.get("requestState") is not None:
        raise RemoteError(
            "This requestState is unknown or too old; send the request again without it.",
            INVALID_PARAMS,
        )
    return {
        name: value
        for name, value in params.items()
        if name not in ("inputResponses", "requestState")
    }
