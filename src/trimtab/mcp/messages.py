"""Encodes and decodes the JSON-RPC messages of the Model Context Protocol. No I/O."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject

STATELESS = "2026-07-28"
"""The version without handshake and sessions: each request carries what the others agree on."""
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The supported versions with a handshake, newest first: the first is offered, all are accepted."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
METHOD_NOT_FOUND = -32601
UNSUPPORTED_VERSION = -32022
META = "io.modelcontextprotocol/"
"""The prefix of the protocol's own names in `_meta`."""
VERSION_KEY, CLIENT_KEY = f"{META}protocolVersion", f"{META}clientInfo"
CAPABILITIES_KEY, SERVER_KEY = f"{META}clientCapabilities", f"{META}serverInfo"
LOG_LEVEL_KEY = f"{META}logLevel"


class ServerProblem(Exception):
    """Raised when a server cannot be used; the message is a clause about it, for a person."""

    def __init__(
        self, message: str, *, needs_auth: bool = False, gone: bool = False, status: int = 0
    ) -> None:
        super().__init__(message)
        self.needs_auth = needs_auth
        self.gone = gone
        """True if the connection is lost, so that a new one may work."""
        self.status = status
        """The HTTP status of an answer that is not a success; 0 for other problems."""


class RemoteError(Exception):
    """Raised when the server answers a request with an error, or to answer it with one."""

    def __init__(self, message: str, code: int = 0, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def read_error(error: Any) -> RemoteError:
    """Return the error of an answer, whatever shape it has."""
    if not isinstance(error, dict):
        return RemoteError(str(error)[:4000])
    code = error.get("code")
    text = str(error.get("message"))[:4000]
    return RemoteError(text, code if isinstance(code, int) else 0, error.get("data"))


def encode(message: JsonObject) -> bytes:
    """Encode a message on one line: msgspec writes JSON without line breaks."""
    return msgspec.json.encode({"jsonrpc": "2.0", **message})


def decode(data: bytes) -> Iterator[JsonObject]:
    """Yield the messages in some data; nothing if it does not contain JSON objects."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        decoded: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        decoded = _repair(data)
    except RecursionError:
        return
    for message in decoded if isinstance(decoded, list) else (decoded,):
        if isinstance(message, dict):
            yield message


def _repair(data: bytes) -> Any:
    """Decode JSON with lone surrogates or invalid UTF-8, since a request may wait for it.

    Returns None if it is something else.
    """
    if not data.lstrip().startswith((b"{", b"[")):
        return None
    try:
        value = json.loads(data.decode("utf-8", "replace"))
        repaired = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(repaired)
    except (ValueError, RecursionError):
        return None


class Lines:
    """Splits a stream into lines. Raises `ServerProblem` if a line is too long."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join((*self._pieces, complete[0]))
            self._pieces, self._size = [], 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > MAX_MESSAGE_BYTES:
            self._pieces, self._size = [], 0
            limit = f"{MAX_MESSAGE_BYTES >> 20} MB"
            raise ServerProblem(f"it sent a line of more than {limit}", gone=True)
        return complete
