"""Plans of undo and redo: the changes that are chosen, and what becomes of each path."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.undo.blobs import MAX_SIZE
from trimtab.undo.changes import Recorded
from trimtab.undo.history import FilePlan, UndoRequest, folders_above, is_within
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
    yield other
    other.session.close()


def last(work: WorkingSession) -> Recorded:
    return work.history.recorded()[-1]


def three_turns(work: WorkingSession) -> None:
    """Write a file in each of three turns, of which the first has begun."""
    for number in (1, 2, 3):
        if number > 1:
            work.begin_turn()
        work.write(f"{number}.txt", f"{number}\n")


@pytest.mark.parametrize(
    ("request_", "action", "turn", "names"),
    [
        ({}, "undo", 3, ["3.txt"]),
        ({"turn": 2}, "undo", 2, ["2.txt"]),
        ({"turn": 2, "since": True}, "rewind", 2, ["2.txt", "3.txt"]),
        ({"since": True}, "rewind", 1, ["1.txt", "2.txt", "3.txt"]),
        ({"files": ("1.txt",)}, "undo", 1, ["1.txt"]),
        ({"files": ("1.txt", "2.txt"), "since": True}, "rewind", 1, ["1.txt", "2.txt"]),
    ],
)
def test_the_last_turn_is_undone_unless_another_is_named(
    work: WorkingSession, request_: dict[str, Any], action: str, turn: int, names: list[str]
) -> None:
    three_turns(work)
    files = tuple(work.path(name) for name in request_.pop("files", ()))
    plan = work.history.plan_undo(UndoRequest(**request_, files=files))
    assert (plan.action, plan.turn, plan.partial, plan.left) == (action, turn, False, ())
    assert [os.path.basename(file.path) for file in plan.files] == names
    ids = [entry.event_id for entry in work.history.recorded()]
    assert list(plan.events) == [ids[int(name[0]) - 1] for name in names]
    applied = work.history.apply(plan)
    assert [work.read(name) for name in names] == [None] * len(names)
    event = last(work).event
    assert (event.reason, event.undoes, event.partial) == (action, list(plan.events), None)
    assert event.count == len(names)
    assert applied.problems == ()


def test_changes_of_tools_commands_and_custom_tools_are_undone_and_no_others(
    work: WorkingSession,
) -> None:
    for reason in ("tool", "shell", "custom-tool", "person", "background", "interrupted"):
        work.write(f"{reason}.txt", "x", reason)
    plan = work.undo()
    names = [os.path.basename(file.path) for file in plan.files]
    assert names == ["custom-tool.txt", "shell.txt", "tool.txt"]
    assert plan.left == (work.path("background.txt"), work.path("interrupted.txt"))
    for reason in ("background", "interrupted"):
        named = work.undo(files=(work.path(f"{reason}.txt"),))
        assert named.left == ()
        assert work.read(f"{reason}.txt") is None
    with pytest.raises(UsageError, match="The session has no changes to undo"):
        work.undo(files=(work.path("person.txt"),))


def test_uncertain_changes_that_were_undone_are_not_mentioned_again(work: WorkingSession) -> None:
    for name in ("once.txt", "still.txt"):
        work.write(name, "x", "background")
    work.write("a.txt", "x")
    work.undo(files=(work.path("once.txt"),))
    assert work.undo().left == (work.path("still.txt"),)
    with pytest.raises(UsageError, match="may be your own") as raised:
        work.undo()
    assert "once.txt" not in str(raised.value)


def test_uncertain_changes_of_other_turns_are_not_mentioned(work: WorkingSession) -> None:
    work.write("early.txt", "x", "background")
    work.begin_turn()
    work.write("a.txt", "x")
    assert work.undo().left == ()


@pytest.mark.parametrize(("many", "listed"), [(1, 1), (5, 5), (6, 5)])
def test_if_only_uncertain_changes_are_left_some_of_them_are_named(
    work: WorkingSession, many: int, listed: int
) -> None:
    for number in range(many):
        work.write(f"{number}.txt", "x", "background")
    with pytest.raises(UsageError, match="they may be your own") as raised:
        work.undo()
    named = [number for number in range(many) if work.path(f"{number}.txt") in str(raised.value)]
    assert named == list(range(listed))
    assert str(raised.value).endswith(" …." if many > listed else ".txt.")


def test_without_changes_the_error_says_what_else_can_be_undone(work: WorkingSession) -> None:
    with pytest.raises(UsageError, match=r"`trimtab undo SESSION` undoes those of another"):
        work.undo()
    with pytest.raises(UsageError, match=r"Turn 4 has no changes to undo; choose another turn\."):
        work.undo(turn=4)


def test_a_rewind_over_turns_without_changes_records_nothing(work: WorkingSession) -> None:
    plan = work.undo(turn=1, since=True)
    assert (plan.action, plan.turn, plan.events, plan.files) == ("rewind", 1, (), ())
    assert work.undo(since=True).turn == 0
    assert work.history.recorded() == []


def test_what_is_undone_is_not_undone_again_until_it_is_redone(work: WorkingSession) -> None:
    three_turns(work)
    for expected in ("3.txt", "2.txt"):
        assert os.path.basename(work.undo().files[0].path) == expected
    assert os.path.basename(work.redo().files[0].path) == "2.txt"
    assert last(work).event.reason == "redo"
    assert os.path.basename(work.undo().files[0].path) == "2.txt"


def test_redo_reverts_the_last_undo_or_that_of_a_turn(work: WorkingSession) -> None:
    work.write("a.txt", "a\n")
    work.undo()
    work.begin_turn()
    work.write("b.txt", "b\n")
    undone = [work.history.recorded()[-2].event_id]
    work.undo()
    undone.append(last(work).event_id)
    plan = work.redo(turn=1)
    assert (plan.action, plan.turn, plan.events) == (
        "redo",
        1,
        (work.history.recorded()[1].event_id,),
    )
    assert (work.read("a.txt"), work.read("b.txt")) == ("a\n", None)
    with pytest.raises(UsageError, match="no undo to revert; see `trimtab undo`"):
        work.redo(turn=1)
    assert work.redo().events == (undone[1],)
    with pytest.raises(UsageError, match="no undo to revert"):
        work.redo()


def test_redo_of_some_files_leaves_the_others_undone(work: WorkingSession) -> None:
    for name in ("a.txt", "b.txt"):
        work.write(name, name)
    work.undo()
    work.redo(files=(work.path("a.txt"),))
    assert (work.read("a.txt"), work.read("b.txt")) == ("a.txt", None)
    plan = work.history.plan_undo(UndoRequest())
    assert [file.path for file in plan.files] == [work.path("a.txt")]


def test_a_folder_names_everything_below_it_and_nothing_beside_it(work: WorkingSession) -> None:
    for folder in ("sub", "sub-2"):
        (work.root / folder).mkdir()
        work.write(f"{folder}/a.txt", "x")
    plan = work.undo(files=(work.path("sub"),))
    assert [file.path for file in plan.files] == [work.path("sub/a.txt")]
    with pytest.raises(UsageError, match=r"nothing was not changed there; see the changed files"):
        work.history.plan_undo(UndoRequest(files=(work.path("sub-2"), work.path("nothing"))))


def test_writes_of_another_session_during_a_command_are_left_alone(
    work: WorkingSession, other: WorkingSession
) -> None:
    other.begin_turn()
    other.write("theirs.txt", "theirs\n")
    theirs = work.store.keep(work.path("theirs.txt"))
    work.record("shell", lambda: (work.root / "mine.txt").write_text("x"), "mine.txt")
    change = Change.at(work.path("theirs.txt"), ABSENT, theirs)
    work.emit(WorkspaceChanged(reason="shell", count=0), [change])
    assert [file.path for file in work.undo().files] == [work.path("mine.txt")]
    assert work.read("theirs.txt") == "theirs\n"


def test_a_tool_is_undone_though_another_session_wrote_the_same(
    work: WorkingSession, other: WorkingSession
) -> None:
    other.begin_turn()
    other.write("a.txt", "same\n")
    (work.root / "a.txt").unlink()
    work.write("a.txt", "same\n")
    work.undo()
    assert work.read("a.txt") is None


def test_modes_of_folders_are_set_when_their_files_are_back(work: WorkingSession) -> None:
    folder = work.root / "sub"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.txt").write_text("x")
    (folder / "deep").chmod(0o550)
    folder.chmod(0o500)

    def remove() -> None:
        folder.chmod(0o700)
        (folder / "deep").chmod(0o700)
        shutil.rmtree(folder)

    work.record("shell", remove, "sub", "sub/deep", "sub/deep/a.txt")
    assert work.undo().problems == ()
    assert stat.S_IMODE((folder / "deep").stat().st_mode) == 0o550
    assert stat.S_IMODE(folder.stat().st_mode) == 0o500
    assert work.read("sub/deep/a.txt") == "x"


def test_folders_are_removed_after_their_files_and_those_inside_first(work: WorkingSession) -> None:
    def make() -> None:
        (work.root / "a" / "b").mkdir(parents=True)
        (work.root / "a" / "b" / "c.txt").write_text("x")
        (work.root / "a" / "link").symlink_to("b")

    work.record("shell", make, "a", "a/b", "a/b/c.txt", "a/link")
    plan = work.undo()
    assert plan.problems == ()
    assert not (work.root / "a").exists()
    assert len(last(work).changes) == 4
    work.redo()
    assert work.read("a/b/c.txt") == "x"
    assert os.readlink(work.root / "a" / "link") == "b"


def test_a_folder_with_files_of_others_stays_without_a_conflict(work: WorkingSession) -> None:
    work.record("shell", (work.root / "sub").mkdir, "sub")
    (work.root / "sub" / "mine.txt").write_text("x")
    plan = work.undo()
    assert plan.problems == ()
    (file,) = plan.files
    assert not file.is_needed
    assert work.read("sub/mine.txt") == "x"
    assert [change.after.kind for change in last(work).changes] == ["directory"]


def test_a_conflict_is_left_alone_and_can_be_undone_later(work: WorkingSession) -> None:
    work.write("a.txt", "a\n")
    work.write("b.txt", "b\n")
    (work.root / "b.txt").write_text("by the person\n")
    plan = work.undo()
    assert [file.path for file in plan.problems] == [work.path("b.txt")]
    assert [change.path for change in last(work).changes] == [work.path("a.txt")]
    assert last(work).event.partial is None
    (work.root / "b.txt").write_text("b\n")
    assert [file.path for file in work.undo().files] == [work.path("b.txt")]


def test_a_path_that_is_restored_only_in_part_is_recorded_as_such(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("one\n")
    work.write("a.txt", "two\n")
    (work.root / "a.txt").write_text("two\nby the person\n")
    work.remove("a.txt", "shell")
    plan = work.undo()
    (file,) = plan.files
    assert (file.is_needed, bool(file.problem)) == (True, True)
    assert work.read("a.txt") == "two\nby the person\n"
    assert last(work).event.partial == [work.path("a.txt")]
    assert work.history.plan_undo(UndoRequest()).problems


def test_one_hunk_is_undone_and_the_rest_later(work: WorkingSession) -> None:
    lines = [f"{number}\n" for number in range(9)]
    (work.root / "a.txt").write_text("".join(lines))
    os.chmod(work.root / "a.txt", 0o640)
    work.write("a.txt", "".join(["zero\n", *lines[1:8], "eight\n"]))
    plan = work.undo(files=(work.path("a.txt"),), hunk=2)
    assert (plan.partial, work.read("a.txt")) == (True, "".join(["zero\n", *lines[1:]]))
    assert last(work).event.partial == [work.path("a.txt")]
    assert plan.files[0].target.size == len("zero\n") + 16
    assert stat.S_IMODE((work.root / "a.txt").stat().st_mode) == 0o640
    work.undo()
    assert work.read("a.txt") == "".join(lines)


def test_a_hunk_of_a_file_with_a_conflict_is_refused(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("one\n")
    work.write("a.txt", "two\n")
    (work.root / "a.txt").write_text("three\n")
    with pytest.raises(UsageError, match="cannot be undone in parts; leave --hunk out"):
        work.undo(hunk=1)
    work.write("b.txt", "b\n")
    with pytest.raises(UsageError, match="cannot be undone in parts"):
        work.undo(files=(work.path("b.txt"),), hunk=1)


def test_git_state_that_the_person_changed_since_is_left_without_a_conflict(
    work: WorkingSession,
) -> None:
    (work.root / ".git").mkdir()
    (work.root / ".git" / "index").write_text("old")
    work.write(".git/index", "new", "shell")
    work.write("a.txt", "a\n")
    (work.root / ".git" / "index").write_text("by the person")
    plan = work.undo()
    assert (plan.problems, plan.left) == ((), (work.path(".git/index"),))
    assert work.read(".git/index") == "by the person"
    assert work.read("a.txt") is None


@pytest.mark.parametrize("there", [True, False])
def test_if_nothing_is_left_to_do_a_missing_folder_is_an_error(
    work: WorkingSession, there: bool
) -> None:
    work.write("a.txt", "a\n")
    cwd = work.root if there else work.root.with_name("moved")
    work.folder.update_metadata(cwd=str(cwd))
    (work.root / "a.txt").unlink()
    if there:
        assert not work.undo().files[0].is_needed
    else:
        with pytest.raises(UsageError, match="where the session worked; move it back first"):
            work.undo()
    assert work.undo(turn=1, since=True).action == "rewind"


def test_a_missing_folder_is_no_error_while_there_is_something_to_do(work: WorkingSession) -> None:
    work.write("a.txt", "a\n")
    work.folder.update_metadata(cwd=str(work.root.with_name("moved")))
    assert work.undo().problems == ()
    assert work.read("a.txt") is None


def test_a_large_file_that_a_tool_wrote_is_compared_by_its_content(work: WorkingSession) -> None:
    path = work.root / "large"

    def keep() -> FileState:
        return work.store.keep(str(path), 2 * MAX_SIZE)

    with open(path, "wb") as file:
        file.truncate(MAX_SIZE + 1)
    for _ in range(2):
        before = keep()
        with open(path, "ab") as file:
            file.write(b"end")
        change = Change.at(str(path), before, keep())
        work.emit(WorkspaceChanged(reason="tool", count=0), [change])
    assert work.undo().problems == ()
    assert path.stat().st_size == MAX_SIZE + 1


@pytest.mark.parametrize("moved", ["moved", "zzz"])
def test_nothing_is_written_through_a_link_that_took_a_folders_place(
    work: WorkingSession, moved: str
) -> None:
    (work.root / "sub").mkdir()
    work.write("sub/a.txt", "a\n")
    (work.root / "sub").rename(work.root / moved)
    (work.root / "sub").symlink_to(moved)
    (file,) = work.undo().problems
    assert file.problem == "its folder has become a link elsewhere"
    assert work.read(f"{moved}/a.txt") == "a\n"


def test_a_file_that_changes_after_the_plan_is_left_alone(work: WorkingSession) -> None:
    work.write("a.txt", "a\n")
    work.write("b.txt", "b\n")
    plan = work.history.plan_undo(UndoRequest())
    (work.root / "a.txt").write_text("by the person\n")
    (work.root / "b.txt").unlink()
    applied = work.history.apply(plan)
    (problem,) = applied.problems
    assert (problem.path, problem.problem) == (
        work.path("a.txt"),
        "it is being changed right now; try again",
    )
    assert problem.current == problem.target
    assert work.read("a.txt") == "by the person\n"
    assert [change.path for change in last(work).changes] == [work.path("b.txt")]


def test_a_copy_that_is_lost_after_the_plan_is_a_problem_of_that_file_alone(
    work: WorkingSession,
) -> None:
    for name in ("a.txt", "b.txt"):
        (work.root / name).write_text(f"{name} before\n")
        work.write(name, f"{name} after\n")
    plan = work.history.plan_undo(UndoRequest())
    os.unlink(work.store.path(plan.files[0].target.digest))
    (problem,) = work.history.apply(plan).problems
    assert problem.problem == "No such file or directory"
    assert (work.read("a.txt"), work.read("b.txt")) == ("a.txt after\n", "b.txt before\n")


def test_a_moved_file_whose_folder_is_now_a_file_of_others_stays(work: WorkingSession) -> None:
    (work.root / "docs").mkdir()
    (work.root / "docs" / "a.txt").write_text("a\n")

    def move() -> None:
        (work.root / "docs" / "a.txt").rename(work.root / "moved.txt")
        (work.root / "docs").rmdir()
        (work.root / "docs").write_text("by the command\n")

    work.record("shell", move, "docs", "docs/a.txt", "moved.txt")
    (work.root / "copy.txt").write_text("b\n")
    work.write("copy.txt", "a\n", "shell")
    (work.root / "docs").write_text("by the person\n")
    problems = {os.path.basename(file.path): file.problem for file in work.undo().problems}
    assert problems["a.txt"] == "somebody else's file is in the place of its folder"
    assert problems["moved.txt"] == "it was moved here and cannot return to its old path"
    assert (work.read("docs"), work.read("moved.txt")) == ("by the person\n", "a\n")
    assert (work.read("copy.txt"), set(problems)) == ("b\n", {"docs", "a.txt", "moved.txt"})


def test_a_file_that_came_and_went_is_no_conflict_below_a_file_of_others(
    work: WorkingSession,
) -> None:
    (work.root / "docs").mkdir()
    work.write("docs/new.txt", "x", "shell")

    def replace() -> None:
        shutil.rmtree(work.root / "docs")
        (work.root / "docs").write_text("by the command\n")

    work.record("shell", replace, "docs", "docs/new.txt")
    (work.root / "docs").write_text("by the person\n")
    assert [file.path for file in work.undo().problems] == [work.path("docs")]


def test_a_folder_with_another_mode_and_the_files_in_it_are_restored(
    work: WorkingSession,
) -> None:
    (work.root / "sub").mkdir(mode=0o755)
    (work.root / "sub" / "a.txt").write_text("one\n")

    def change() -> None:
        (work.root / "sub").chmod(0o700)
        (work.root / "sub" / "a.txt").write_text("two\n")

    work.record("shell", change, "sub", "sub/a.txt")
    assert work.undo().problems == ()
    assert work.read("sub/a.txt") == "one\n"
    assert stat.S_IMODE((work.root / "sub").stat().st_mode) == 0o755


def test_a_link_that_comes_back_leaves_the_mode_of_its_target(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("x")
    (work.root / "link").symlink_to("a.txt")
    work.record("shell", (work.root / "link").unlink, "link")
    work.undo()
    assert os.readlink(work.root / "link") == "a.txt"
    assert stat.S_IMODE((work.root / "a.txt").stat().st_mode) == 0o644


def test_a_file_does_not_come_back_in_place_of_a_folder_with_files_of_others(
    work: WorkingSession,
) -> None:
    (work.root / "a").write_text("x")

    def replace() -> None:
        (work.root / "a").unlink()
        (work.root / "a").mkdir()

    work.record("shell", replace, "a")
    (work.root / "a" / "mine.txt").write_text("mine")
    (file,) = work.undo().problems
    assert file.problem == "Directory not empty"
    assert work.read("a/mine.txt") == "mine"


def test_changes_before_the_first_prompt_can_be_undone(tmp_path: Path) -> None:
    work = WorkingSession(tmp_path)
    work.write("a.txt", "x")
    assert work.undo().turn == 0
    assert work.read("a.txt") is None
    work.session.close()


def test_only_an_undo_in_the_named_turn_is_redone(work: WorkingSession) -> None:
    work.write("a.txt", "x")
    work.undo()
    work.begin_turn()
    for turn in (0, 2):
        with pytest.raises(UsageError, match="no undo to revert"):
            work.redo(turn=turn)


@pytest.mark.parametrize("many", [0, 2])
def test_a_hunk_of_no_file_or_of_two_is_refused(work: WorkingSession, many: int) -> None:
    for number in range(many):
        (work.root / f"{number}.txt").write_text("one\n")
        work.write(f"{number}.txt", "two\n")
    with pytest.raises(UsageError, match="--hunk changes one file; name it with --file"):
        work.history.plan_undo(UndoRequest(turn=1, since=True, hunk=1))


def test_a_folder_that_was_replaced_by_a_link_comes_back_with_its_files(
    work: WorkingSession,
) -> None:
    (work.root / "elsewhere").mkdir()
    (work.root / "elsewhere" / "a.txt").write_text("of others\n")
    (work.root / "sub").mkdir()
    (work.root / "sub" / "a.txt").write_text("a\n")

    def replace() -> None:
        shutil.rmtree(work.root / "sub")
        (work.root / "sub").symlink_to("elsewhere")

    before = work.store.keep(work.path("sub/a.txt"))
    work.record("shell", replace, "sub")
    change = Change.at(work.path("sub/a.txt"), before, ABSENT)
    work.emit(WorkspaceChanged(reason="shell", count=0), [change])
    assert work.undo().problems == ()
    assert (work.read("sub/a.txt"), work.read("elsewhere/a.txt")) == ("a\n", "of others\n")
    assert not (work.root / "sub").is_symlink()


def test_a_plan_is_needed_if_the_state_differs_in_anything() -> None:
    state = FileState("file", 0o644, "d", 1)
    for other in (ABSENT, FileState("file", 0o600, "d", 1), FileState("file", 0o644, "e", 1)):
        assert FilePlan(path="a", current=state, target=other).is_needed
    assert not FilePlan(path="a", current=state, target=msgspec.structs.replace(state)).is_needed


def test_paths_are_within_folders_by_whole_names() -> None:
    assert list(folders_above("/a/b/c.txt")) == ["/a/b", "/a", "/"]
    assert is_within("/a/b", "/a/b")
    assert is_within("/a/b/c", "/a/b")
    assert not is_within("/a/bc", "/a/b")
    assert not is_within("/a", "/a/b")
