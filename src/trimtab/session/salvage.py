"""Recovers events from a damaged stretch of a log: the slow path of reading."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.session.record import (
    JUNK,
    Damage,
    Record,
    parse_record,
)

# The stretch is decoded as Latin-1, where one character is one byte: JSON's structure is ASCII, so
# offsets in the text are offsets in the file, whatever the strings contain.
_JUNK = JUNK.decode("latin-1")
_FIRST_KEY = re.compile(r'\s*"(?:type|data|id|timestamp|parentId|agentId|ephemeral)"\s*:')
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CONTROL = re.compile(r"[\0-\x1f]")
_REPLACEMENT = "\ufffd".encode()
_object = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)


class _Span(msgspec.Struct):
    """A piece of the stretch: an event, or the bytes between two events."""

    start: int
    end: int
    record: Record | None = None
    damage: Damage | None = None


def salvage(raw: bytes, offset: int, *, at_end: bool) -> Iterator[Record | Damage]:
    """Yield every event in the stretch, repaired if needed, and the damage between, in order."""
    spans = _with_fragments(raw, offset, list(_events(raw, offset)))
    _rejoin(raw, offset, spans)
    previous = None
    for span in spans:
        kind = span.damage.kind if span.damage else None
        if kind == "garbage" and at_end and span is spans[-1] and raw[span.start] == ord("{"):
            yield Damage(
                "torn", offset + span.start, span.end - span.start, raw[span.start : span.end]
            )
        elif span.damage:
            yield span.damage
        elif previous is not None and b"\n" not in raw[previous : span.start]:
            yield Damage("glued", offset + span.start, span.end - span.start)
        if span.record:
            yield span.record
            previous = span.end if kind != "halves" else previous
    # Here too, the last record of a file may lack its newline.
    if at_end and spans and spans[-1].record and b"\n" not in raw[spans[-1].end :]:
        yield Damage("unterminated", offset + len(raw), 0)


def _events(raw: bytes, offset: int) -> Iterator[_Span]:
    text = raw.decode("latin-1")
    at = 0
    # Bounds the work on rubbish with countless opening braces; real stretches never come near.
    budget = 64 * len(text) + (1 << 20)
    while budget > 0 and (start := _find_start(text, at)) >= 0:
        value, at, read = _decode(text, start)
        budget -= read
        if _is_event(value, text, start, at):
            span = _repaired(raw, start, at, offset)
            if span:
                yield span


def _decode(text: str, start: int) -> tuple[Any, int, int]:
    """Return the JSON value at `start`, the index to continue at, and the length of text read.

    Tries pieces of growing size, because a failure costs as much as the text that was passed.
    """
    size, read = 1 << 12, 0
    while True:
        piece = text[start : start + size]
        read += len(piece)
        try:
            value, end = _object.raw_decode(piece)
            return value, start + end, read
        except json.JSONDecodeError as error:
            cut_off = error.pos > len(piece) - 16 or error.msg.startswith("Unterminated")
            if not cut_off or start + size >= len(text):
                return None, start + 1, read
        except RecursionError:
            return None, start + 1, read
        size <<= 3


def _find_start(text: str, at: int) -> int:
    """Return the index of the next brace that may open an event, judged by what is around it."""
    while (at := text.find("{", at)) >= 0:
        if _FIRST_KEY.match(text, at + 1) or _before(text, at) in _EDGES:
            return at
        at += 1
    return -1


_EDGES = ("", "\n", "}")


def _before(text: str, at: int) -> str:
    """Return the character before a position, skipping junk; empty at the start."""
    while at > 0 and text[at - 1] in _JUNK:
        at -= 1
    return text[at - 1 : at]


def _is_event(value: Any, text: str, start: int, end: int) -> bool:
    """Return True if a JSON object is an event, and not part of a broken event around it."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    before = _before(text, start)
    while end < len(text) and text[end] in _JUNK:
        end += 1
    after = text[end : end + 1]
    if before in _EDGES and after in ("", "\n", "{"):
        return True
    inside = before in (":", ",", "[") and after in (",", "}", "]")
    complete = value.get("id") and "data" in value and "timestamp" in value and "parentId" in value
    return bool(complete) and not inside


def _repaired(raw: bytes, start: int, end: int, offset: int) -> _Span | None:
    piece = raw[start:end]
    record = parse_record(piece, offset + start) if b"\n" not in piece else None
    if record:
        return _Span(start, end, record)
    # A newline in a text is part of it; one in a name or a number of the envelope is not.
    candidates = [_on_one_line(piece, newline, offset + start) for newline in (b"\\n", b"")]
    record = max(filter(None, candidates), key=_count_fields, default=None)
    if record is None:
        return None
    kind = "newline" if b"\n" in piece else "nul" if b"\0" in piece else "utf8"
    return _Span(start, end, record, Damage(kind, offset + start, end - start, piece))


def _on_one_line(piece: bytes, newline: bytes, offset: int) -> Record | None:
    """Return the event with something in place of the newlines in its strings, if it is one."""
    line = _STRING.sub(lambda match: _clean(match[0], newline), piece).replace(b"\n", b"")
    try:
        line.decode()
    except UnicodeDecodeError:
        line = line.decode("utf-8", "replace").encode()
    record = parse_record(line, offset)
    if record and _CONTROL.search(f"{record.type}{record.id}{record.parent_id}"):
        return None
    return record


def _count_fields(record: Record) -> int:
    """Return how many fields of the envelope a record has."""
    fields = (record.id, record.parent_id, record.agent_id, record.timestamp, record.has_data)
    return sum(map(bool, fields))


def _clean(string: bytes, newline: bytes) -> bytes:
    """Return a JSON string on one line, with U+FFFD in place of lost bytes."""
    string = string.replace(b"\r\n", newline).replace(b"\n", newline)
    return re.sub(rb"\0+", _REPLACEMENT, string)


def _with_fragments(raw: bytes, offset: int, events: list[_Span]) -> list[_Span]:
    """Return the events with the fragments of lines between them."""
    spans: list[_Span] = []
    at = 0
    for event in (*events, None):
        end = event.start if event else len(raw)
        spans += _fragments(raw, at, end, offset)
        if event:
            spans.append(event)
            at = event.end
    return spans


def _fragments(raw: bytes, start: int, end: int, offset: int) -> Iterator[_Span]:
    while start < end:
        stop = raw.find(b"\n", start, end)
        stop = end if stop < 0 else stop
        piece = raw[start:stop]
        inner = piece.strip(JUNK)
        if inner:
            first = start + piece.find(inner)
            last = first + len(inner)
            yield _Span(first, last, None, Damage("garbage", offset + first, len(inner), inner))
        elif b"\0" in piece:
            yield _Span(start, stop, None, Damage("nul", offset + start, len(piece)))
        elif raw[start - 1 : start] in (b"", b"\n") and raw[stop : stop + 1] == b"\n":
            yield _Span(start, stop, None, Damage("blank", offset + start, len(piece)))
        start = stop + 1


def _rejoin(raw: bytes, offset: int, spans: list[_Span]) -> None:
    """Join an event whose halves are separated by other events or a stray newline."""
    halves = [span for span in spans if span.damage and span.damage.kind == "garbage"]
    index = 0
    while index + 1 < len(halves):
        first, second = halves[index : index + 2]
        line = raw[first.start : first.end] + raw[second.start : second.end]
        record = parse_record(line, offset + first.start) if line[:1] == b"{" else None
        if record and record.id:
            first.record = record
            for half in (first, second):
                half.damage = Damage(
                    "halves", offset + half.start, half.end - half.start, raw[half.start : half.end]
                )
            index += 1
        index += 1
