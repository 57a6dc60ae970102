"""The interface of a client to a hosted session, independent of its transport."""

from typing import Any, Protocol

from trimtab.contracts.events.envelope import Event, JsonObject


class ClientGone(Exception):
    """Raised when a client disconnects before it has answered."""


class ClientError(Exception):
    """Raised when a client answers with an error."""

    message: str


class ClientPort(Protocol):
    """A client of a session."""

    def send_event(self, session_id: str, event: Event, line: bytes) -> None: ...

    async def ask(self, method: str, params: JsonObject) -> Any:
        """Return the client's answer. Raises `ClientGone` or `ClientError`."""
        ...


class FileMirror(Protocol):
    """Copies the files of a session to a client's file system."""

    async def finish(self) -> None:
        """Copy what has not been copied yet."""
        ...
