"""Every line of a file has the session, turn and call that wrote it, or a person."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.contracts.ids import timestamp
from trimtab.undo.blame import BEFORE, MAX_SIZE, Line, Source, blame, follow
from trimtab.undo.changes import INLINE
from trimtab.undo.merge import MAX_LINES
from undokit import WorkingSession


@pytest.fixture
def work(tmp_path: Path) -> Iterator[WorkingSession]:
    work = WorkingSession(tmp_path)
    work.begin_turn()
    yield work
    work.session.close()


@pytest.fixture
def other(tmp_path: Path, work: WorkingSession) -> Iterator[WorkingSession]:
    """Another session in the same folder."""
    other = WorkingSession(tmp_path, "other")
    other.begin_turn()
    yield other
    other.session.close()


def lines_of(work: WorkingSession, name: str = "a.txt") -> list[Line]:
    home = Path(work.folder.path).parents[1]
    return blame({"COPILOT_HOME": str(home)}, work.path(name))


def told(work: WorkingSession, name: str = "a.txt") -> list[tuple[str, str]]:
    return [(line.source.reason, line.text.decode()) for line in lines_of(work, name)]


def wait_for_next_millisecond() -> None:
    now = timestamp()
    while timestamp() == now:
        pass


def test_a_line_names_everything_about_the_change_that_wrote_it(work: WorkingSession) -> None:
    work.write("a.txt", "one\n")
    work.begin_turn()
    work.write("a.txt", "one\ntwo\n", "shell", agent="agent-1")
    first, second = (line.source for line in lines_of(work))
    entries = work.history.recorded()
    assert first == Source(
        reason="tool",
        session="session",
        turn=1,
        call="call",
        detail="detail",
        timestamp=entries[0].timestamp,
    )
    assert (second.turn, second.agent, second.reason) == (2, "agent-1", "shell")
    assert second.timestamp == entries[1].timestamp


def test_a_change_without_a_call_names_none(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("one\n")
    state = work.store.keep(work.path("a.txt"))
    change = Change.at(work.path("a.txt"), ABSENT, state)
    work.emit(WorkspaceChanged(reason="person", count=0), [change])
    (line,) = lines_of(work)
    assert (line.source.call, line.source.agent, line.source.detail) == ("", "", "")


def test_what_nobody_recorded_is_older_or_of_a_person(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("old\n")
    assert told(work) == [("before", "old\n")]
    assert lines_of(work)[0].source == Source(reason="before", session="", turn=0, call="")
    work.write("a.txt", "old\nby a tool\n")
    (work.root / "a.txt").write_text("old\nby a tool\nby me\n")
    work.write("a.txt", "old\nby a tool\nby me\nagain\n")
    (work.root / "a.txt").write_text("first\nold\nby a tool\nby me\nagain\n")
    assert told(work) == [
        ("person", "first\n"),
        ("before", "old\n"),
        ("tool", "by a tool\n"),
        ("person", "by me\n"),
        ("tool", "again\n"),
    ]


def test_sessions_are_followed_in_the_order_of_time(
    work: WorkingSession, other: WorkingSession
) -> None:
    text = ""
    for number, session in enumerate((work, other, work, other)):
        wait_for_next_millisecond()
        text += f"{number}\n"
        session.write("a.txt", text)
    sessions = [line.source.session for line in lines_of(work)]
    assert sessions == ["session", "other", "session", "other"]


@pytest.mark.parametrize("restoring", ["undo", "rewind"])
def test_lines_that_come_back_are_of_whoever_wrote_them(
    work: WorkingSession, restoring: str
) -> None:
    (work.root / "a.txt").write_text("old\n")
    work.write("a.txt", "old\nby a tool\n")
    before = told(work)
    work.begin_turn()
    work.remove("a.txt", "shell")
    if restoring == "undo":
        work.undo()
    else:
        work.undo(turn=2, since=True)
    assert told(work) == before


def test_a_tool_that_writes_the_same_again_is_the_author(work: WorkingSession) -> None:
    work.write("a.txt", "one\n", "shell")
    work.remove("a.txt")
    work.write("a.txt", "one\n")
    assert told(work) == [("tool", "one\n")]


def test_a_change_whose_content_is_lost_is_passed_over(work: WorkingSession) -> None:
    work.write("a.txt", "one\n")
    event = work.write("a.txt", "one\ntwo\n", "shell")
    work.write("a.txt", "one\ntwo\nthree\n")
    entry = next(entry for entry in work.history.recorded() if entry.event_id == event)
    os.unlink(work.store.path(entry.changes[0].after.digest))
    work.write("a.txt", "one\ntwo\nthree\nfour\n")
    assert told(work) == [
        ("tool", "one\n"),
        ("person", "two\n"),
        ("person", "three\n"),
        ("tool", "four\n"),
    ]


def test_a_change_that_was_never_kept_is_passed_over(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("one\n")
    unkept = FileState("file", 0o644, "", 4)
    after = work.store.keep(work.path("a.txt"))
    change = Change.at(work.path("a.txt"), unkept, after)
    work.emit(WorkspaceChanged(reason="tool", count=0), [change])
    assert told(work) == [("before", "one\n")]


@pytest.mark.parametrize("name", ['"quoted".txt', "café.txt", "back\\slash"])
def test_a_file_of_any_name_is_found_in_the_logs(work: WorkingSession, name: str) -> None:
    work.write(name, "one\n")
    work.write("other.txt", "two\n")
    assert told(work, name) == [("tool", "one\n")]


def test_a_change_in_a_long_list_is_found(work: WorkingSession) -> None:
    names = [f"{number}.txt" for number in range(INLINE + 1)]

    def write_all() -> None:
        for name in names:
            (work.root / name).write_text(f"{name}\n")

    work.record("shell", write_all, *names)
    assert told(work, "7.txt") == [("shell", "7.txt\n")]
    entry = work.history.recorded()[0]
    os.unlink(work.store.path(entry.event.list_digest or ""))
    work.write("7.txt", "8\n")
    assert told(work, "7.txt") == [("before", "8\n")]


def test_changes_of_other_files_and_of_nothing_do_not_count(work: WorkingSession) -> None:
    (work.root / "sub").mkdir()
    work.write("sub/a.txt", "sub\n")
    work.write("a.txt", "one\n")
    work.write("a.txt", "one\n", "shell")
    assert told(work) == [("tool", "one\n")]


def test_a_file_is_found_through_a_link_to_its_folder(work: WorkingSession) -> None:
    work.write("a.txt", "one\n")
    (work.root / "here").symlink_to(".")
    assert told(work, "here/a.txt") == [("tool", "one\n")]


def test_only_text_of_a_moderate_size_has_lines(work: WorkingSession) -> None:
    with pytest.raises(UsageError, match=r"cannot be read \(No such file or directory\); name a"):
        lines_of(work, "none")
    (work.root / "a.txt").write_bytes(b"a\0b")
    with pytest.raises(UsageError, match="is not a text file of at most 8 MB; name another file"):
        lines_of(work)
    (work.root / "a.txt").write_bytes(b"x" * MAX_SIZE)
    assert len(lines_of(work)) == 1
    (work.root / "a.txt").write_bytes(b"x" * (MAX_SIZE + 1))
    with pytest.raises(UsageError, match="8 MB"):
        lines_of(work)


NEW = Source(reason="tool")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("abc", "abc", "abc"),
        ("abc", "aXbc", "aXbc"),
        ("abc", "Xabc", "Xabc"),
        ("abc", "abcX", "abcX"),
        ("abc", "ac", "ac"),
        ("abc", "bc", "bc"),
        ("abcde", "aXcYe", "aXcYe"),
        ("abc", "", ""),
        ("", "XY", "XY"),
    ],
)
def test_unchanged_lines_keep_their_source(before: str, after: str, expected: str) -> None:
    lines = [Line(BEFORE, f"{text}\n".encode()) for text in before]
    followed = follow(lines, "".join(f"{text}\n" for text in after).encode(), NEW)
    assert [line.text.decode()[0] for line in followed] == list(expected)
    assert ["X" if line.source is NEW else "" for line in followed] == [
        "X" if text.isupper() else "" for text in expected
    ]


def test_a_text_too_long_to_compare_is_all_new() -> None:
    lines = [Line(BEFORE, b"%d\n" % number) for number in range(MAX_LINES)]
    followed = follow(lines, b"x\ny\n", NEW)
    assert followed == [Line(NEW, b"x\n"), Line(NEW, b"y\n")]
