"""Messages of the Model Context Protocol as JSON-RPC has them; nothing here waits or connects."""

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Those we speak, the newest first: the first is offered, any of them is accepted."""
LARGEST = 16 * 1024 * 1024
"""Bytes a message may have."""
METHOD_NOT_FOUND = -32601


class ServerProblem(Exception):
    """Why a server cannot be used, as a sentence for a person."""

    def __init__(self, message: str, *, needs_auth: bool = False, gone: bool = False) -> None:
        super().__init__(message)
        self.needs_auth = needs_auth
        self.gone = gone
        """Whether the connection is over, so that a new one may do better."""


class RemoteError(Exception):
    """The server answered a request with an error."""


def encode(message: JsonObject) -> bytes:
    """One message on one line: JSON as msgspec writes it has no line breaks."""
    return msgspec.json.encode({"jsonrpc": "2.0", **message})


def decode(data: bytes) -> Iterator[JsonObject]:
    """The messages in some JSON; none if it is no JSON, or JSON of something else."""
    try:
        found: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = _mend(data)
    except RecursionError:
        return
    for one in found if isinstance(found, list) else (found,):
        if isinstance(one, dict):
            yield one


def _mend(data: bytes) -> Any:
    """JSON with half an emoji or bytes that are no text in it: an answer that somebody waits for.

    None if it is something else.
    """
    if not data.lstrip().startswith((b"{", b"[")):
        return None
    import json

    try:
        value = json.loads(data.decode("utf-8", "replace"))
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(whole)
    except (ValueError, RecursionError):
        return None


class Lines:
    """Cuts a stream into lines. Raises `ServerProblem` for one that does not end."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._pieces, whole[0]))
            self._pieces, self._size = [], 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > LARGEST:
            self._pieces, self._size = [], 0
            raise ServerProblem(f"it sent a line of more than {LARGEST >> 20} MB", gone=True)
        return whole
