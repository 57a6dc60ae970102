"""A small HTTP/1.1 server for this machine, which can also break connections on purpose."""

import asyncio
import errno
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from trimtab.providers.http1 import Head, MessageParser, ProtocolError

_WRITE_BLOCK = 64 * 1024
_CLOSE_SECONDS = 0.5
"""The time that a client has to read the rest before its connection is aborted."""
_REASONS = {status.value: status.phrase for status in HTTPStatus}


Headers = Iterable[tuple[str, str]]


class HttpRequest(msgspec.Struct, frozen=True):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


Address = tuple[str, int]
Refusal = Callable[[int, str], tuple[bytes, "Headers"]]
"""Returns the body and headers of a refusal, by its status and the path of the request."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a server whose clients are not trusted.

    A request must arrive within `request_seconds`. A client that closes its side of a connection
    has left: its call is cancelled, although HTTP would let it wait for the answer.
    """

    refuse: Refusal
    admits: Callable[[Address, Address], bool] | None = None
    """Decides by the addresses of client and server whether a connection is served."""
    knows: Callable[[Mapping[str, str]], bool] | None = None
    """Decides by its headers whether a request's body is read; others reach the handler without."""
    max_body: int = 64 * 1024 * 1024
    request_seconds: float = 60.0
    idle_seconds: float = 600.0
    max_connections: int = 1024


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
        await self._connection.left
        self._connection.abort()
        raise ConnectionEnded


Handler = Callable[[Exchange], Awaitable[None]]


class HttpServer:
    """Listens on an address and calls the handler for each request."""

    def __init__(self, handler: Handler, limits: ServerLimits | None = None) -> None:
        self.accepted = 0
        self._handler = handler
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; return the port. Raises `OSError` and `OverflowError`."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._accept, host, port, backlog=1024)
        except OSError as error:
            if (
                error.errno is not None and error.errno in errno.errorcode
            ):  # asyncio's text repeats the address
                raise OSError(error.errno, os.strerror(error.errno)) from None
            raise
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    def _accept(self) -> "_Connection":
        self.accepted += 1
        return _Connection(self._handler, self._connections, self._limits)

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

    def __init__(
        self,
        handler: Handler,
        connections: "set[_Connection]",
        limits: ServerLimits | None,
    ) -> None:
        self._handler = handler
        self._connections = connections
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._size = 0
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.left: asyncio.Future[None] = self._loop.create_future()
        """Done when the client has closed its side, or the connection is lost."""
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
        limits = self._limits
        if limits is not None:
            ends = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            if limits.admits is not None and not limits.admits(*ends):
                transport.abort()
            elif len(self._connections) > limits.max_connections:
                self._refuse(503)
            else:
                self._expect_within(limits.request_seconds)

    def data_received(self, data: bytes) -> None:
        if self._task is not None:
            self._read_ahead.append(data)
            self._size += len(data)
            if self._limits is not None and self._size > self._limits.max_body:
                self.abort()
            return
        if self._limits is not None and self._parser.head is None and not self._size:
            self._expect_within(self._limits.request_seconds)
        self._size += len(data)
        try:
            self._pieces += self._parser.feed(data)
        except ProtocolError:
            if self._limits is None:
                self.close()
            else:
                self._refuse(400)
            return
        if self._limits is not None and self._is_too_large(self._limits.max_body):
            self._refuse(413)
        elif self._is_from_stranger():
            self._ended = True
            self._pieces = []
            self._begin()
        elif self._parser.complete:
            self._begin()
        elif self._parser.head is not None:
            self._send_continue(self._parser.head)

    def _begin(self) -> None:
        self._stop_timer()
        self._size = 0
        self._task = self._loop.create_task(self._respond())

    def _is_from_stranger(self) -> bool:
        """Return True for a request with a body that is not to be read."""
        head = self._parser.head
        if self._limits is None or self._limits.knows is None or head is None:
            return False
        return not self._parser.complete and not self._limits.knows(head.headers)

    def _is_too_large(self, limit: int) -> bool:
        head = self._parser.head
        announced = head.headers.get("content-length", "") if head is not None else ""
        return self._size > limit or (announced.isdigit() and int(announced[:20]) > limit)

    def _expect_within(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        """End a connection whose request did not arrive in time; an idle one has none."""
        if self._size:
            self._refuse(408)
        else:
            self.close()

    def _refuse(self, status: int) -> None:
        """Answer a request that was not read to its end, and close the connection."""
        if self._limits is None or self._transport is None or self._transport.is_closing():
            return
        head = self._parser.head
        path = head.start[1].partition("?")[0] if head is not None else "/"
        body, headers = self._limits.refuse(status, path)
        framing = [("content-length", str(len(body))), ("connection", "close")]
        self._transport.write(_head(status, [*framing, *headers]) + body)
        self._transport.close()

    def eof_received(self) -> bool:
        """Keep the connection open if the client still waits for an answer."""
        self._ended = True
        if not self.left.done():
            self.left.set_result(None)
        return self._task is not None and self._limits is None

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_timer()
        self._transport = None
        self._connections.discard(self)
        self._writable.set()
        for ended in (self.lost, self.left):
            if not ended.done():
                ended.set_result(None)
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
        if self._limits is not None:
            self._expect_within(self._limits.idle_seconds)
        self._size = 0
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


def find_remote_host(headers: Mapping[str, str]) -> str:
    """Return the header that names another machine, or "": web pages can reach this port."""
    for name in ("host", "origin"):
        value = headers.get(name)
        if value is not None and not is_local(_hostname(value)):
            return f"{name} {value[:100]!r}"
    return ""


def _hostname(value: str) -> str | None:
    try:
        return urlsplit(f"//{value.partition('://')[2] or value}").hostname
    except ValueError:
        return None


def is_local(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
