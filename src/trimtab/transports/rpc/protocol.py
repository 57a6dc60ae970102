"""Messages and error codes of JSON-RPC 2.0."""

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.contracts.json_text import encode_json
from trimtab.host.ports import ClientError

VERSION = 3

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
FAILED = -32603
AUTHENTICATION_FAILED = -32002
CANCELLED = -32800
TASK_FAILURES = {"TASK_NOT_FOUND": -32010, "TASK_NOT_OWNER": -32011, "TASK_CONFLICT": -32012}
"""Failures of clients' tasks, by the names that are their messages."""


RequestId = str | int | float
"""The id of a request, which is returned as it came: an integer stays an integer."""


class RpcError(ClientError):
    """Raised to answer a request with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class NotAvailable(Exception):
    """Raised by a method this server does not support; the message names an alternative."""


class Incoming(msgspec.Struct, frozen=True):
    """A message from a client: a request, a notification, or the answer to a request."""

    method: str | None = None
    id: RequestId | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Any = None


class Then(msgspec.Struct, frozen=True):
    """A result, and a function to call once it is written, such as releasing held events."""

    result: Any
    after: Callable[[], None]


decode_incoming = msgspec.json.Decoder(Incoming).decode


def encode_result(request_id: RequestId | None, result: Any) -> bytes:
    return encode_json({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_error(request_id: RequestId | None, error: RpcError) -> bytes:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return encode_json({"jsonrpc": "2.0", "id": request_id, "error": body})


def encode_request(request_id: int, method: str, params: Any) -> bytes:
    return encode_json({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def encode_notification(method: str, params: Any) -> bytes:
    return encode_json({"jsonrpc": "2.0", "method": method, "params": params})


def encode_event(session_id: str, line: bytes) -> bytes:
    """Return the notification of a session event. The event is sent in its stored bytes."""
    return b'{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":%b,"event":%b}}' % (
        encode_json(session_id),
        line,
    )
