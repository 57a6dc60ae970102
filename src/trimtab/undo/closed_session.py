"""Opens a session that is not running, for undo, redo and rewind."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from trimtab.config.paths import find_home
from trimtab.contracts.changes import Change
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.session.folder import SessionFolder
from trimtab.session.session import Projections, Session
from trimtab.session.store import SessionStore
from trimtab.undo.blobs import BlobStore
from trimtab.undo.changes import build_event
from trimtab.undo.file_index import write_index
from trimtab.undo.history import (
    FileHistory,
    FilePlan,
    Plan,
    UndoRequest,
)
from trimtab.undo.recorder import Marker
from trimtab.undo.rewind import (
    Mode,
    Point,
    Rewound,
    find_point,
    list_points,
    rewind,
)
from trimtab.undo.tracked_folders import find_tracked
from trimtab.undo.tracking import track_folders

__all__ = [
    "ClosedSession",
    "FileHistory",
    "FilePlan",
    "Mode",
    "Plan",
    "Point",
    "Rewound",
    "UndoRequest",
    "find_session",
    "open_closed_session",
]


class ClosedSession:
    """A session opened by this process to undo, redo or rewind."""

    def __init__(self, folder: SessionFolder, session: Session) -> None:
        self.folder = folder
        self._session = session
        self._store = BlobStore(folder.blobs)
        self.history = FileHistory(folder, self._store, self._record)
        self._find_interrupted()

    def points(self) -> list[Point]:
        return list_points(self.folder.events)

    def rewind(self, turn: int, mode: Mode) -> Rewound:
        point = find_point(self.folder.events, turn)
        return rewind(self._session, self.history, self._record, (point, mode))

    def write_index(self) -> None:
        write_index(self.folder, self._store)

    def _find_interrupted(self) -> None:
        """Record the changes of a command that was running when the session was killed."""
        marker = Marker(self.folder.path)
        interrupted = marker.read()
        if interrupted is None:
            return
        cwd = str(self.folder.read_metadata().get("cwd", ""))
        folders = (cwd, *find_tracked(self.folder.path))
        tracked = track_folders(folders, os.path.expanduser("~"), self.folder, self._store)
        if cwd and tracked.recall() and (changes := tracked.refresh()):
            call_id, detail = interrupted
            event = WorkspaceChanged(
                reason="interrupted", count=len(changes), tool_call_id=call_id, detail=detail
            )
            self._record(event, changes)
        tracked.close()
        marker.clear()

    def _record(self, event: WorkspaceChanged, changes: Sequence[Change]) -> None:
        self._session.emit(build_event(event, changes, self._store))


@contextmanager
def open_closed_session(env: Mapping[str, str], session_id: str) -> Iterator[ClosedSession]:
    """Open a session, and close it at the end. Raises `SessionInUse`."""
    folder, log = SessionStore(find_home(env)).open(session_id)
    session = Session(folder.id, log, Projections())
    try:
        yield ClosedSession(folder, session)
    finally:
        session.close()


def find_session(env: Mapping[str, str], text: str | None, cwd: str | None) -> str:
    """Return the id of a named session, or of the last session used in this folder."""
    store = SessionStore(find_home(env))
    if text is not None:
        return store.find(text, cwd=cwd)
    latest = store.latest(cwd)
    if latest is None:
        raise UsageError("There is no session yet; start one with trimtab -p TEXT.")
    return latest
