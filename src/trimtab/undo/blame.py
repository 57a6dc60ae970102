"""Blame: attributes each line of a file to a session, turn and call, or to a person."""

import os
from collections.abc import Iterator, Mapping

import msgspec

from trimtab.config.paths import find_home
from trimtab.contracts.changes import Change, FileState
from trimtab.contracts.errors import UsageError
from trimtab.session.folder import SessionFolder
from trimtab.session.records import read_records
from trimtab.session.store import SessionStore
from trimtab.undo.blobs import BlobStore, digest_of
from trimtab.undo.changes import Recorded, read_changes
from trimtab.undo.merge import changed, split

MAX_SIZE = 8 * 1024 * 1024


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a line. `reason` is before (older than any record), person, or a change's."""

    reason: str
    session: str = ""
    turn: int = 0
    call: str = ""
    agent: str = ""
    detail: str = ""
    timestamp: str = ""


class Line(msgspec.Struct, frozen=True):
    """One line of the file as it is now."""

    source: Source
    text: bytes


class Step(msgspec.Struct, frozen=True):
    """A recorded change of the file, and the store of its contents."""

    source: Source
    change: Change
    store: BlobStore


RESTORING = ("undo", "redo", "rewind")
"""Reasons that restore lines somebody else wrote."""
BEFORE = Source(reason="before")
PERSON = Source(reason="person")


def blame(env: Mapping[str, str], path: str) -> list[Line]:
    """Return the lines of a text file with their sources. Raises `UsageError`."""
    folder, name = os.path.split(os.path.abspath(path))
    target = os.path.join(os.path.realpath(folder), name)
    try:
        with open(target, "rb") as file:
            data = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); name a text file.") from error
    if len(data) > MAX_SIZE or b"\0" in data:
        raise UsageError(f"{path} is not a text file of at most 8 MB; name another file.")
    steps = sorted(_steps(env, target), key=lambda step: step.source.timestamp)
    lines: list[Line] = []
    digest: str | None = None
    known: dict[str, list[Line]] = {}
    for step in steps:
        before, after = _read(step.change.before, step), _read(step.change.after, step)
        if before is None or after is None:
            continue
        if digest != digest_of(before):
            unseen = PERSON if digest is not None else BEFORE
            lines = follow(lines, before, unseen)
        known[digest_of(before)] = lines
        digest = digest_of(after)
        restored = known.get(digest) if step.source.reason in RESTORING else None
        lines = follow(lines, after, step.source) if restored is None else restored
    if digest != digest_of(data):
        lines = follow(lines, data, PERSON if digest is not None else BEFORE)
    return lines


def follow(lines: list[Line], data: bytes, source: Source) -> list[Line]:
    """Return the lines after a change: unchanged lines keep their source, new ones get this."""
    new = split(data)
    ops = changed([line.text for line in lines], new)
    if ops is None:
        return [Line(source, text) for text in new]
    followed: list[Line] = []
    at = 0
    for i1, i2, j1, j2 in ops:
        followed += lines[at:i1]
        followed += [Line(source, text) for text in new[j1:j2]]
        at = i2
    return followed + lines[at:]


def _steps(env: Mapping[str, str], path: str) -> Iterator[Step]:
    """Yield every recorded change of a path, in all sessions on this machine."""
    store = SessionStore(find_home(env))
    name = msgspec.json.encode(os.path.basename(path).encode("utf-8", "replace").decode())
    for summary in store.list():
        folder = store.folder(summary.id)
        yield from _steps_of(folder, path, name.strip(b'"'))


def _mentions(folder: SessionFolder, name: bytes) -> bool:
    """Return False if a log certainly has no change of the file, so that it need not be parsed."""
    with open(folder.events, "rb") as file:
        data = file.read()
    return b"trimtab.workspace_changed" in data and (name in data or b"listDigest" in data)


def _steps_of(folder: SessionFolder, path: str, name: bytes) -> Iterator[Step]:
    store = BlobStore(folder.blobs)
    try:
        if not _mentions(folder, name):
            return
        for entry in read_changes(read_records(folder.events), store):
            for change in entry.changes:
                if change.os_path == path and change.before != change.after:
                    yield Step(_source(folder.id, entry), change, store)
    except OSError:
        return  # no log, or a list of changes was deleted by hand: earlier changes still count


def _source(session: str, entry: Recorded) -> Source:
    event = entry.event
    return Source(
        reason=event.reason,
        session=session,
        turn=entry.turn,
        call=event.tool_call_id or "",
        agent=entry.agent_id or "",
        detail=event.detail or "",
        timestamp=entry.timestamp,
    )


def _read(state: FileState, step: Step) -> bytes | None:
    """Return the content of a state: empty if there was no file, None if it is unknown."""
    if state.kind != "file":
        return b""
    try:
        return step.store.get(state.digest) if state.digest else None
    except OSError:
        return None
