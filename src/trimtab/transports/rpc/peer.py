"""A client on one connection: answers its requests, and sends it events and requests."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.events.codec import encode
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.own import EventsDropped
from trimtab.contracts.ids import new_id, timestamp
from trimtab.host.ports import ClientGone
from trimtab.transports.rpc.framing import BadFrame, FrameParser, frame
from trimtab.transports.rpc.protocol import (
    CANCELLED,
    INVALID_REQUEST,
    PARSE_ERROR,
    Incoming,
    RequestId,
    RpcError,
    Then,
    decode_incoming,
    encode_error,
    encode_event,
    encode_notification,
    encode_request,
    encode_result,
)

if TYPE_CHECKING:
    from trimtab.transports.rpc.client_telemetry import ClientTelemetry
    from trimtab.transports.rpc.mirror import FileSystem

Answerer = Callable[["Peer", str, msgspec.Raw], Awaitable[Any]]
"""Handles a request of a peer: method and parameters to result. Raises `RpcError`."""

BACKLOG = 8 * 1024 * 1024
"""Bytes a client may be behind before it loses ephemeral events."""
_REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Peer(asyncio.Protocol):
    """A connection. Requests run concurrently; their exceptions never leave their tasks.

    Events are written in their stored bytes. A client that reads too slowly loses ephemeral
    events, which are counted, but never durable ones.
    """

    def __init__(self, answer: Answerer, on_closed: Callable[["Peer"], None]) -> None:
        self._answer = answer
        self._on_closed = on_closed
        self._parser = FrameParser()
        self._out: asyncio.WriteTransport | None = None
        self._unsent: list[bytes] = []
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}
        self._asked: dict[int | float, asyncio.Future[msgspec.Raw]] = {}
        self._next_id = 0
        self.authenticated = False
        self.admits: Callable[[tuple[str, int], tuple[str, int]], bool] | None = None
        """Decides by the addresses of client and server whether a connection is served."""
        self.closed = False
        self.on_socket = False
        """True if the connection is a socket, not the standard streams."""
        self.dropped = 0
        self._missed: dict[str, int] = {}
        self.file_system: FileSystem | None = None
        self.wants_telemetry = False
        self.telemetry: ClientTelemetry | None = None
        """Describes events as telemetry, for a client with a session that wants it."""

    def use(self, out: asyncio.WriteTransport, *, strict: bool) -> None:
        """Write to this transport. With `strict`, input that is not a frame ends the connection."""
        self._out = out
        self._parser = FrameParser(strict=strict)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            ends = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            if self.admits is not None and not self.admits(*ends):
                self._end()
                transport.abort()
                return
            transport.set_write_buffer_limits(high=1 << 16)
            self.on_socket = True
            self.use(transport, strict=True)

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._parser.feed(data):
                if self.closed:
                    return
                if isinstance(body, BadFrame):
                    self._refuse(None, RpcError(PARSE_ERROR, str(body)))
                else:
                    self._on_message(body)
        except BadFrame as error:
            if error.http and self._out is not None:
                self._out.write(_REFUSAL)
            else:
                self._refuse(None, RpcError(PARSE_ERROR, str(error)))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def close(self) -> None:
        """Send what is buffered, then end the connection."""
        self._flush()
        if self._out is not None:
            self._out.close()
        self._end()

    def _end(self) -> None:
        if self.closed:
            return
        self.closed = True
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(ClientGone("The client is gone."))
        self._asked.clear()
        for task in tuple(self._tasks.values()):
            task.cancel()
        self._on_closed(self)

    def notify(self, method: str, params: Any) -> None:
        self._write(encode_notification(method, params))

    def send_event(self, session_id: str, event: Event, line: bytes) -> None:
        if event.ephemeral and self._is_behind():
            self.dropped += 1
            self._missed[session_id] = self._missed.get(session_id, 0) + 1
            return
        if (missed := self._missed.pop(session_id, 0)) > 0:
            self._write(encode_event(session_id, describe_missed(event, missed)))
        self._write(encode_event(session_id, line))
        if self.telemetry is not None:
            described = self.telemetry.describe(session_id, event)
            if described is not None:
                self.notify("gitHubTelemetry.event", described)

    async def ask(self, method: str, params: JsonObject) -> Any:
        """Send the client a request and return its result. Raises `ClientGone` or `RpcError`.

        If the caller is cancelled, the client is told to cancel the request.
        """
        if self.closed:
            raise ClientGone("The client is gone.")
        self._next_id += 1
        number = self._next_id
        waiting: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._asked[number] = waiting
        self._write(encode_request(number, method, params))
        try:
            return msgspec.json.decode(await waiting)
        except asyncio.CancelledError:
            self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            self._asked.pop(number, None)

    def _is_behind(self) -> bool:
        return self._out is not None and self._out.get_write_buffer_size() > BACKLOG

    def _write(self, body: bytes) -> None:
        """Collect frames until the next iteration of the event loop, to save system calls."""
        if self._out is None or self._out.is_closing():
            return
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(frame(body))

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent and self._out is not None and not self._out.is_closing():
            self._out.write(b"".join(unsent))

    def _refuse(self, request_id: RequestId | None, error: RpcError) -> None:
        self._write(encode_error(request_id, error))

    def _on_message(self, body: bytes) -> None:
        try:
            message = decode_incoming(body)
        except msgspec.ValidationError:
            self._refuse(None, RpcError(INVALID_REQUEST, "The message is not a JSON-RPC request."))
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._refuse(None, RpcError(PARSE_ERROR, "The message is not JSON."))
            return
        if message.method is None:
            self._on_answer(message)
        elif message.id is None:
            self._on_notification(message)
        else:
            self._start(message)

    def _start(self, message: Incoming) -> None:
        assert message.id is not None
        assert message.method is not None
        if message.id in self._tasks:
            error = RpcError(INVALID_REQUEST, f"Request id {message.id!r} is in use.")
            self._refuse(message.id, error)
            return
        task = asyncio.get_running_loop().create_task(
            self._respond(message.id, message.method, message.params)
        )
        self._tasks[message.id] = task

    async def _respond(self, request_id: RequestId, method: str, raw: msgspec.Raw) -> None:
        try:
            result = await self._answer(self, method, raw)
        except asyncio.CancelledError:
            self._refuse(request_id, RpcError(CANCELLED, f"Request {method} was cancelled."))
            return
        except RpcError as error:
            self._refuse(request_id, error)
            return
        finally:
            self._tasks.pop(request_id, None)
        if isinstance(result, Then):
            self._write(encode_result(request_id, result.result))
            result.after()
        else:
            self._write(encode_result(request_id, result))

    def _on_notification(self, message: Incoming) -> None:
        """Handle a notification. The protocol has unknown ones ignored."""
        if message.method == "$/cancelRequest":
            try:
                cancelled = msgspec.json.decode(message.params, type=dict[str, Any]).get("id")
                task = self._tasks.get(cancelled) if cancelled is not None else None
            except (msgspec.DecodeError, TypeError):
                return
            if task is not None:
                task.cancel()

    def _on_answer(self, message: Incoming) -> None:
        waiting = None if isinstance(message.id, str) else self._asked.get(message.id or 0)
        if waiting is None or waiting.done():
            return
        if message.error is not None:
            error = message.error if isinstance(message.error, dict) else {}
            code, text = error.get("code"), error.get("message")
            waiting.set_exception(RpcError(code if isinstance(code, int) else 0, str(text or "")))
        else:
            waiting.set_result(message.result)


def describe_missed(event: Event, count: int) -> bytes:
    """Return the event that tells a slow client how many ephemeral events it missed."""
    missed = EventsDropped(count=count, reason="The client read too slowly.")
    return encode(
        Event(
            type=missed.wire_name,
            data=missed,
            id=new_id(),
            timestamp=timestamp(),
            parent_id=event.parent_id,
            ephemeral=True,
        )
    )
