"""Examines an event log for damage and repairs it without losing a byte."""

import os
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from trimtab.config.files import cannot, open_private, sync_dir, write_all
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.session import LOG_VERSION
from trimtab.session.record import Damage, Record
from trimtab.session.records import scan
from trimtab.version import __version__

_FINDINGS_KEPT = 1000

_FACTS = {
    "torn": "The last record is cut off.",
    "garbage": "There are bytes that are not an event.",
    "nul": "There is a run of NUL bytes, as left by a crash.",
    "glued": "Two records are on one line.",
    "duplicate": "A record is in the log twice.",
    "newline": "A record is spread over several lines.",
    "halves": "A record was written in two halves.",
    "utf8": "A record contains bytes that are not UTF-8.",
    "unterminated": "The last record lacks its newline.",
    "blank": "There is an empty line.",
    "crlf": "A line ends with a Windows newline.",
    "bom": "There is a byte order mark.",
    "chain": "An event does not name the one before it as its parent.",
    "same-id": "Two different events carry the same id.",
    "empty": "The log is empty: it contains no event.",
    "no-start": "The first event is not session.start, so the beginning may be missing.",
    "no-data": "An event has no data and is skipped.",
    "future": "The log is in a newer version of the format than this program reads.",
}
_REPAIRS = {
    "torn": "It was set aside.",
    "garbage": "They were set aside.",
    "nul": "It was removed.",
    "glued": "They were separated.",
    "duplicate": "The copy was dropped.",
    "newline": "It was put on one line.",
    "halves": "They were joined.",
    "utf8": "They were replaced by U+FFFD; the original was set aside.",
    "unterminated": "One was added.",
    "blank": "It was removed.",
    "crlf": "It now ends with a plain newline.",
    "bom": "It was removed.",
}
_MERGED_ANYWHERE = frozenset(("blank", "crlf", "duplicate", "chain", "same-id", "no-data"))
_REPORTED = frozenset(("empty", "no-start", "no-data"))
"""Oddities reported to whoever resumes the session, because something may be missing."""


class Finding(msgspec.Struct):
    """A kind of damage or oddity in a log: its place, and how often it occurs in a row."""

    kind: str
    offset: int
    length: int
    count: int = 1

    @property
    def fact(self) -> str:
        """A sentence that says what is wrong."""
        return _FACTS[self.kind] + (f" ({self.count} times)" if self.count > 1 else "")

    @property
    def is_reported(self) -> bool:
        """True if it is reported on resuming the session although nothing was changed."""
        return self.kind in _REPORTED

    @property
    def sentence(self) -> str:
        """Sentences that say what was wrong and how it was repaired."""
        return f"{self.fact} {_REPAIRS.get(self.kind, 'Nothing was changed.')}"


class Findings:
    """Findings in order. Repetitions extend the previous finding, so that the list stays short."""

    def __init__(self) -> None:
        self.items: list[Finding] = []
        self._latest: dict[str, Finding] = {}

    def add(self, kind: str, offset: int, length: int) -> None:
        last = self._latest.get(kind)
        if last and (
            kind in _MERGED_ANYWHERE
            or len(self.items) >= _FINDINGS_KEPT
            or (last is self.items[-1] and offset - (last.offset + last.length) <= 1)
        ):
            last.length = offset + length - last.offset
            last.count += 1
            return
        self._latest[kind] = Finding(kind, offset, length)
        self.items.append(self._latest[kind])


class Examination:
    """A reading of a whole log: its records without duplicates, and its findings.

    Memory grows by some 100 bytes for each event, whatever its size.
    """

    def __init__(self, fd: int) -> None:
        self.count = 0
        self.last_id: str | None = None
        self.version: float = 0
        """The version of the format that the log says it is in; 0 if it does not say."""
        self._fd = fd
        self._damage = Findings()
        self._oddities = Findings()
        self._seen: dict[int, int] = {}

    @property
    def findings(self) -> list[Finding]:
        """The damage that a repair removes."""
        return self._damage.items

    @property
    def notes(self) -> list[Finding]:
        """The oddities that a repair leaves alone."""
        return self._oddities.items

    def pieces(self) -> Iterator[Record | Damage]:
        for piece in scan(self._fd):
            if type(piece) is Damage:
                self._damage.add(piece.kind, piece.offset, piece.length)
            elif type(piece) is Record:
                if piece.id and self._is_duplicate(piece):
                    self._damage.add("duplicate", piece.offset, len(piece.line))
                    continue
                self._note_oddities(piece)
                self.count += 1
                self.last_id = piece.id or self.last_id
            yield piece
        if not self.count:
            self._oddities.add("empty", 0, 0)

    def _note_oddities(self, record: Record) -> None:
        """Note the oddities of a valid record."""
        if not self.count and record.type != "session.start":
            self._oddities.add("no-start", record.offset, len(record.line))
        if not record.has_data:
            self._oddities.add("no-data", record.offset, len(record.line))
        if record.parent_id != self.last_id:
            self._oddities.add("chain", record.offset, len(record.line))
        if record.type == "session.start":
            self.version = max(self.version, read_version(record.line))
            if self.version > LOG_VERSION:
                self._oddities.add("future", record.offset, len(record.line))

    def finish(self) -> None:
        for _ in self.pieces():
            pass

    def _is_duplicate(self, record: Record) -> bool:
        content = hash(record.line)
        key = hash(record.id)
        earlier = self._seen.get(key)
        if earlier is None:
            self._seen[key] = content
        elif earlier != content:
            self._oddities.add("same-id", record.offset, len(record.line))
        return earlier == content


