"""Frames of JSON-RPC: `Content-Length: N`, an empty line, N bytes."""

from collections.abc import Iterator

MAX_BODY = 256 * 1024 * 1024
MAX_HEADER = 8 * 1024
_NAME = b"content-length:"
_SEARCH_OVERLAP = 64


class BadFrame(Exception):
    """Raised when the input is not a frame. `http` is true when it looks like a web request."""

    def __init__(self, message: str, *, http: bool = False) -> None:
        super().__init__(message)
        self.http = http


def frame(body: bytes) -> bytes:
    """Return a frame. It has exactly one header line, because the official clients read no more."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameParser:
    """Cuts a stream of bytes into the bodies of frames.

    A strict parser raises `BadFrame` and cannot be used again: the start of the next frame is
    unknown, and on a socket the sender may be a browser. A lenient parser yields one `BadFrame`
    for each stretch of bad input and continues at the next line that begins a frame.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._buffer = bytearray()
        self._wanted: int | None = None
        self._lost = False

    def feed(self, data: bytes) -> Iterator[bytes | BadFrame]:
        self._buffer += data
        while True:
            if self._lost and not self._find_start():
                return
            try:
                if self._wanted is None and not self._read_header():
                    return
            except BadFrame as error:
                if self._strict:
                    raise
                self._lost = True
                yield error
                continue
            wanted = self._wanted or 0
            if len(self._buffer) < wanted:
                return
            body = bytes(memoryview(self._buffer)[:wanted])
            del self._buffer[:wanted]
            self._wanted = None
            yield body

    def _read_header(self) -> bool:
        """Read a header if it is complete. Header lines other than the length are ignored."""
        end, gap = _header_end(self._buffer)
        self._check_start()
        if end < 0:
            if len(self._buffer) > MAX_HEADER:
                raise BadFrame("A frame's header is too long.")
            return False
        if end > MAX_HEADER:
            raise BadFrame("A frame's header is too long.")
        lines = bytes(self._buffer[:end]).replace(b"\r\n", b"\n").split(b"\n")
        lengths = [line[len(_NAME) :].strip() for line in lines if line.lower().startswith(_NAME)]
        if len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 10:
            raise BadFrame("A frame's header has no valid Content-Length.")
        size = int(lengths[0])
        if size > MAX_BODY:
            raise BadFrame(f"A frame of {size} bytes is larger than the limit for messages.")
        del self._buffer[: end + gap]
        self._wanted = size
        return True

    def _check_start(self) -> None:
        """Refuse input that cannot become a header without waiting for its end."""
        line = bytes(self._buffer[:MAX_HEADER]).split(b"\n", 1)[0]
        if b" HTTP/" in line:
            raise BadFrame("Web requests are not answered here.", http=True)
        start = bytes(self._buffer[: len(_NAME)]).lower()
        if not _NAME.startswith(start) and not start.startswith(b"content-type"[: len(start)]):
            raise BadFrame("The input does not begin with Content-Length.")

    def _find_start(self) -> bool:
        """Drop everything before the next frame; return False if none has begun."""
        lowered = bytes(self._buffer).lower()
        at = lowered.find(_NAME, 1)
        if at < 0:
            del self._buffer[: max(0, len(self._buffer) - _SEARCH_OVERLAP)]
            return False
        del self._buffer[:at]
        self._lost = False
        return True


def _header_end(buffer: bytearray) -> tuple[int, int]:
    """Return the end of the header and the length of the empty line after it."""
    crlf = buffer.find(b"\r\n\r\n", 0, MAX_HEADER + 4)
    lf = buffer.find(b"\n\n", 0, MAX_HEADER + 2)
    if crlf >= 0 and (lf < 0 or crlf < lf):
        return crlf, 4
    return lf, 2
