"""The frames of the language server protocol: headers, then JSON."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.contracts.json_text import encode_json

MAX_BYTES = 32 * 1024 * 1024
MAX_HEADER = 4096
_LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,9})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


class Frames:
    """Cuts a stream into messages. Raises `ValueError` for what is not the protocol."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        self._buffer += chunk
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0 or len(self._buffer) > MAX_HEADER:
            header = bytes(self._buffer[: end if end >= 0 else MAX_HEADER])
            length = _LENGTH.search(header)
            if end < 0 or end > MAX_HEADER or length is None or int(length[1]) > MAX_BYTES:
                raise ValueError("it does not speak the language server protocol")
            stop = end + 4 + int(length[1])
            if len(self._buffer) < stop:
                return
            body = bytes(self._buffer[end + 4 : stop])
            del self._buffer[:stop]
            yield decode(body)


def decode(body: bytes) -> dict[str, Any]:
    try:
        message = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise ValueError("it sent a message that is not JSON") from None
    if not isinstance(message, dict):
        raise ValueError("it sent a message that is not an object")
    return message


def encode(message: dict[str, Any]) -> bytes:
    body = encode_json(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
