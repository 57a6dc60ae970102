"""The HTTP proxy of a sandbox with a list of hosts: the only way out, which refuses all others.

It listens on a socket created inside the network namespace of one command, so nobody else can reach
it. It resolves the requested name itself, checks every address, and connects to exactly the checked
address.
"""

import asyncio
import re
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from trimtab.workspace.sandbox.hosts import HostList, HostPattern, canonical

LONGEST_HEAD = 1 << 16
PIECE = 1 << 16
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 20.0
AT_ONCE = 200
"""Connections per command; further ones wait in the kernel's queue, and then fail."""

_OWN_HEADERS = ("connection", "keep-alive", "te", "upgrade", "host")
_AUTHORITY = re.compile(r"(?P<host>[^:@/?#\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
OnRefusal = Callable[[str, int, str], None]
"""Called with the host, the port and the reason."""
AskHost = Callable[[str, int], Awaitable[bool]]
"""Asks whether a host that is on no list may be reached."""
NOT_ALLOWED = "the person did not allow it"


class Wanted(msgspec.Struct, frozen=True):
    """A command's request to the proxy."""

    method: str
    host: str
    port: int
    path: str
    headers: list[tuple[str, str]]

    def find(self, name: str) -> str:
        return ",".join(value for key, value in self.headers if key.lower() == name)


class BadRequest(Exception):
    """Raised for a request that is invalid or not meant for a proxy."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host without duplicates. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class FilteringProxy:
    """Serves one command. `on_refusal` is called for every refused host."""

    def __init__(
        self,
        hosts: HostList,
        on_refusal: OnRefusal,
        resolve_name: Resolve = resolve,
        ask: AskHost | None = None,
    ) -> None:
        self._hosts = hosts
        self._on_refusal = on_refusal
        self._ask = ask
        self._resolve = resolve_name
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """Accept no more connections and close the existing ones."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for task in self._tasks:
            task.cancel()

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # it was closed again, or no descriptors are left
            return
        if len(self._tasks) >= AT_ONCE:
            connection.close()
            return
        task = asyncio.get_running_loop().create_task(self._converse(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=LONGEST_HEAD)
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                wanted = parse_head(await reader.readuntil(b"\r\n\r\n"))
            await self._serve_one(wanted, reader, writer)
        except BadRequest as error:
            answer(writer, "403 Forbidden", f"The sandbox's proxy refuses this: {error}.")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, OSError):
            pass  # either side closed the connection, or never sent a request
        finally:
            writer.close()

    async def _serve_one(self, wanted: Wanted, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            pattern = await self._find_pattern(wanted.host, wanted.port)
            async with asyncio.timeout(CONNECT_SECONDS):
                there = await self._connect(pattern, wanted.host, wanted.port)
        except PermissionError as error:
            self._on_refusal(wanted.host, wanted.port, str(error))
            text = f"The sandbox does not let commands reach {wanted.host}: {error}."
            answer(writer, "403 Forbidden", text)
            return
        except (OSError, TimeoutError, UnicodeError) as error:
            why = str(error) or "it did not answer in time"
            answer(writer, "502 Bad Gateway", f"{wanted.host} cannot be reached: {why}.")
            return
        remote, sink = there
        try:
            async with asyncio.TaskGroup() as group:
                if wanted.method == "CONNECT":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    group.create_task(copy(reader, sink))
                else:
                    sink.write(rewrite(wanted))
                    group.create_task(copy_body(wanted, reader, sink))
                group.create_task(copy(remote, writer))
        except* (OSError, asyncio.IncompleteReadError, ValueError):
            pass  # one side closed the connection: close the other
        finally:
            sink.close()

    async def _find_pattern(self, host: str, port: int) -> HostPattern:
        """Return the pattern that allows a host, or ask about it. Raises `PermissionError`."""
        if self._ask is None or self._hosts.lists(host, port):
            return self._hosts.find(host, port)
        if not await self._ask(host, port):
            raise PermissionError(NOT_ALLOWED)
        return HostPattern(host, (port,))

    async def _connect(
        self, pattern: HostPattern, host: str, port: int
    ) -> tuple[StreamReader, StreamWriter]:
        """Connect to the first address that answers. Raises `PermissionError` and `OSError`."""
        addresses = await self._resolve(host, port)
        for address in addresses:
            self._hosts.check_address(pattern, address, port)
        problem = OSError("it has no address")
        for address in addresses:
            try:
                return await asyncio.open_connection(address, port)
            except OSError as error:
                problem = OSError(error.strerror or str(error))
        raise problem


def parse_head(head: bytes) -> Wanted:
    """Parse a request. Raises `BadRequest`."""
    lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", "".join(lines)):
        raise BadRequest("the request contains control characters")
    first = lines[0].split(" ")
    if len(first) != 3 or not first[2].startswith("HTTP/1."):
        raise BadRequest("the request is not HTTP/1")
    method, target, _ = first
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise BadRequest("the request has an invalid header")
        headers.append((name, value.strip()))
    if method == "CONNECT":
        wanted = Wanted(method, *parse_authority(target, None), "", headers)
    else:
        authority, _, path = target.removeprefix("http://").partition("/")
        if not target.startswith("http://"):
            raise BadRequest("the request is for the proxy itself, or for an unknown protocol")
        wanted = Wanted(method, *parse_authority(authority, 80), f"/{path}", headers)
    check_headers(wanted)
    return wanted


def parse_authority(text: str, usual_port: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    if match is None or not (match["port"] or usual_port):
        raise BadRequest("the request names no host and port")
    try:
        return canonical(match["host"]), int(match["port"] or usual_port or 0)
    except ValueError:
        raise BadRequest("the request names an invalid host") from None


def check_headers(wanted: Wanted) -> None:
    """Refuse a request with another Host header, or with an ambiguous length."""
    named = [value for key, value in wanted.headers if key.lower() == "host"]
    for value in named:
        if parse_authority(value, wanted.port)[0] != wanted.host:
            raise BadRequest("the Host header names another host")
    coding, length = wanted.find("transfer-encoding").lower(), wanted.find("content-length")
    if coding not in ("", "chunked") or (coding and length):
        raise BadRequest("the length of the request is ambiguous")
    if length and not (length.isascii() and length.isdigit()):
        raise BadRequest("the Content-Length is not a number")


def rewrite(wanted: Wanted) -> bytes:
    """Return the head for the server: a single request on a connection of its own."""
    named = {name.strip().lower() for name in wanted.find("connection").split(",")}
    dropped = named.union(_OWN_HEADERS) - {"content-length", "transfer-encoding"}
    host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    port = "" if wanted.port == 80 else f":{wanted.port}"
    lines = [f"{wanted.method} {wanted.path} HTTP/1.1", f"Host: {host}{port}", "Connection: close"]
    for name, value in wanted.headers:
        if name.lower() not in dropped and not name.lower().startswith("proxy-"):
            lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(writer: StreamWriter, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


async def copy(reader: StreamReader, writer: StreamWriter) -> None:
    while piece := await reader.read(PIECE):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def copy_body(wanted: Wanted, reader: StreamReader, writer: StreamWriter) -> None:
    """Forward the body of this request and no more: a second request would be unchecked."""
    if wanted.find("transfer-encoding"):
        await copy_chunks(reader, writer)
        return
    await copy_bytes(int(wanted.find("content-length") or 0), reader, writer)


async def copy_bytes(count: int, reader: StreamReader, writer: StreamWriter) -> None:
    while count:
        piece = await reader.read(min(count, PIECE))
        if not piece:
            raise ConnectionResetError("the body ended too early")
        writer.write(piece)
        await writer.drain()
        count -= len(piece)


async def copy_chunks(reader: StreamReader, writer: StreamWriter) -> None:
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0].strip(), 16)
        writer.write(f"{size:x}\r\n".encode())
        if size == 0:
            break
        await copy_bytes(size, reader, writer)
        writer.write(await reader.readexactly(2))
    # Trailers are rare and optional: they are read, but not forwarded.
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    writer.write(b"\r\n")
    await writer.drain()
