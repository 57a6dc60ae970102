"""The session's own changes to files, apart from those of others."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from livekit import opened
from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.undo.own_changes import MAX_BYTES, OwnChange, list_own_changes, read_text
from undokit import WorkingSession


@pytest.fixture
def work(tmp_path: Path) -> Iterator[WorkingSession]:
    work = WorkingSession(tmp_path)
    work.begin_turn()
    yield work
    work.session.close()


def own(work: WorkingSession) -> list[OwnChange]:
    return list_own_changes(work.history.recorded(), work.store)


@pytest.mark.parametrize(("old", "new"), [("b\n", "a\n"), ("a\n", "b\n"), ("", "a\n")])
async def test_a_changed_file_is_listed_whatever_it_says(
    tmp_path: Path, old: str, new: str
) -> None:
    (tmp_path / "a.txt").write_text(old)
    (tmp_path / "same.txt").write_text("same\n")
    command = f"printf {new!r} > a.txt; printf x > same.txt; printf 'same\\n' > same.txt"
    call = {"name": "bash", "arguments": {"command": command, "description": "write"}}
    async with opened(tmp_path, [{"tools": [call]}, "Done."]) as (live, _, _):
        await live.ask("go")
        own = list_own_changes(live.history.recorded(), live.recorder.store)
    changed = [change for change in own if change.path.endswith("a.txt")]
    assert [(change.before, change.after) for change in changed] == [(old.encode(), new.encode())]
    assert [change.path for change in own if change.path.endswith("same.txt")] == []


def test_files_are_listed_in_the_order_of_their_first_change(work: WorkingSession) -> None:
    (work.root / "b.txt").write_text("old\n")
    work.write("b.txt", "new\n", "shell")
    work.write("a.txt", "made\n")
    work.write("b.txt", "newer\n")
    work.write("theirs.txt", "x", "person")
    first, second = own(work)
    assert (first.path, first.before, first.after) == (work.path("b.txt"), b"old\n", b"newer\n")
    assert (second.path, second.before, second.after) == (work.path("a.txt"), b"", b"made\n")
    assert (second.first, second.mixed) == (ABSENT, False)
    assert second.last == work.store.keep(work.path("a.txt"))


def test_a_file_that_is_as_it_was_is_not_listed(work: WorkingSession) -> None:
    work.write("a.txt", "x")
    work.remove("a.txt")
    assert own(work) == []


def test_an_empty_file_that_was_made_or_removed_is_listed(work: WorkingSession) -> None:
    (work.root / "gone").write_text("")
    work.write("made", "")
    work.remove("gone")
    assert [(change.first.kind, change.last.kind) for change in own(work)] == [
        ("absent", "file"),
        ("file", "absent"),
    ]


def test_an_edit_of_the_person_in_other_lines_counts_as_if_it_had_been_there(
    work: WorkingSession,
) -> None:
    (work.root / "a.txt").write_text("1\n2\n3\n4\n")
    work.write("a.txt", "one\n2\n3\n4\n")
    work.write("a.txt", "one\n2\n3\nfour\n", "person")
    (change,) = own(work)
    assert (change.before, change.after) == (b"1\n2\n3\nfour\n", b"one\n2\n3\nfour\n")
    assert not change.mixed


def test_an_edit_of_the_person_in_the_same_lines_is_mixed(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("1\n")
    work.write("a.txt", "one\n")
    work.write("a.txt", "uno\n", "person")
    (change,) = own(work)
    assert (change.before, change.after, change.mixed) == (b"1\n", b"uno\n", True)


def test_an_edit_of_the_person_before_the_sessions_first_is_not_mixed(
    work: WorkingSession,
) -> None:
    (work.root / "a.txt").write_text("1\n")
    work.write("a.txt", "2\n", "person")
    work.write("a.txt", "3\n")
    (change,) = own(work)
    assert (change.before, change.after, change.mixed) == (b"2\n", b"3\n", False)


@pytest.mark.parametrize("lost", ["earlier", "later"])
def test_an_edit_of_the_person_that_is_lost_is_mixed(work: WorkingSession, lost: str) -> None:
    work.write("a.txt", "1\n")
    work.write("a.txt", "2\n", "person")
    earlier, later = (entry.changes[0].after for entry in work.history.recorded())
    os.unlink(work.store.path((earlier if lost == "earlier" else later).digest))
    assert all(change.mixed for change in own(work))


@pytest.mark.parametrize(("size", "listed"), [(MAX_BYTES + 2, 1), (MAX_BYTES + 1, 0)])
def test_a_large_file_is_listed_without_its_text_if_it_changed(
    work: WorkingSession, size: int, listed: int
) -> None:
    before = FileState("file", 0o644, "d1", MAX_BYTES + 1)
    after = FileState("file", 0o644, "d1", size)
    work.emit(WorkspaceChanged(reason="shell", count=0), [Change.at("/a", before, after)])
    found = own(work)
    assert [(change.before, change.after) for change in found] == [(None, None)] * listed


def test_an_edit_of_a_large_file_by_the_person_is_mixed(work: WorkingSession) -> None:
    states = [FileState("file", 0o644, f"d{size}", MAX_BYTES + size) for size in (1, 2, 3)]
    for at, reason in enumerate(("tool", "person")):
        change = Change.at("/a", states[at], states[at + 1])
        work.emit(WorkspaceChanged(reason=reason, count=0), [change])
    (found,) = own(work)
    assert (found.mixed, found.before, found.last) == (True, None, states[2])


def test_a_text_is_read_up_to_a_size_and_empty_for_anything_but_a_file(
    work: WorkingSession,
) -> None:
    data = b"x" * MAX_BYTES
    kept = FileState("file", 0o644, work.store.put(data), MAX_BYTES)
    assert read_text(kept, work.store) == data
    for state in (ABSENT, FileState("directory", 0o755), FileState("symlink", digest=kept.digest)):
        assert read_text(state, work.store) == b""
    for unreadable in (
        FileState("file", 0o644, kept.digest, MAX_BYTES + 1),
        FileState("file", 0o644, "", 1),
        FileState("file", 0o644, "0" * 64, 1),
    ):
        assert read_text(unreadable, work.store) is None
