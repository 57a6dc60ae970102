"""Files that tools of other sessions wrote since a session began."""

import calendar
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.session.records import read_records
from trimtab.undo.changes import INLINE
from trimtab.undo.other_sessions import written_by_others
from undokit import WorkingSession


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[list[WorkingSession]]:
    """A session that asks, and two others."""
    sessions = [WorkingSession(tmp_path, name) for name in ("asks", "other", "third")]
    for session in sessions:
        session.begin_turn()
    yield sessions
    for session in sessions:
        session.session.close()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_what_tools_of_all_others_wrote_is_found_and_nothing_else(
    sessions: list[WorkingSession],
) -> None:
    asks, other, third = sessions
    asks.write("mine.txt", "mine")
    other.write("a.txt", "a")
    other.write("b.txt", "b", "shell")
    other.remove("a.txt")
    third.write("c.txt", "c")
    assert written_by_others(asks.folder) == {
        (asks.path("a.txt"), digest("a")),
        (asks.path("c.txt"), digest("c")),
    }


@pytest.mark.parametrize(("seconds", "counts"), [(-1, False), (0, True), (1, True)])
def test_a_log_that_was_last_used_before_the_session_began_is_not_read(
    sessions: list[WorkingSession], seconds: int, counts: bool
) -> None:
    asks, other, _ = sessions
    other.write("a.txt", "a")
    began = next(read_records(asks.folder.events)).timestamp[:19]
    second = calendar.timegm(time.strptime(began, "%Y-%m-%dT%H:%M:%S"))
    os.utime(other.folder.events, (second + seconds, second + seconds))
    assert bool(written_by_others(asks.folder)) is counts


def test_a_session_whose_log_or_list_is_lost_is_passed_over(
    sessions: list[WorkingSession],
) -> None:
    asks, other, third = sessions
    third.write("c.txt", "c")
    state = FileState("file", 0o644, "d", 1)
    many = [Change.at(f"/{number}", ABSENT, state) for number in range(INLINE + 1)]
    other.emit(WorkspaceChanged(reason="tool", count=0), many)
    assert len(written_by_others(asks.folder)) == INLINE + 2
    for name in os.listdir(other.folder.blobs):
        os.unlink(os.path.join(other.folder.blobs, name))
    (Path(asks.folder.path).parent / "without a log").mkdir()
    assert written_by_others(asks.folder) == {(asks.path("c.txt"), digest("c"))}


def test_a_session_without_any_event_asks_about_nobody(
    tmp_path: Path, sessions: list[WorkingSession]
) -> None:
    sessions[1].write("a.txt", "a")
    empty = WorkingSession(tmp_path, "empty")
    assert written_by_others(empty.folder) == frozenset()
    empty.session.close()
