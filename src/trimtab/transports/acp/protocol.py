"""Messages and error codes of JSON-RPC 2.0, as the Agent Client Protocol uses them."""

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.contracts.json_text import encode_json

PROTOCOL_VERSION = 1
"""The version we speak; a client that asks for another one is told this one."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
FAILED = -32603
CANCELLED = -32800
NOT_FOUND = -32002

RequestId = str | int | None


class AcpError(Exception):
    """Raised to answer a request with an error, and by requests that a client answers with one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ClientLeft(Exception):
    """Raised when the client disconnects before it has answered."""


class Incoming(msgspec.Struct, frozen=True):
    """A message from the client: a request, a notification, or the answer to a request."""

    jsonrpc: str = "2.0"
    method: str | msgspec.UnsetType = msgspec.UNSET
    id: str | int | msgspec.UnsetType | None = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Any = None


class Then(msgspec.Struct, frozen=True):
    """A result, and a function to call once it is written, such as sending held updates."""

    result: Any
    after: Callable[[], None]


class _Address(msgspec.Struct, frozen=True):
    id: str | int | None = None


_incoming = msgspec.json.Decoder(Incoming)
_address = msgspec.json.Decoder(_Address)
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_incoming(line: bytes) -> Incoming:
    """Return the message of a line. Raises `AcpError` if it is not one."""
    try:
        message = _incoming.decode(line)
    except msgspec.ValidationError:
        raise AcpError(INVALID_REQUEST, "The message is not a JSON-RPC request.") from None
    except UNREADABLE:
        raise AcpError(PARSE_ERROR, "The line is not JSON.") from None
    if message.jsonrpc != "2.0":
        raise AcpError(INVALID_REQUEST, "The message is not of JSON-RPC 2.0.")
    return message


def find_id(line: bytes) -> RequestId:
    """Return the id of a message that is invalid otherwise, or None."""
    try:
        return _address.decode(line).id
    except UNREADABLE:
        return None


def encode(message: Any) -> bytes:
    """Return a message as one line."""
    return encode_json(message) + b"\n"


def encode_error(request_id: RequestId, error: AcpError) -> bytes:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": body})
