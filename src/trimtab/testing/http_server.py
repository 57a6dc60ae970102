"""A small HTTP/1.1 server on loopback, able to misbehave on purpose."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from trimtab.providers.http1 import Head, MessageParser, ProtocolError

_WRITE_BLOCK = 64 * 1024
_CLOSE_SECONDS = 0.5
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


class Gone(Exception):
    """The client went away, or the connection was ended on purpose."""


class Exchange:
    """One request and the means to answer it, well or badly."""

    def __init__(self, connection: "_Connection", request: HttpRequest) -> None:
        self.request = request
        self._connection = connection
        self._chunked = False
        self._held = b""

    async def answer(
        self, status: int, body: bytes, *, kind: str = "application/json", headers: Headers = ()
    ) -> None:
        """Send a whole answer."""
        head = _head(status, [("content-type", kind), ("content-length", str(len(body))), *headers])
        await self._connection.send(head + body)

    async def begin(self, status: int, headers: Headers, *, length: int | None = None) -> None:
        """Send the head of an answer whose body follows in pieces."""
        self._chunked = length is None
        framing = ("transfer-encoding", "chunked")
        if length is not None:
            framing = ("content-length", str(length))
        # Goes out together with the first pieces.
        self._held = _head(status, [framing, *headers])

    async def send(self, pieces: Iterable[bytes]) -> None:
        """Send pieces of the body."""
        block, size = [self._held], 0
        self._held = b""
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
        raise Gone

    def reset(self) -> None:
        """End the connection so that the client sees a reset."""
        self._connection.reset()
        raise Gone

    async def half_close(self) -> None:
        """Send no more, but keep the connection until the client ends it."""
        self._connection.half_close()
        await self.silence()

    async def silence(self) -> None:
        """Wait until the client goes away."""
        await self._connection.lost
        raise Gone


Handler = Callable[[Exchange], Awaitable[None]]


class HttpServer:
    """Listens on one address and gives each request to the handler."""

    def __init__(self, handler: Handler) -> None:
        self.accepted = 0
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; gives the port."""
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
            # A client that does not read what was sent gets a moment, no more.
            connections = list(self._connections)
            for connection in connections:
                end(connection)
            if connections:
                await asyncio.wait([one.lost for one in connections], timeout=_CLOSE_SECONDS)
        await self._server.wait_closed()
        self._server = None


class _Connection(asyncio.Protocol):
    """Answers one request after another."""

    def __init__(self, handler: Handler, siblings: "set[_Connection]") -> None:
        self._handler = handler
        self._siblings = siblings
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._parser = MessageParser(request=True)
        self._pieces: list[bytes] = []
        self._early: list[bytes] = []
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._siblings.add(self)

    def data_received(self, data: bytes) -> None:
        if self._task is not None:
            self._early.append(data)
            return
        try:
            self._pieces += self._parser.feed(data)
        except ProtocolError:
            self.close()
            return
        if self._parser.complete:
            self._task = self._loop.create_task(self._respond())
        elif self._parser.head is not None:
            self._encourage(self._parser.head)

    def eof_received(self) -> bool:
        """The client sends no more; it may still be waiting for its answer."""
        self._ended = True
        return self._task is not None

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._siblings.discard(self)
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
            raise Gone
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
        import socket
        import struct

        if self._transport is not None:
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _encourage(self, head: Head) -> None:
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
        except Gone:
            return
        except Exception:
            self.abort()
            raise
        if self._ended or not head.keeps_alive:
            self.close()
            return
        rest = self._parser.rest + b"".join(self._early)
        self._parser = MessageParser(request=True)
        self._pieces = []
        self._early = []
        self._task = None
        if rest:
            self.data_received(rest)


def _head(status: int, headers: Headers) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
