"""Answers what a server asks: the folder of the session, a person's input, a model's reply."""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import AnswerServer
from trimtab.mcp.messages import METHOD_NOT_FOUND, RemoteError


class Answers(Protocol):
    """Answers the requests of a server."""

    @property
    def capabilities(self) -> JsonObject:
        """The requests the server may send, in the words of the protocol."""
        ...

    def asks(self, method: str) -> bool:
        """Return True if somebody must decide about a request, which may take long."""
        ...

    async def answer(self, method: str, params: JsonObject, number: str | int) -> JsonObject:
        """Return the result of a request with an id. Raises `RemoteError`."""
        ...


class ServerRequests:
    """The answers for one server. `handlers` are methods that need more than the folder.

    The capabilities say to the server what may be asked.
    """

    def __init__(
        self,
        server: str,
        cwd: str,
        handlers: Mapping[str, AnswerServer],
        extensions: Mapping[str, Any] = {},
    ) -> None:
        self._extensions = extensions
        self._server = server
        self._cwd = cwd
        self._handlers = handlers

    @property
    def capabilities(self) -> JsonObject:
        found: dict[str, Any] = {"roots": {"listChanged": False}}
        if "elicitation/create" in self._handlers:
            found["elicitation"] = {"form": {}, "url": {}}
        if "sampling/createMessage" in self._handlers:
            found["sampling"] = {}
        if self._extensions:
            found["extensions"] = self._extensions
        return found

    def asks(self, method: str) -> bool:
        """Return True if somebody must decide about a request, which may take long."""
        return method in self._handlers

    async def answer(self, method: str, params: JsonObject, number: str | int) -> JsonObject:
        """Return the result of a request with an id. Raises `RemoteError`."""
        if method == "ping":
            return {}
        if method == "roots/list":
            root = {"uri": f"file://{quote(self._cwd)}", "name": self._cwd.rpartition("/")[2]}
            return {"roots": [root]}
        if method not in self._handlers:
            raise RemoteError(f"Method not found: {method[:100]}", METHOD_NOT_FOUND)
        return await self._handlers[method](self._server, params, number)
