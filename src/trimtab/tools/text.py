"""Decodes the bytes of a file, and maps each character back to its bytes."""

from collections.abc import Iterator

BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
UNITS = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
"""Encodings whose code units have more than one byte, and their size."""
SHIFTS = b"\x1b$"
"""The escape sequence after which bytes of ISO-2022 text are not ASCII."""
SINGLE_BYTE = {"cp1252", "latin-1"}
KANA = range(0x3041, 0x30FF)
SNIFFED = 65536
CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")
"""Control characters that do not occur in text."""


class TextView:
    """A decoding of a file: `raw` is the text of the bytes from `start` on.

    `plain` is the same text with every line ended by a single newline character. Invalid bytes are
    kept by `errors`, so that offsets always lead back to bytes.
    """

    __slots__ = ("encoding", "errors", "plain", "raw", "start")

    def __init__(self, raw: str, encoding: str, errors: str = "strict", start: int = 0) -> None:
        self.raw = raw
        self.encoding = encoding
        self.errors = errors
        self.start = start
        self.plain = raw.replace("\r\n", "\n").replace("\r", "\n") if "\r" in raw else raw

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of `raw` for a span of `plain`. It never splits a \\r\\n."""
        if len(self.plain) == len(self.raw):
            return start, end
        first = self._raw_offset(start, 0)
        return first, self._raw_offset(end - start, first)

    def _raw_offset(self, offset: int, base: int) -> int:
        """Return the position `offset` plain characters after `base`; each \\r\\n adds one."""
        seen, at = base, base + offset
        while pairs := self.raw.count("\r\n", max(seen - 1, base), at):
            seen, at = at, at + pairs
        return at + 1 if self.raw[at - 1 : at + 1] == "\r\n" else at

    def byte_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the bytes of the file that a span of `raw` occupies."""
        if self.raw.isascii() and self.encoding not in UNITS:
            return self.start + start, self.start + end
        first = self.start + self._size(0, start)
        return first, first + self._size(start, end)

    def _size(self, start: int, end: int) -> int:
        return len(self.raw[start:end].encode(self.encoding, self.errors))

    def can_replace(self, other: "TextView") -> bool:
        """Return True if text in this encoding leaves a file that the other view can decode."""
        return {self.encoding, other.encoding} <= SINGLE_BYTE

    def shown(self) -> str:
        """Return the text for a reader."""
        return self.plain if self.errors == "strict" else readable(self.plain)


def readable(text: str) -> str:
    """Replace lone surrogates by U+FFFD: neither a model nor a log accepts them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def first_view(data: bytes) -> TextView:
    """Return the most plausible decoding of a file."""
    return next(views(data))


def views(data: bytes) -> Iterator[TextView]:
    """Yield decodings of a file, the most plausible first; one unless it is damaged or legacy."""
    for bom, encoding in BOMS:
        if data.startswith(bom) and (view := decode_from(data, len(bom), encoding)):
            yield view
            return
    if (wide := find_wide(data)) and (view := decode_from(data, 0, wide)):
        yield view
        return
    try:
        # ISO-2022 text consists of ASCII bytes, and must not be continued in UTF-8.
        yield TextView(data.decode(), "ascii" if SHIFTS in data and data.isascii() else "utf-8")
    except UnicodeDecodeError:
        yield from legacy_views(data)


def decode_from(data: bytes, start: int, encoding: str) -> TextView | None:
    """Decode the text after a byte order mark; return None if it is not text."""
    errors = "surrogatepass" if encoding in UNITS else "surrogateescape"
    # An incomplete code unit at the end is not part of the text and is never changed.
    end = len(data) - (len(data) - start) % UNITS.get(encoding, 1)
    try:
        return TextView(data[start:end].decode(encoding, errors), encoding, errors, start)
    except UnicodeDecodeError:
        return None


def find_wide(data: bytes) -> str:
    """Return the encoding of UTF-16 without a mark, or "". Most of its high bytes are zero."""
    sample = data[: SNIFFED & -2]
    if b"\0" not in sample[:4] or len(data) % 2:
        return ""
    for encoding, zero in (("utf-16-le", 1), ("utf-16-be", 0)):
        if sample[zero::2].count(0) * 10 > len(sample) // 2 * 7:
            try:
                codes = set(map(ord, sample.decode(encoding, "surrogatepass")))
            except UnicodeDecodeError:
                return ""
            return "" if codes & CONTROLS else encoding
    return ""


def legacy_views(data: bytes) -> Iterator[TextView]:
    """Return decodings of bytes that are not UTF-8: legacy text, or damaged UTF-8."""
    raw = data.decode("utf-8", "surrogateescape")
    # A file without any UTF-8 must not get any.
    encoding = "utf-8" if has_more_than_ascii(raw) else "ascii"
    damaged = TextView(raw, encoding, "surrogateescape")
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


def has_more_than_ascii(raw: str) -> bool:
    """Return True if non-ASCII characters were decoded; undecodable bytes do not count."""
    try:
        raw.encode("ascii", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def is_mostly_utf8(data: bytes) -> bool:
    """Return True if more lines are UTF-8 than not, apart from lines in ASCII."""
    valid = invalid = 0
    for line in data[:SNIFFED].split(b"\n"):
        if not line.isascii():
            try:
                line.decode()
                valid += 1
            except UnicodeDecodeError:
                invalid += 1
    return valid > invalid


def is_japanese(text: str) -> bool:
    """Return True if a fifth of the wide characters are kana; by chance hardly any are."""
    wide = [ord(char) for char in text[:SNIFFED] if char > "\xff"]
    return sum(code in KANA for code in wide) * 5 > len(wide)


def decode_strictly(data: bytes, encoding: str) -> TextView | None:
    """Decode without errors and without a change of length; return None if that fails."""
    try:
        raw = data.decode(encoding)
        # Several codes may stand for one character, so only the lengths must be equal.
        if len(raw.encode(encoding)) != len(data):
            return None
    except UnicodeError:
        return None
    return TextView(raw, encoding)
