"""A small HTTP/1.1 server that can break connections on purpose."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from trimtab.providers.http1 import Head, MessageParser, ProtocolError

_WRITE_BLOCK = 64 * 1024
_CLOSE_SECONDS = 0.5
"""The time that a client has to read the rest before its connection is aborted."""
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


Headers = Iterable[tuple[str, str]]


class HttpRequest(msgspec.Struct, frozen=True):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


class ConnectionEnded(Exception):
    """Raised when the client has disconnected or the connection was ended on purpose."""


class Exchange:
    """A request, and the methods to answer it or to break the connection."""

    def __init__(self, connection: "_Connection", request: HttpRequest) -> None:
        self.request = request
        self._connection = connection
        self._chunked = False
        self._unsent_head = b""

    async def answer(
        self, status: int, body: bytes, *, kind: str = "application/json", headers: Headers = ()
    ) -> None:
        """Send a complete answer."""
        head = _head(status, [("content-type", kind), ("content-length", str(len(body))), *headers])
        await self._connection.send(head + body)

    async def begin(self, status: int, headers: Headers, *, length: int | None = None) -> None:
        """Begin an answer; its body is sent in pieces."""
        self._chunked = length is None
        framing = ("transfer-encoding", "chunked")
        if length is not None:
            framing = ("content-length", str(length))
        # Sent together with the first pieces.
        self._unsent_head = _head(status, [framing, *headers])

    async def send(self, pieces: Iterable[bytes]) -> None:
        """Send pieces of the body."""
        block, size = [self._unsent_head], 0
        self._unsent_head = b""
        for piece in pieces:
            block.append(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
            size += len(piece)
            if size >= _WRITE_BLOCK:
                await self._connection.send(b"".join(block))
                block, size = [], 0
        await self._connection.send(b"".join(block))

    async def end(self) -> None:
        if self._chunked:
            await self._connection.send(b"0\r\n\r\n")

    def close(self) -> None:
        self._connection.close()
        raise ConnectionEnded

    def reset(self) -> None:
        """End the connection so that the client sees a reset."""
        self._connection.reset()
        raise ConnectionEnded

    async def half_close(self) -> None:
        """Close the sending direction, and wait until the client disconnects."""
        self._connection.half_close()
        await self.silence()

    async def silence(self) -> None:
        """Send nothing until the client disconnects."""
        await self._connection.lost
        raise ConnectionEnded


Handler = Callable[[Exchange], Awaitable[None]]


class HttpServer:
    """Listens on an address and calls the handler for each request."""

    def __init__(self, handler: Handler) -> None:
        self.accepted = 0
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; return the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, host, port, backlog=1024)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    def _accept(self) -> "_Connection":
        self.accepted += 1
        return _Connection(self._handler, self._connections)

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is None:
            return
        self._server.close()
        for end in (_Connection.close, _Connection.abort):
            connections = list(self._connections)
            for connection in connections:
                end(connection)
            if connections:
                await asyncio.wait(
                    [connection.lost for connection in connections], timeout=_CLOSE_SECONDS
                )
        await self._server.wait_closed()
        self._server = None


class _Connection(asyncio.Protocol):
    """A connection that answers one request after another."""

    def __init__(self, handler: Handler, connections: "set[_Connection]") -> None:
        self._handler = handler
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._parser = MessageParser(request=True)
        self._pieces: list[bytes] = []
        self._read_ahead: list[bytes] = []
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._task is not None:
            self._read_ahead.append(data)
            return
        try:
            self._pieces += self._parser.feed(data)
        except ProtocolError:
            self.close()
            return
        if self._parser.complete:
            self._task = self._loop.create_task(self._respond())
        elif self._parser.head is not None:
            self._send_continue(self._parser.head)

    def eof_received(self) -> bool:
        """Keep the connection open if the client still waits for an answer."""
        self._ended = True
        return self._task is not None

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._connections.discard(self)
        self._writable.set()
        if not self.lost.done():
            self.lost.set_result(None)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def send(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionEnded
        self._transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def half_close(self) -> None:
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()

    def reset(self) -> None:
        if self._transport is not None:
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _send_continue(self, head: Head) -> None:
        if head.headers.get("expect", "").lower() == "100-continue" and self._transport:
            head.headers.pop("expect")
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _respond(self) -> None:
        head = self._parser.head
        assert head is not None
        method, target, _ = head.start
        request = HttpRequest(method, target, head.headers, b"".join(self._pieces))
        try:
            await self._handler(Exchange(self, request))
        except ConnectionEnded:
            return
        except Exception:
            self.abort()
            raise
        if self._ended or not head.keeps_alive:
            self.close()
            return
        rest = self._parser.rest + b"".join(self._read_ahead)
        self._parser = MessageParser(request=True)
        self._pieces = []
        self._read_ahead = []
        self._task = None
        if rest:
            self.data_received(rest)


def _head(status: int, headers: Headers) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
