"""A record of an event log, and the parsing of a line as a record."""

import msgspec

from trimtab.contracts.events.codec import NO_DATA, Envelope, decode, peek

_BRACE = ord("{")

JUNK = b" \t\r\0\xef\xbb\xbf"
"""Bytes that may surround a record and are never part of one: space, NUL, byte order mark."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """An event in the log: its line without the newline, and the line's offset."""

    line: bytes
    offset: int
    type: str
    id: str
    parent_id: str | None
    agent_id: str | None
    timestamp: str
    has_data: bool = True
    """True if the data of the event is an object, as it must be."""


class Damage(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a log that are not a valid record. `raw` is the part worth setting aside."""

    kind: str
    offset: int
    length: int
    raw: bytes = b""


def parse_record(line: bytes, offset: int) -> Record | None:
    """Return the record in a line, or None if it is not exactly one event."""
    try:
        envelope = peek(line)
        if not line.isascii():
            line.decode()  # `peek` skips the data without checking it
    except msgspec.ValidationError:
        return None
    except (ValueError, RecursionError):
        return _parse_leniently(line, offset)
    return _from_envelope(line, offset, envelope)


def _parse_leniently(line: bytes, offset: int) -> Record | None:
    """Parse a line of another writer: valid if our decoder accepts it, and without NUL bytes."""
    if line[:1] != b"{" or line[-1:] != b"}" or b"\0" in line:
        return None
    try:
        line.decode("utf-8", "surrogatepass")
        event = decode(line)
    except (ValueError, RecursionError):
        return None
    return Record(
        line,
        offset,
        event.type,
        event.id,
        event.parent_id,
        event.agent_id,
        event.timestamp,
        isinstance(event.data, dict | msgspec.Struct),
    )


def _from_envelope(line: bytes, offset: int, envelope: Envelope) -> Record:
    return Record(
        line,
        offset,
        envelope.type,
        envelope.id,
        envelope.parent_id,
        envelope.agent_id,
        envelope.timestamp,
        envelope.data is not NO_DATA and memoryview(envelope.data)[0] == _BRACE,
    )
