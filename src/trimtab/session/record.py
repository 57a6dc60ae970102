"""One record of an event log, and how a line is read as one."""

import msgspec

from trimtab.contracts.events.codec import NO_DATA, Envelope, decode, peek

_BRACE = ord("{")

JUNK = b" \t\r\0\xef\xbb\xbf"
"""Bytes that may surround a record and are never part of one: space, NUL, byte order mark."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One event as it stands in the log: its line without the newline, and where it begins."""

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
    """Bytes of a log that are no record as they stand. `raw` is what is worth setting aside."""

    kind: str
    offset: int
    length: int
    raw: bytes = b""


def whole(line: bytes, offset: int) -> Record | None:
    """The record a line holds, if it is one event and nothing else."""
    try:
        envelope = peek(line)
        if not line.isascii():
            line.decode()  # the data has been skipped, not checked
    except msgspec.ValidationError:
        return None
    except (ValueError, RecursionError):
        return _leniently(line, offset)
    return _record(line, offset, envelope)


def _leniently(line: bytes, offset: int) -> Record | None:
    """What other writers produce is whole if our reader understands it; NUL never is."""
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


def _record(line: bytes, offset: int, envelope: Envelope) -> Record:
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
