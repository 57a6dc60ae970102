"""Undo and rewind of an open session, also when the disk fails."""

import os
from pathlib import Path
from typing import Any

import pytest

from clikit import bash
from livekit import opened
from trimtab.contracts.errors import UsageError
from trimtab.undo.changes import INLINE
from trimtab.undo.history import UndoRequest
from trimtab.undo.rewind import (
    Effect,
    list_effects,
    list_points,
    point_of,
)


def create(path: str, text: str) -> dict[str, Any]:
    return {"name": "create", "arguments": {"path": path, "file_text": text}}


def turn(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [*({"tools": [call]} for call in calls), {"text": "Done."}]


async def test_an_open_session_undoes_and_redoes_and_does_not_take_it_for_somebody_elses(
    tmp_path: Path,
) -> None:
    replies = [*turn(create("a.txt", "a\n"), bash("touch b.txt")), *turn(bash("touch c.txt"))]
    async with opened(tmp_path, replies) as (live, watch, _):
        await live.ask("first")
        plan = live.history.apply(live.history.plan_undo(UndoRequest()))
        assert not plan.problems
        assert not (tmp_path / "a.txt").exists()
        live.history.apply(live.history.plan_redo(UndoRequest()))
        assert (tmp_path / "a.txt").read_text() == "a\n"
        await live.ask("second")
        reasons = [said.reason for said in watch.of("trimtab.workspace_changed")]
        assert reasons == ["tool", "shell", "undo", "redo", "shell"]


async def test_an_open_session_goes_back_and_forgets_the_turn(tmp_path: Path) -> None:
    async with opened(tmp_path, [*turn(create("a.txt", "a\n")), *turn()]) as (
        live,
        watch,
        _,
    ):
        await live.ask("first")
        (point,) = list_points(live.folder.events)
        expected = Effect(str(tmp_path / "a.txt"), "created", 1, 0)
        assert list_effects(live.folder, live.recorder.store) == {1: [expected]}
        rewound = live.rewind(point, "both")
        assert rewound.events_removed > 3
        assert not (tmp_path / "a.txt").exists()
        assert not list(live.projections.queue.prompts)
        await live.ask("again")
        assert len(live.projections.conversation.messages) == 2
        assert watch.of("session.snapshot_rewind")
        with pytest.raises(UsageError, match="not a rewind point"):
            point_of(live.folder.events, "x")


async def test_a_person_who_edits_between_two_edits_of_the_agent_is_recorded(
    tmp_path: Path,
) -> None:
    edit = {"name": "edit", "arguments": {"path": "a.txt", "old_str": "one", "new_str": "1"}}
    async with opened(tmp_path, [*turn(create("a.txt", "one\n")), *turn(edit)]) as (live, watch, _):
        await live.ask("first")
        (tmp_path / "a.txt").write_text("one\nmine\n")
        await live.ask("second")
        reasons = [said.reason for said in watch.of("trimtab.workspace_changed")]
        assert reasons == ["tool", "person", "tool"]
        live.history.apply(live.history.plan_undo(UndoRequest()))
        assert (tmp_path / "a.txt").read_text() == "one\nmine\n"


async def test_a_long_list_of_changes_is_not_in_the_log_but_can_be_taken_back(
    tmp_path: Path,
) -> None:
    many = INLINE + 50
    command = f"mkdir d; for i in $(seq {many}); do echo $i > d/$i; done"
    async with opened(tmp_path, turn(bash(command))) as (live, watch, _):
        await live.ask("go")
        (said,) = watch.of("trimtab.workspace_changed")
        assert (said.count, said.changes) == (many + 1, [])
        live.history.apply(live.history.plan_undo(UndoRequest()))
        assert not (tmp_path / "d").exists()


async def test_without_room_for_copies_work_goes_on_and_undo_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    edit = {"name": "edit", "arguments": {"path": "a.txt", "old_str": "one", "new_str": "1"}}
    async with opened(tmp_path, turn(edit, bash("echo 2 >> a.txt"))) as (live, watch, _):
        blobs = Path(live.folder.blobs)
        blobs.write_text("a file where the folder should be")
        await live.ask("go")
        assert (tmp_path / "a.txt").read_text() == "1\n2\n"
        (limited,) = watch.of("trimtab.snapshot_limited")
        assert limited.uncovered > 0
        (file,) = live.history.plan_undo(UndoRequest()).files
        assert "too large to be kept" in file.problem


async def test_undo_never_writes_through_a_link_that_took_a_folders_place(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.txt").write_text("a\n")
    async with opened(tmp_path, turn(create("d/a.txt", "a\n"))) as (live, _, __):
        await live.ask("go")
        (tmp_path / "d" / "a.txt").unlink()
        (tmp_path / "d").rmdir()
        os.symlink(elsewhere, tmp_path / "d")
        plan = live.history.apply(live.history.plan_undo(UndoRequest()))
        assert plan.problems
        assert (elsewhere / "a.txt").read_text() == "a\n"


async def test_a_hunk_needs_one_text_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    edit = {"name": "edit", "arguments": {"path": "a.txt", "old_str": "one", "new_str": "1"}}
    async with opened(tmp_path, turn(create("b.txt", "b\n"), edit)) as (live, _, __):
        await live.ask("go")
        with pytest.raises(UsageError, match=r"--hunk changes one file; name it with --file\."):
            live.history.plan_undo(UndoRequest(hunk=1))
        for name, message in (("b.txt", "cannot be undone in parts"), ("a.txt", "no hunk 9")):
            path = str(tmp_path / name)
            with pytest.raises(UsageError, match=message):
                live.history.plan_undo(UndoRequest(files=(path,), hunk=9))
        live.history.apply(
            live.history.plan_undo(UndoRequest(files=(str(tmp_path / "a.txt"),), hunk=1))
        )
        assert (tmp_path / "a.txt").read_text() == "one\n"
        assert (tmp_path / "b.txt").exists()


async def test_undo_goes_back_turn_by_turn_and_redo_returns_the_last_undone(
    tmp_path: Path,
) -> None:
    replies = [*turn(create("a.txt", "a\n")), *turn(create("b.txt", "b\n"))]
    async with opened(tmp_path, replies) as (live, _, __):
        await live.ask("first")
        await live.ask("second")
        a, b = tmp_path / "a.txt", tmp_path / "b.txt"
        history = live.history
        for expected in ((True, False), (False, False)):
            history.apply(history.plan_undo(UndoRequest()))
            assert (a.exists(), b.exists()) == expected
        history.apply(history.plan_redo(UndoRequest()))
        assert (a.exists(), b.exists()) == (True, False)
        history.apply(history.plan_redo(UndoRequest()))
        assert (a.exists(), b.exists()) == (True, True)
        history.apply(history.plan_undo(UndoRequest()))
        assert (a.exists(), b.exists()) == (True, False)
