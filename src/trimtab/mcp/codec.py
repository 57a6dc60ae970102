"""Encodes and decodes the JSON-RPC messages of the Model Context Protocol. No I/O."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import MAX_MESSAGE_BYTES, ServerProblem


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
