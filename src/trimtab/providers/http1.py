"""Parses HTTP/1.1 messages. No I/O, so that the client and the test server share it."""

import msgspec

_HEAD_LIMIT = 256 * 1024
_LINE_LIMIT = 16 * 1024


class ProtocolError(ValueError):
    """Raised for input that is not HTTP/1.1."""


class Head(msgspec.Struct, frozen=True):
    """The three words of the start line, and the headers with names in lower case."""

    start: tuple[str, str, str]
    headers: dict[str, str]

    @property
    def status(self) -> int:
        return int(self.start[1])

    @property
    def keeps_alive(self) -> bool:
        version = self.start[0] if self.start[0].startswith("HTTP/") else self.start[2]
        connection = self.headers.get("connection", "").lower()
        return "close" not in connection and (version != "HTTP/1.0" or "keep-alive" in connection)


class MessageParser:
    """Parses one message: feed it bytes until `complete`.

    `head` is set as soon as it is complete. Interim (1xx) responses are skipped. `rest` has the
    bytes after the message. With `tunnel`, a successful head ends the message (CONNECT).
    """

    __slots__ = (
        "_buffer",
        "_mode",
        "_remaining",
        "_request",
        "_tunnel",
        "complete",
        "head",
        "rest",
    )

    def __init__(self, *, request: bool = False, tunnel: bool = False) -> None:
        self.head: Head | None = None
        self.complete = False
        self.rest = b""
        self._request = request
        self._tunnel = tunnel
        self._buffer = b""
        self._mode = "head"
        self._remaining = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Parse the next bytes; return the pieces of the body in them."""
        if self._mode == "length":
            return self._take_length(data)
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        if self._mode == "head":
            data = self._take_head(data)
            if self.head is None or self.complete:
                return []
            if self._mode == "length":
                return self._take_length(data)
        if self._mode == "until-close":
            return [data] if data else []
        return self._take_chunks(data)

    def end(self) -> None:
        """Handle the end of the input. Raises `ProtocolError` if the message is incomplete."""
        if self._mode == "until-close":
            self.complete = True
        elif not self.complete:
            raise ProtocolError("the connection was closed before the message was complete")

    def _take_head(self, data: bytes) -> bytes:
        while True:
            end, gap = data.find(b"\r\n\r\n"), 4
            if end < 0:
                end, gap = data.find(b"\n\n"), 2
            if end < 0:
                if len(data) > _HEAD_LIMIT:
                    raise ProtocolError("the head of the message is too long")
                self._buffer = data
                return b""
            head, data = parse_head(data[:end]), data[end + gap :]
            if self._request or not 100 <= _status(head) < 200 or head.start[1] == "101":
                break
        self.head = head
        self._frame(head, data)
        return data

    def _frame(self, head: Head, data: bytes) -> None:
        """Determine from the headers where the body ends."""
        headers = head.headers
        bodiless = not self._request and (
            head.start[1] in {"101", "204", "304"} or (self._tunnel and head.start[1][0] == "2")
        )
        length = headers.get("content-length")
        if bodiless:
            self._finish(data)
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            self._mode = "chunked"
        elif length is not None:
            # A repeated header arrives joined by commas; equal values mean the same thing.
            values = {value.strip() for value in length.split(",")}
            length = values.pop()
            if values or not (length.isascii() and length.isdigit()):
                raise ProtocolError("the content-length is not a number")
            self._remaining = int(length)
            self._mode = "length"
            if not self._remaining:
                self._finish(data)
        elif self._request:
            self._finish(data)
        else:
            self._mode = "until-close"

    def _finish(self, rest: bytes) -> None:
        self.complete = True
        self._mode = "done"
        self.rest = rest

    def _take_length(self, data: bytes) -> list[bytes]:
        size = len(data)
        if size < self._remaining:
            self._remaining -= size
            return [data] if data else []
        piece, rest = data[: self._remaining], data[self._remaining :]
        self._remaining = 0
        self._finish(rest)
        return [piece]

    def _take_chunks(self, data: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        position, size = 0, len(data)
        while position < size and not self.complete:
            if self._remaining:
                piece = data[position : position + self._remaining]
                position += len(piece)
                self._remaining -= len(piece)
                pieces.append(piece)
                continue
            newline = data.find(b"\n", position)
            if newline < 0:
                if size - position > _LINE_LIMIT:
                    raise ProtocolError("a line between chunks is too long")
                self._buffer = data[position:]
                break
            line = data[position:newline].rstrip(b"\r")
            position = newline + 1
            self._take_chunk_line(line, data, position)
        return pieces

    def _take_chunk_line(self, line: bytes, data: bytes, position: int) -> None:
        """Parse a line between chunks: the end of a chunk, the size of the next, or a trailer."""
        if self._mode == "trailers":
            if not line:
                self._finish(data[position:])
        elif line:
            size = line.partition(b";")[0].strip()
            if not size.isalnum():
                raise ProtocolError("a chunk has no valid size")
            try:
                self._remaining = int(size, 16)
            except ValueError:
                raise ProtocolError("a chunk has no valid size") from None
            if not self._remaining:
                self._mode = "trailers"


def parse_head(block: bytes) -> Head:
    """Read a start line and headers (without the blank line after them)."""
    start, _, rest = block.decode("latin-1").lstrip("\r\n").partition("\n")
    words = start.rstrip("\r").split(" ", 2)
    if len(words) < 2:
        raise ProtocolError("the start line is not HTTP")
    headers: dict[str, str] = {}
    for line in rest.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head((words[0], words[1], words[2] if len(words) > 2 else ""), headers)


def _status(head: Head) -> int:
    version, status, _ = head.start
    if not version.startswith("HTTP/1.") or not (len(status) == 3 and status.isdigit()):
        raise ProtocolError("the answer is not HTTP/1.1")
    return int(status)
