"""The words of JSON-RPC 2.0 as this server uses them."""

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.host.ports import ClientError

VERSION = 3

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
FAILED = -32603
AUTHENTICATION_FAILED = -32002
CANCELLED = -32800


class RpcError(ClientError):
    """An answer that is an error, as it stands on the wire."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class NotAvailable(Exception):
    """A method this server knows and does not have; the message says what there is instead."""


class Incoming(msgspec.Struct, frozen=True):
    """A message of a client: a request, a notification, or an answer to a request of ours."""

    method: str | None = None
    id: str | float | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Any = None


class Then(msgspec.Struct, frozen=True):
    """A result with something to do once it is written, such as letting events follow it."""

    result: Any
    after: Callable[[], None]


decode_incoming = msgspec.json.Decoder(Incoming).decode
_encoder = msgspec.json.Encoder()


def _encode(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, for example from a file name
        import json

        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def encode_result(request_id: str | float | None, result: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_error(request_id: str | float | None, error: RpcError) -> bytes:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return _encode({"jsonrpc": "2.0", "id": request_id, "error": body})


def encode_request(request_id: int, method: str, params: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def encode_notification(method: str, params: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode_event(session_id: str, line: bytes) -> bytes:
    """The notification of a session event; the event is sent in the very bytes it is stored in."""
    return b'{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":%b,"event":%b}}' % (
        _encode(session_id),
        line,
    )
