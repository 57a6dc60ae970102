"""Reads the records of an event log as a stream, and separates them from damage."""

import os
import time
from collections.abc import Callable, Iterator

from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.user import UserMessage
from trimtab.session.record import JUNK, Damage, Record, parse_record

_BLOCK = 1 << 18
_POLL_SECONDS = 0.1
_STRETCH_LIMIT = 1 << 24
"""A damaged stretch is processed in pieces of about this size, to bound memory."""


def read_records(path: str, *, start: int = 0) -> Iterator[Record]:
    """Yield the records of a log from the line that begins at `start`; damage is skipped."""
    with open(path, "rb") as file:
        for piece in scan(file.fileno(), start):
            if type(piece) is Record:
                yield piece


def tail_records(path: str, *, since: str = "user.message") -> Iterator[Record]:
    """Yield the records from the main agent's last `since` event on. Searches from the end."""
    return read_records(path, start=find_last(path, since))


def follow_records(path: str, *, start: int, is_running: Callable[[], bool]) -> Iterator[Record]:
    """Yield records from `start` on as another process writes them, until it ends.

    A record is complete once its newline is written.
    """
    while True:
        last_round = not is_running()
        size = os.stat(path).st_size
        start = min(start, size)  # a log that got shorter was repaired; its records were shown
        for record in read_records(path, start=start):
            end = record.offset + len(record.line) + 1
            if end > size:
                break
            start = end
            yield record
        if last_round:
            return
        time.sleep(_POLL_SECONDS)


def begins_turn(record: Record) -> bool:
    """Return True for a prompt of a person or client, which begins a turn of undo and rewind."""
    if record.type != "user.message" or record.agent_id is not None:
        return False
    data = decode(record.line).data
    return not isinstance(data, UserMessage) or data.source in (None, "user")


def count_turns(log: str) -> int:
    """Return the number of turns in a session."""
    return sum(begins_turn(record) for record in read_records(log))


def find_last(path: str, wire_name: str) -> int:
    """Return the offset of the main agent's last such event, or 0. Reads blocks backwards."""
    needle = b'"' + wire_name.encode() + b'"'
    with open(path, "rb") as file:
        fd = file.fileno()
        end = os.fstat(fd).st_size
        while end > 0:
            begin = max(0, end - (_BLOCK << 2))
            # A little more than the block, for a needle that crosses its end.
            block = os.pread(fd, end - begin + len(needle) - 1, begin)
            limit, end = len(block), begin
            while (at := block.rfind(needle, 0, limit)) >= 0:
                offset, line = _line_around(fd, begin + at)
                record = parse_record(line.strip(JUNK), offset)
                if record and record.type == wire_name and record.agent_id is None:
                    return offset
                if offset <= begin:
                    end = offset
                    break
                limit = offset - begin
    return 0


def last_record(fd: int, *, within: int = 1 << 22) -> Record | None:
    """Return the last record, if it begins in the last `within` bytes."""
    size = os.fstat(fd).st_size
    length = min(size, 1 << 13)
    while True:
        begin = size - length
        lines = os.pread(fd, length, begin).split(b"\n")
        first = 0 if begin == 0 else 1
        offset = size
        for index in range(len(lines) - 1, first - 1, -1):
            offset -= len(lines[index])
            record = parse_record(lines[index].strip(JUNK), offset)
            if record:
                return record
            offset -= 1
        if length >= min(size, within):
            return None
        length = min(size, length << 3)


def scan(fd: int, start: int = 0) -> Iterator[Record | Damage]:
    """Yield everything in a log, in order: each record, and the damage between records."""
    stretch = _Stretch()
    for offset, line, terminated in _lines(fd, start):
        damage = None
        record = parse_record(line, offset) if line[-1:] == b"}" else None
        if record is None:
            trimmed = _trimmed(line, offset, blank_too=not stretch.lines)
            if trimmed is None:
                if stretch.ended_by(line):
                    yield from stretch.salvaged()
                stretch.add(line, offset, terminated)
                continue
            damage, record = trimmed
        if stretch.lines:
            yield from stretch.salvaged()
        if damage:
            yield damage
        if record:
            if not terminated:
                yield Damage("unterminated", offset + len(line), 0)
            yield record
    if stretch.lines:
        yield from stretch.salvaged(at_end=True)


class _Stretch:
    """Consecutive lines that are not records: perhaps one broken record, perhaps rubbish."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._offset = 0
        self._size = 0

    def add(self, line: bytes, offset: int, terminated: bool) -> None:
        if not self.lines:
            self._offset = offset
        self.lines.append(line + b"\n" if terminated else line)
        self._size += len(line)

    def ended_by(self, line: bytes) -> bool:
        """Return True if a line cannot continue a record: it begins like an event."""
        return bool(self.lines) and (self._size > _STRETCH_LIMIT or line.startswith(b'{"type":"'))

    def salvaged(self, *, at_end: bool = False) -> Iterator[Record | Damage]:
        from trimtab.session.salvage import salvage

        raw, offset = b"".join(self.lines), self._offset
        self.lines, self._size = [], 0
        return salvage(raw, offset, at_end=at_end)


def _lines(fd: int, start: int) -> Iterator[tuple[int, bytes, bool]]:
    """Each line with its offset and whether a newline ends it; `\\n` is the only separator.

    Blocks of nothing but NUL are given out as lines, so that a hole of any size costs no memory.
    """
    os.lseek(fd, start, os.SEEK_SET)
    offset = start
    parts: list[bytes] = []
    while block := os.read(fd, _BLOCK):
        if b"\n" not in block:
            parts.append(block)
            if not block.strip(b"\0"):
                for part in (b"".join(parts[:-1]), block):
                    if part:
                        yield offset, part, False
                        offset += len(part)
                parts.clear()
            continue
        lines = block.split(b"\n")
        if parts:
            lines[0] = b"".join(parts) + lines[0]
            parts.clear()
        if rest := lines.pop():
            parts.append(rest)
        for line in lines:
            yield offset, line, True
            offset += len(line) + 1
    if parts:
        yield offset, b"".join(parts), False


def _trimmed(
    line: bytes, offset: int, *, blank_too: bool
) -> tuple[Damage | None, Record | None] | None:
    """Return the record of a line after stripping junk, or its damage; None if it has neither."""
    inner = line.strip(JUNK)
    if not inner and not blank_too:
        return None
    before = line.find(inner)
    record = parse_record(inner, offset + before) if inner else None
    if inner and record is None:
        return None
    kind = _edge_kind(line[:before] + line[before + len(inner) :], bool(inner))
    return Damage(kind, offset, len(line)) if kind else None, record


def _edge_kind(edges: bytes, has_record: bool) -> str | None:
    if b"\0" in edges:
        return "nul"
    if b"\xef" in edges:
        return "bom"
    if not has_record:
        return "blank"
    return "crlf" if b"\r" in edges else None


def _line_around(fd: int, position: int) -> tuple[int, bytes]:
    """Return the offset of the line at a position, and the line."""
    begin = position
    while begin > 0:
        length = min(begin, _BLOCK)
        newline = os.pread(fd, length, begin - length).rfind(b"\n")
        if newline >= 0:
            begin = begin - length + newline + 1
            break
        begin -= length
    parts: list[bytes] = []
    at = begin
    while block := os.pread(fd, _BLOCK, at):
        newline = block.find(b"\n")
        if newline >= 0:
            parts.append(block[:newline])
            break
        parts.append(block)
        at += len(block)
    return begin, b"".join(parts)
