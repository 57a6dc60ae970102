"""Sees the bytes of a file as text without losing where each character came from."""

from collections.abc import Iterator

BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
SINGLE_BYTE = {"cp1252", "latin-1"}
KANA = range(0x3041, 0x30FF)
SNIFFED = 65536
CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")
"""Bytes that no text has."""


class TextView:
    """One reading of a file: `raw` is the text of the bytes from `start` on.

    `plain` is the same with every line ended by a single newline character. Reading keeps what is
    no valid text (`errors`), so that offsets always lead back to bytes.
    """

    __slots__ = ("encoding", "errors", "plain", "raw", "start")

    def __init__(self, raw: str, encoding: str, errors: str = "strict", start: int = 0) -> None:
        self.raw = raw
        self.encoding = encoding
        self.errors = errors
        self.start = start
        self.plain = raw.replace("\r\n", "\n").replace("\r", "\n") if "\r" in raw else raw

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of `plain` stands in `raw`; it never cuts a newline in two."""
        if len(self.plain) == len(self.raw):
            return start, end
        first = self._raw_offset(start, 0)
        return first, self._raw_offset(end - start, first)

    def _raw_offset(self, offset: int, base: int) -> int:
        """`offset` plain characters behind `base`: each pair on the way moves the place by one."""
        seen, at = base, base + offset
        while pairs := self.raw.count("\r\n", max(seen - 1, base), at):
            seen, at = at, at + pairs
        return at + 1 if self.raw[at - 1 : at + 1] == "\r\n" else at

    def byte_span(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of `raw` stands in the file."""
        if self.raw.isascii() and not self.encoding.startswith("utf-16"):
            return self.start + start, self.start + end
        first = self.start + self._size(0, start)
        return first, first + self._size(start, end)

    def _size(self, start: int, end: int) -> int:
        return len(self.raw[start:end].encode(self.encoding, self.errors))

    def stands_for(self, other: "TextView") -> bool:
        """Whether text written in this encoding leaves a file that the other one can read."""
        return {self.encoding, other.encoding} <= SINGLE_BYTE

    def shown(self) -> str:
        """The text for a reader."""
        return self.plain if self.errors == "strict" else readable(self.plain)


def readable(text: str) -> str:
    """The text with U+FFFD for what is no text, which neither a model nor a log can take."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def first_view(data: bytes) -> TextView:
    """The most plausible reading of a file."""
    return next(views(data))


def views(data: bytes) -> Iterator[TextView]:
    """Readings of a file, the most plausible first. All but damaged and legacy files have one."""
    for bom, encoding in BOMS:
        if data.startswith(bom):
            yield decode_after_bom(data, len(bom), encoding)
            return
    try:
        yield TextView(data.decode(), "utf-8")
    except UnicodeDecodeError:
        yield from legacy_views(data)


def decode_after_bom(data: bytes, start: int, encoding: str) -> TextView:
    if encoding == "utf-8":
        raw, errors = data[start:].decode(encoding, "surrogateescape"), "surrogateescape"
    else:
        # An odd last byte is no character: it lies behind the text and is never touched.
        end = len(data) - (len(data) - start) % 2
        raw, errors = data[start:end].decode(encoding, "surrogatepass"), "surrogatepass"
    return TextView(raw, encoding, errors, start)


def legacy_views(data: bytes) -> Iterator[TextView]:
    """Readings of bytes that are not UTF-8: legacy text, or UTF-8 with something else in it."""
    damaged = TextView(
        raw=data.decode("utf-8", "surrogateescape"), encoding="utf-8", errors="surrogateescape"
    )
    plain = TextView(data.decode("latin-1"), "latin-1")
    japanese, western = decode_strictly(data, "cp932"), decode_strictly(data, "cp1252")
    order: tuple[TextView | None, ...]
    if is_mostly_utf8(data):
        order = (damaged, japanese, western, plain)
    elif japanese and is_japanese(japanese.raw):
        order = (japanese, western, plain, damaged)
    elif western and not CONTROLS.intersection(data):
        order = (western, plain, japanese, damaged)
    else:
        order = (damaged, plain, western, japanese)
    return (view for view in order if view)


def is_mostly_utf8(data: bytes) -> bool:
    """Whether more lines are UTF-8 than are not, apart from those in plain ASCII."""
    fitting = unfitting = 0
    for line in data[:SNIFFED].split(b"\n"):
        if not line.isascii():
            try:
                line.decode()
                fitting += 1
            except UnicodeDecodeError:
                unfitting += 1
    return fitting > unfitting


def is_japanese(text: str) -> bool:
    """Whether enough of the wide characters are kana; by chance hardly any are."""
    wide = [ord(char) for char in text[:SNIFFED] if char > "\xff"]
    return sum(code in KANA for code in wide) * 5 > len(wide)


def decode_strictly(data: bytes, encoding: str) -> TextView | None:
    """A reading that leads back to the same bytes, or None."""
    try:
        raw = data.decode(encoding)
        # Several codes of a charset may mean one character: only the lengths must agree.
        if len(raw.encode(encoding)) != len(data):
            return None
    except UnicodeError:
        return None
    return TextView(raw, encoding)