class _Start(msgspec.Struct, frozen=True):
    version: float | str = 0


class _StartLine(msgspec.Struct, frozen=True):
    data: _Start = _Start()


def read_version(line: bytes) -> float:
    """Return the format version in a `session.start`; 0 if there is none."""
    try:
        return float(msgspec.json.decode(line, type=_StartLine).data.version)
    except (ValueError, RecursionError):
        return 0


def refuse_future(path: str, version: float) -> None:
    """Raise if this program does not know a log's version: writing would damage the log."""
    if version > LOG_VERSION:
        raise ConfigurationError(
            f"{path} is in version {version:g} of the log format, and this program "
            f"({__version__}) reads versions up to {LOG_VERSION}. The log was not changed; "
            "update trimtab to open it, or start a new session."
        )


def examine(path: str) -> Examination:
    """Read a log from end to end and change nothing."""
    with open(path, "rb") as file:
        examination = Examination(file.fileno())
        examination.finish()
    return examination


def sound_records(path: str) -> Iterator[Record]:
    """Yield the records a log would have after a repair, without repairing it."""
    with open(path, "rb") as file:
        for piece in Examination(file.fileno()).pieces():
            if type(piece) is Record:
                yield piece


def repair(path: str) -> Examination:
    """Repair a log. Removed bytes go to `<log>.damaged-<n>` first. The caller holds the lease.

    An intact log is not written to. A repaired log is a new file that replaces the old one, so a
    crash in between leaves the log as it was.
    """
    path = os.path.realpath(path)
    examination = examine(path)
    refuse_future(path, examination.version)
    kinds = {finding.kind for finding in examination.findings}
    try:
        if kinds == {"unterminated"}:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            try:
                write_all(fd, b"\n")
                os.fsync(fd)
            finally:
                os.close(fd)
        elif kinds:
            _rewrite(path)
    except OSError as error:
        raise cannot("repair", path, error) from error
    return examination


def check_readable(path: str) -> None:
    """Raise if a log is not a readable file."""
    try:
        if not os.path.isfile(path) and os.path.exists(path):
            raise ConfigurationError(
                f"{path} is not a file: move it away, or restore the log from a backup."
            )
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        raise cannot("read", path, error) from error


def _rewrite(path: str) -> None:
    temporary = path + ".repaired"
    aside = _SideFile(path)
    out = open_private(temporary, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
    try:
        _copy_records(path, out, aside)
        os.fsync(out)
        aside.close()
        os.replace(temporary, path)
        sync_dir(os.path.dirname(path))
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        os.close(out)
        aside.close()


def _copy_records(path: str, out: int, aside: "_SideFile") -> None:
    with open(path, "rb") as file, open(out, "wb", closefd=False) as new:
        for piece in Examination(file.fileno()).pieces():
            if type(piece) is Record:
                new.write(piece.line + b"\n")
            elif type(piece) is Damage and piece.raw:
                aside.keep(piece)


class _SideFile:
    """The file for bytes removed from a log: for each piece a line with its offset and length, then
    the piece itself and a newline."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._fd: int | None = None

    def keep(self, damage: Damage) -> None:
        if self._fd is None:
            self._fd = self._create()
        head = {"offset": damage.offset, "length": len(damage.raw), "kind": damage.kind}
        write_all(self._fd, msgspec.json.encode(head) + b"\n" + damage.raw + b"\n")

    def close(self) -> None:
        if self._fd is not None:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = None

    def _create(self) -> int:
        folder, name = os.path.split(self._log)
        prefix = f"{name}.damaged-"
        numbers = [entry[len(prefix) :] for entry in os.listdir(folder) if entry.startswith(prefix)]
        number = 1 + max((int(text) for text in numbers if text.isdecimal()), default=0)
        path = os.path.join(folder, f"{prefix}{number}")
        return open_private(path, os.O_WRONLY | os.O_EXCL)
