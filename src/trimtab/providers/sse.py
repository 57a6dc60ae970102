"""Parses server-sent events incrementally."""


class EventTooLarge(ValueError):
    """Raised for an event larger than any valid answer."""


class SseParser:
    """Takes a stream in arbitrary pieces, and returns the data of each complete event.

    Lines may end in CRLF, LF or CR. Comments and the field `event` are ignored: all wires repeat
    the type of an event inside its data. `last_id` and `retry`, in seconds, are what the stream
    said last about taking it up again.
    """

    __slots__ = (
        *("_data", "_limit", "_partial", "_size", "_skip_newline", "_started"),
        *("last_id", "retry"),
    )

    def __init__(self, limit: int = 64 * 1024 * 1024) -> None:
        self._limit = limit
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        self._started = False
        self._skip_newline = False
        self.last_id = ""
        self.retry: float | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        """Parse a piece of the stream; return the data of the events it completes."""
        if self._skip_newline and chunk:
            self._skip_newline = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._keep(chunk)
            return []
        if self._partial:
            self._partial.append(chunk)
            chunk = b"".join(self._partial)
            self._partial.clear()
            self._size = 0
        if not self._started:
            self._started = True
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        self._skip_newline = chunk.endswith(b"\r")
        # bytes.splitlines splits at exactly the three line ends of the format.
        lines = chunk.splitlines()
        if not chunk.endswith((b"\n", b"\r")):
            self._keep(lines.pop())
        return self._events(lines)

    def end(self) -> list[bytes]:
        """Handle the end of the stream; return the data of a last event without a blank line."""
        line = b"".join(self._partial)
        if not self._started:
            line = line.removeprefix(b"\xef\xbb\xbf")
        self._partial.clear()
        return self._events([line, b""])

    @property
    def pending(self) -> int:
        """The bytes so far of an event that has not ended; comments are none."""
        is_comment = bool(self._partial) and self._partial[0].startswith(b":")
        return sum(map(len, self._data)) + (0 if is_comment else self._size)

    def _keep(self, piece: bytes) -> None:
        self._partial.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            raise EventTooLarge

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                data.append(b"")
            elif line.startswith((b"id:", b"retry:")):
                self._note(line)
        return events

    def _note(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        text = value.decode("utf-8", "replace").removeprefix(" ")
        if name == b"id" and text.isprintable():
            self.last_id = text
        elif name == b"retry" and text.isascii() and text.isdigit():
            self.retry = int(text) / 1000
