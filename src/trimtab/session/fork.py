"""Forks a session: creates a new one from the beginning of another."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import msgspec

from trimtab.config.files import (
    cannot,
    make_private_dir,
    open_private,
    sync_dir,
    write_new_file,
)
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.ids import new_id, timestamp
from trimtab.contracts.text import count
from trimtab.session.folder import SessionFolder
from trimtab.session.lease import NAME as LOCK
from trimtab.session.metadata import render
from trimtab.session.records import begins_turn
from trimtab.session.repair import sound_records
from trimtab.session.store import SessionStore


class Cut(msgspec.Struct, frozen=True):
    """The end of a fork: after this event, or after this many prompts; by default everything."""

    event: str | None = None
    turn: int | None = None


def fork(
    store: SessionStore, source: SessionFolder, cut: Cut, *, name: str | None = None
) -> SessionFolder:
    """Copy a session up to the cut. The source may be in use or damaged; it is only read."""
    target = store.folder(new_id())
    # Hidden from lists until it is complete, so that a crash leaves no half session behind.
    draft = SessionFolder(target.id, os.path.join(store.home.session_state, f".fork-{target.id}"))
    try:
        make_private_dir(draft.path)
        _copy_log(source, draft, cut)
        _copy_files(source, draft)
        metadata = _metadata(source, draft.id, name)
        write_new_file(draft.workspace_file, render(metadata), durable=True)
        sync_dir(draft.path)
        os.rename(draft.path, target.path)
        sync_dir(store.home.session_state)
    except OSError as error:
        _discard(draft.path)
        raise cannot("fork the session into", target.path, error) from error
    except BaseException:
        _discard(draft.path)
        raise
    return target


def _copy_log(source: SessionFolder, draft: SessionFolder, cut: Cut) -> None:
    with open(open_private(draft.events, os.O_WRONLY | os.O_EXCL), "wb") as log:
        log.writelines(line + b"\n" for line in _lines_until(source, cut, draft.id))
        log.flush()
        os.fsync(log.fileno())


def _lines_until(source: SessionFolder, cut: Cut, new_session: str) -> Iterator[bytes]:
    prompts = 0
    for record in sound_records(source.events):
        if begins_turn(record):
            prompts += 1
            if cut.turn is not None and prompts > cut.turn:
                return
        yield _renamed(record.line, new_session) if record.type == "session.start" else record.line
        if cut.event is not None and record.id == cut.event:
            return
    if cut.event is not None:
        raise UsageError(
            f"Session {source.id} has no event {cut.event!r}: see `trimtab sessions show "
            f"{source.id} --events`."
        )
    if cut.turn is not None and prompts < cut.turn:
        turns = count(prompts, "turn")
        raise UsageError(f"Session {source.id} has only {turns}: choose a smaller number.")


def _renamed(line: bytes, session_id: str) -> bytes:
    """Return a `session.start` line with the id of the new session."""
    try:
        event = msgspec.json.decode(line)
        event["data"]["sessionId"] = session_id
    except (ValueError, TypeError, KeyError):
        return line
    return msgspec.json.encode(event)


def _metadata(source: SessionFolder, session_id: str, name: str | None) -> dict[str, Any]:
    try:
        metadata = source.read_metadata()
    except TrimtabError:
        metadata = {}
    now = timestamp()
    named = {"name": name, "user_named": True} if name else {}
    own = {"id": session_id, "forked_from": source.id, "created_at": now, "updated_at": now}
    return {**metadata, **named, **own}


def _copy_files(source: SessionFolder, draft: SessionFolder) -> None:
    log = os.path.basename(source.events)
    with os.scandir(source.path) as found:
        entries = list(found)
    for entry in entries:
        target = os.path.join(draft.path, entry.name)
        if entry.name.startswith((log, "workspace.yaml", LOCK, "session.db")):
            continue
        if entry.is_dir(follow_symlinks=False):
            # What never changes needs no copy, only a second name.
            copy = _link_or_copy if entry.name in ("blobs", "git-objects") else _copy_file
            _copy_tree(entry.path, target, copy)
        elif entry.is_file(follow_symlinks=False):
            _copy_file(entry.path, target)
    if os.path.isfile(source.database):
        _copy_database(source.database, draft.database)


def _copy_tree(source: str, target: str, copy: Callable[[str, str], None]) -> None:
    """Copy a folder for the owner alone, whatever the umask; links are copied as links."""
    make_private_dir(target)
    with os.scandir(source) as found:
        entries = list(found)
    for entry in entries:
        path = os.path.join(target, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), path)
        elif entry.is_dir():
            _copy_tree(entry.path, path, copy)
        # Another process may be writing one this moment, under a name that will be gone.
        elif entry.is_file() and not entry.name.endswith(".tmp"):
            copy(entry.path, path)


def _copy_file(source: str, target: str) -> None:
    """Copy a file for the owner alone."""
    private = os.O_WRONLY | os.O_EXCL
    with open(source, "rb") as old, open(open_private(target, private), "wb") as new:
        shutil.copyfileobj(old, new)
        new.flush()
        times = os.fstat(old.fileno())
        os.utime(new.fileno(), ns=(times.st_atime_ns, times.st_mtime_ns))
        os.fchmod(new.fileno(), times.st_mode & 0o700)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        _copy_file(source, target)


def _copy_database(source: str, target: str) -> None:
    """Copy a database that another process may be writing to."""
    import sqlite3  # heavy, and few sessions have a database

    os.close(open_private(target, os.O_WRONLY))  # SQLite would let others read it
    try:
        old = sqlite3.connect(f"file:{quote(source)}?mode=ro", uri=True, timeout=1)
        with closing(old), closing(sqlite3.connect(target)) as new:
            old.backup(new)
    except sqlite3.Error:
        shutil.copyfile(source, target)


def _discard(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
