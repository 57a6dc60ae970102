"""Rewinding a log: the points, what is removed, and what stays recorded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.user import UserMessage
from trimtab.session.records import read_records
from trimtab.undo.rewind import (
    Effect,
    Mode,
    Rewound,
    effects_since,
    find_point,
    list_effects,
    list_points,
    point_of,
    rewind,
)
from undokit import WorkingSession


@pytest.fixture
def work(tmp_path: Path) -> Iterator[WorkingSession]:
    work = WorkingSession(tmp_path)
    work.write("before.txt", "x", "person")
    yield work
    work.session.close()


def rewound(work: WorkingSession, turn: int, mode: Mode) -> Rewound:
    point = find_point(work.folder.events, turn)
    return rewind(work.session, work.history, work.emit, (point, mode))


def two_turns(work: WorkingSession) -> None:
    for turn in (1, 2):
        work.session.emit(UserMessage(content=f"turn {turn}", message_id=f"m{turn}"))
        work.write("a.txt", f"{turn}\n")


def stored(work: WorkingSession) -> list[Any]:
    return [decode(record.line) for record in read_records(work.folder.events)]


def test_a_point_is_the_prompt_of_a_turn(work: WorkingSession) -> None:
    first = work.session.emit(UserMessage(content="one", message_id="m1"))
    work.session.emit(UserMessage(content="not a person", source="autopilot"))
    second = work.session.emit(UserMessage(content="two"))
    third = work.session.emit(UserMessage(content="three", source="user"))
    points = list_points(work.folder.events)
    assert [(point.turn, point.event_id, point.timestamp) for point in points] == [
        (1, first.id, first.timestamp),
        (2, second.id, second.timestamp),
        (3, third.id, third.timestamp),
    ]
    texts = [("one", "m1"), ("two", ""), ("three", "")]
    assert [(point.text, point.message_id) for point in points] == texts
    assert [find_point(work.folder.events, turn) for turn in (1, 2, 3)] == points
    assert [point_of(work.folder.events, point.event_id) for point in points] == points
    with pytest.raises(UsageError, match="'x' is not a rewind point; choose the event of a prompt"):
        point_of(work.folder.events, "x")


@pytest.mark.parametrize(("turns", "said"), [(0, "has 0 turns"), (1, "has 1 turn; choose one")])
def test_a_turn_that_is_not_there_is_an_error_that_says_how_many_there_are(
    work: WorkingSession, turns: int, said: str
) -> None:
    for _ in range(turns):
        work.begin_turn()
    for turn in (-1, 0, turns + 1):
        with pytest.raises(UsageError, match=said):
            find_point(work.folder.events, turn)


def test_both_removes_the_turns_and_keeps_what_was_done_to_the_files(work: WorkingSession) -> None:
    two_turns(work)
    seen: list[Any] = []
    work.session.subscribe(lambda event, _: seen.append(event))
    point = find_point(work.folder.events, 2)
    done = rewound(work, 2, "both")
    assert done.events_removed == 2
    assert done.plan is not None
    assert done.plan.turn == 2
    assert work.read("a.txt") == "1\n"
    types = ["session.snapshot_rewind", "trimtab.prompt_withdrawn", "trimtab.workspace_changed"]
    assert [event.type for event in seen] == types
    assert (seen[0].data.up_to_event_id, seen[0].data.events_removed) == (point.event_id, 2)
    assert (seen[1].data.message_id, seen[1].data.reason) == ("m2", "rewind")
    assert [entry.event.reason for entry in work.history.recorded()] == ["person", "tool", "rewind"]
    assert len(list_points(work.folder.events)) == 1


def test_files_alone_leave_the_log_as_it_was(work: WorkingSession) -> None:
    two_turns(work)
    before = stored(work)
    done = rewound(work, 1, "files")
    assert done.events_removed == 0
    assert work.read("a.txt") is None
    after = stored(work)
    assert after[:-1] == before
    assert after[-1].data.reason == "rewind"


def test_the_conversation_alone_leaves_the_files_and_records_their_changes_again(
    work: WorkingSession,
) -> None:
    two_turns(work)
    before = work.history.recorded()
    done = rewound(work, 1, "conversation")
    assert (done.events_removed, done.plan) == (4, None)
    assert work.read("a.txt") == "2\n"
    after = work.history.recorded()
    assert [(entry.event.reason, entry.changes) for entry in after] == [
        (entry.event.reason, entry.changes) for entry in before
    ]
    assert list_points(work.folder.events) == []


def test_a_prompt_without_an_id_is_not_withdrawn(work: WorkingSession) -> None:
    work.begin_turn()
    rewound(work, 1, "both")
    assert "trimtab.prompt_withdrawn" not in [event.type for event in stored(work)]


def test_effects_say_what_became_of_each_file(work: WorkingSession) -> None:
    (work.root / "gone.txt").write_text("1\n2\n")
    work.begin_turn()
    work.write("a.txt", "1\n")
    work.remove("gone.txt")
    work.write("passing.txt", "x\n")
    work.begin_turn()
    work.write("a.txt", "1\n2\n")
    work.remove("passing.txt")
    a, gone, passing = (work.path(name) for name in ("a.txt", "gone.txt", "passing.txt"))
    assert list_effects(work.folder, work.store) == {
        1: [
            Effect(a, "created", 1, 0),
            Effect(gone, "deleted", 0, 2),
            Effect(passing, "created", 1, 0),
        ],
        2: [Effect(a, "modified", 1, 0), Effect(passing, "deleted", 0, 1)],
    }
    since = [effects_since(work.folder, work.store, turn) for turn in (1, 2, 3)]
    assert since == [
        [Effect(a, "created", 2, 0), Effect(gone, "deleted", 0, 2)],
        [Effect(a, "modified", 1, 0), Effect(passing, "deleted", 0, 1)],
        [],
    ]
