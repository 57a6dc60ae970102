"""The searchable index of past sessions, updated from their logs on demand."""

import asyncio
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

from trimtab.config.files import open_private
from trimtab.config.paths import Home
from trimtab.contracts.errors import TrimtabError
from trimtab.session.folder import SessionFolder
from trimtab.session.log_rows import LogRows, Stopped
from trimtab.session.store import SessionStore
from trimtab.session.summary import summarize

INDEX = "trimtab-session-store.db"
"""`session-store.db` in the same folder belongs to Copilot CLI, so we do not write to it."""
VERSION = 1
"""Version of the tables; an index of another version is rebuilt."""
SECONDS = 10.0
TABLES = ("turns", "checkpoints", "session_files", "session_refs", "search_index", "indexed_logs")


class PastSessions:
    """The index file: a cache, which is rebuilt if it is damaged."""

    def __init__(self, store: SessionStore, path: str) -> None:
        self._store = store
        self.path = path

    def refresh(self, stopped: Callable[[], bool], seconds: float = SECONDS) -> int:
        """Index changed sessions, the newest first; return how many were left for lack of time.

        Raises `OSError` and `sqlite3.Error`.
        """
        try:
            return self._refresh(stopped, time.monotonic() + seconds)
        except Stopped:
            return 1
        except sqlite3.OperationalError:  # locked, full, not ours: rebuilding would not help
            raise
        except sqlite3.DatabaseError:
            self._remove()
            return self._refresh(stopped, time.monotonic() + seconds)

    def _refresh(self, stopped: Callable[[], bool], deadline: float) -> int:
        with closing(self._open()) as database:
            known = dict(database.execute("SELECT session_id, stamp FROM indexed_logs"))
            found = {folder.id: folder for folder in self._store.folders()}
            stamps = {name: _stamp(folder) for name, folder in found.items()}
            with database:
                for gone in known.keys() - found.keys():
                    _forget(database, gone)
            stale = [name for name, stamp in stamps.items() if stamp and known.get(name) != stamp]
            stale.sort(key=lambda name: stamps[name], reverse=True)
            for done, name in enumerate(stale):
                if stopped() or time.monotonic() > deadline:
                    return len(stale) - done
                with database:
                    if name in known:
                        _forget(database, name)
                    _add(database, found[name], stopped)
                    row = (name, stamps[name])
                    database.execute("INSERT INTO indexed_logs VALUES (?, ?)", row)
            return 0

    def _open(self) -> sqlite3.Connection:
        # Created here, because SQLite would create it readable for others.
        os.close(open_private(self.path, os.O_RDWR))
        database = sqlite3.connect(self.path, timeout=5)
        try:
            database.execute("PRAGMA synchronous = OFF")  # a damaged index is rebuilt
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError("written by another version")
            with open(os.path.splitext(__file__)[0] + ".sql", encoding="utf-8") as file:
                database.executescript(file.read())
            database.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            database.close()
            raise
        return database

    def _remove(self) -> None:
        for suffix in ("", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(self.path + suffix)


async def prepare_index(home: Home) -> tuple[str, int]:
    """Update the index; return its path and how many sessions it lacks. Raises `OSError`."""
    sessions = PastSessions(SessionStore(home), os.path.join(home.state, INDEX))
    stop = threading.Event()
    try:
        missing = await asyncio.to_thread(sessions.refresh, stop.is_set)
    except sqlite3.Error as error:
        raise OSError(errno.EIO, f"the index {sessions.path} fails: {error}") from error
    finally:
        stop.set()  # when cancelled, the thread ends soon
    return sessions.path, missing


def _stamp(folder: SessionFolder) -> str:
    """Return a text that changes with the log or its metadata, and sorts by age."""
    parts = []
    for path in (folder.events, folder.workspace_file):
        try:
            found = os.stat(path)
        except OSError:
            continue
        parts.append(f"{found.st_mtime_ns:020d}.{found.st_size}.{found.st_ino}")
    return " ".join(parts)


def _forget(database: sqlite3.Connection, session_id: str) -> None:
    database.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    for table in TABLES:
        # The table's name is one of the constants above.
        database.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608


def _add(database: sqlite3.Connection, folder: SessionFolder, stopped: Callable[[], bool]) -> None:
    metadata = _metadata(folder)
    if metadata.get("session_store") is False:  # its client wants it left out
        return
    summary = summarize(folder)
    rows = LogRows(folder.id)
    # A log that cannot be read must not prevent searching the others.
    with suppress(OSError):
        rows.read(folder.events, stopped)
    about = (folder.id, summary.name, summary.title, summary.cwd, _repository(metadata))
    row = (*about, summary.branch, summary.created_at, summary.updated_at)
    for table, found in (("sessions", [row]), *rows.tables()):
        if found:
            marks = ", ".join("?" * len(found[0]))
            # The tables' names are constants.
            insert = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608
            database.executemany(insert, [tuple(map(_storable, row)) for row in found])


def _storable(value: str | int | None) -> str | int | None:
    """Replace lone surrogates, which SQLite does not accept."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value


def _metadata(folder: SessionFolder) -> Mapping[str, Any]:
    try:
        return folder.read_metadata()
    except TrimtabError:
        return {}


def _repository(metadata: Mapping[str, Any]) -> str | None:
    value = metadata.get("repository") or metadata.get("git_root")
    return None if value is None else str(value)
