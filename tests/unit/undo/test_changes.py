"""Recorded changes are read as they were written, with their turn."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.contracts.events.user import UserMessage
from trimtab.undo.changes import INLINE, build_event
from undokit import WorkingSession

STATE = FileState("file", 0o644, "d", 1)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[WorkingSession]:
    work = WorkingSession(tmp_path)
    yield work
    work.session.close()


@pytest.mark.parametrize("many", [0, 1, INLINE, INLINE + 1])
def test_a_list_is_in_the_event_or_if_it_is_long_in_a_blob(work: WorkingSession, many: int) -> None:
    changes = [Change.at(f"/{number}", ABSENT, STATE) for number in range(many)]
    event = build_event(WorkspaceChanged(reason="tool", count=7), iter(changes), work.store)
    assert (event.reason, event.count) == ("tool", many)
    assert (len(event.changes), event.list_digest is None) == (
        (many, True) if many <= INLINE else (0, False)
    )
    work.session.emit(event)
    (entry,) = work.history.recorded()
    assert list(entry.changes) == changes


def test_an_entry_has_the_turn_and_everything_else_of_its_event(work: WorkingSession) -> None:
    events = [work.write("a.txt", "0")]
    work.begin_turn()
    events.append(work.write("a.txt", "1", "shell", agent="agent-1"))
    work.session.emit(UserMessage(content="not a turn", source="autopilot"))
    work.session.emit(UserMessage(content="of a sub-agent"), agent_id="agent-1")
    work.begin_turn()
    events.append(work.write("a.txt", "2"))
    recorded = work.history.recorded()
    assert [entry.event_id for entry in recorded] == events
    assert [entry.turn for entry in recorded] == [0, 1, 2]
    assert [entry.agent_id for entry in recorded] == [None, "agent-1", None]
    assert [entry.event.reason for entry in recorded] == ["tool", "shell", "tool"]
    assert all(entry.timestamp.startswith("20") for entry in recorded)


def test_a_long_list_that_was_deleted_is_an_error(work: WorkingSession) -> None:
    changes = [Change.at(f"/{number}", ABSENT, STATE) for number in range(INLINE + 1)]
    event = build_event(WorkspaceChanged(reason="tool", count=0), changes, work.store)
    work.session.emit(event)
    os.unlink(work.store.path(event.list_digest or ""))
    with pytest.raises(FileNotFoundError):
        work.history.recorded()
