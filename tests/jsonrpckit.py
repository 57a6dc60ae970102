"""A strict reader of frames, written against the JSON-RPC 2.0 specification alone.

It shares no code with the server or with `rpckit`. It fails on anything that the specification
does not allow: in the framing, in the members of messages, in the types of ids, and in the codes
of errors.
"""

import asyncio
import json
from typing import Any

RESERVED = range(-32768, -31999)
PREDEFINED = {-32700, -32600, -32601, -32602, -32603}
SERVER_ERRORS = range(-32099, -31999)


class Violation(AssertionError):
    """A message that the specification does not allow."""


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise Violation(f"a member occurs twice: {names}")
    return dict(pairs)


def no_constant(text: str) -> Any:
    raise Violation(f"{text} is not JSON")


class Number(float):
    """A number that was written with a fraction or an exponent."""


def parse(body: bytes) -> dict[str, Any]:
    """Return a message. Raises `Violation` unless it is one object of strict JSON."""
    text = body.decode("utf-8")  # strict: lone surrogates and stray bytes raise
    if text.startswith("\ufeff"):
        raise Violation("a byte order mark")
    message = json.loads(
        text, object_pairs_hook=no_duplicates, parse_constant=no_constant, parse_float=Number
    )
    if not isinstance(message, dict):
        raise Violation(f"not an object: {text[:80]}")
    check(message)
    return message


def check(message: dict[str, Any]) -> None:
    if message.get("jsonrpc") != "2.0":
        raise Violation(f"jsonrpc is not 2.0: {message}")
    if "method" in message:
        check_request(message)
    else:
        check_response(message)


def check_request(message: dict[str, Any]) -> None:
    if unknown := message.keys() - {"jsonrpc", "id", "method", "params"}:
        raise Violation(f"members a request does not have: {unknown}")
    if not isinstance(message["method"], str) or message["method"].startswith("rpc."):
        raise Violation(f"the method is {message['method']!r}")
    if "params" in message and not isinstance(message["params"], (dict, list)):
        raise Violation("params is neither an object nor an array")
    if "id" in message and (message["id"] is None or not is_id(message["id"])):
        raise Violation(f"the id of a request is {message['id']!r}")


def check_response(message: dict[str, Any]) -> None:
    if unknown := message.keys() - {"jsonrpc", "id", "result", "error"}:
        raise Violation(f"members a response does not have: {unknown}")
    if ("result" in message) is ("error" in message):
        raise Violation("a response has either a result or an error")
    if "id" not in message or not is_id(message["id"]):
        raise Violation(f"the id of a response is {message.get('id')!r}")
    if "error" in message:
        check_error(message["error"], message["id"])


def check_error(error: Any, request_id: Any) -> None:
    if not isinstance(error, dict) or error.keys() - {"code", "message", "data"}:
        raise Violation(f"not an error object: {error}")
    code, text = error.get("code"), error.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        raise Violation(f"the code of an error is {code!r}")
    if code in RESERVED and code not in PREDEFINED and code not in SERVER_ERRORS:
        raise Violation(f"the code {code} is reserved")
    if not isinstance(text, str) or not text:
        raise Violation("an error without a message")
    if request_id is None and code not in (-32700, -32600):
        raise Violation(f"an error {code} without an id")


def is_id(value: Any) -> bool:
    """A string, an integer or null; the specification advises against fractions."""
    return value is None or isinstance(value, str) or type(value) is int


class StrictReader:
    """Reads frames from a stream, and remembers which requests wait for an answer."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self._open: list[Any] = []

    def expect(self, request_id: Any) -> None:
        """Say that a request with an id was sent."""
        self._open.append(request_id)

    async def message(self) -> dict[str, Any]:
        """Return the next message."""
        async with asyncio.timeout(60):
            header = await self._stream.readuntil(b"\r\n\r\n")
            name, _, value = header.removesuffix(b"\r\n\r\n").partition(b": ")
            if (
                name != b"Content-Length"
                or not value.isdigit()
                or str(int(value)) != value.decode()
            ):
                raise Violation(f"the header {header!r}")
            message = parse(await self._stream.readexactly(int(value)))
        if "method" not in message and message["id"] is not None:
            self._answer(message["id"])
        return message

    async def reply(self, request_id: Any) -> dict[str, Any]:
        """Return the answer to a request; other messages before it are only checked."""
        while True:
            message = await self.message()
            if "method" not in message and same(message["id"], request_id):
                return message

    def _answer(self, request_id: Any) -> None:
        for number, waiting in enumerate(self._open):
            if same(waiting, request_id):
                del self._open[number]
                return
        raise Violation(f"an answer to nothing: {request_id!r} of {self._open}")


def same(first: Any, second: Any) -> bool:
    """Ids are the same only if their types are: 1 and "1" are different requests."""
    return type(first) is type(second) and first == second
