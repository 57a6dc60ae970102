"""Rewind: to before any prompt, of the files, the conversation or both."""

from pathlib import Path
from typing import Any

import pytest

from livekit import opened
from trimtab.contracts.errors import UsageError
from trimtab.undo.history import UndoRequest
from trimtab.undo.rewind import Effect, effects_since, find_point, list_points, point_of


def create(path: str, text: str) -> dict[str, Any]:
    return {"name": "create", "arguments": {"path": path, "file_text": text}}


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"name": "edit", "arguments": {"path": path, "old_str": old, "new_str": new}}


REPLIES = [
    {"tools": [create("a.txt", "one\n")]},
    {"text": "Done."},
    {"tools": [edit("a.txt", "one", "two")]},
    {"tools": [create("b.txt", "b\n")]},
    {"text": "Done."},
    {"text": "Later."},
]


async def test_points_are_numbered_from_one_and_found_by_number(tmp_path: Path) -> None:
    async with opened(tmp_path, REPLIES) as (live, _, __):
        await live.ask("first")
        await live.ask("second")
        log = live.folder.events
        assert [point.turn for point in list_points(log)] == [1, 2]
        assert find_point(log, 2) == list_points(log)[1]
        assert point_of(log, find_point(log, 1).event_id).turn == 1
        for number in (0, 3):
            with pytest.raises(UsageError, match="has 2 turns"):
                find_point(log, number)


async def test_both_takes_back_the_turn_and_what_came_after_and_nothing_before(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, REPLIES) as (live, _, __):
        await live.ask("first")
        await live.ask("second")
        rewound = live.rewind(find_point(live.folder.events, 2), "both")
        assert rewound.plan is not None
        assert (tmp_path / "a.txt").read_text() == "one\n"
        assert not (tmp_path / "b.txt").exists()
        assert [point.turn for point in list_points(live.folder.events)] == [1]


async def test_files_alone_leave_the_conversation(tmp_path: Path) -> None:
    async with opened(tmp_path, REPLIES) as (live, _, __):
        await live.ask("first")
        await live.ask("second")
        before = len(live.projections.conversation.messages)
        rewound = live.rewind(find_point(live.folder.events, 2), "files")
        assert rewound.events_removed == 0
        assert (tmp_path / "a.txt").read_text() == "one\n"
        assert len(live.projections.conversation.messages) == before
        live.history.apply(live.history.plan_redo(UndoRequest()))
        assert (tmp_path / "a.txt").read_text() == "two\n"


async def test_the_conversation_alone_leaves_the_files_and_they_can_still_be_undone(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, REPLIES) as (live, _, __):
        await live.ask("first")
        await live.ask("second")
        rewound = live.rewind(find_point(live.folder.events, 2), "conversation")
        assert rewound.plan is None
        assert rewound.events_removed > 0
        assert (tmp_path / "a.txt").read_text() == "two\n"
        assert len(list_points(live.folder.events)) == 1
        live.history.apply(live.history.plan_undo(UndoRequest(files=(str(tmp_path / "b.txt"),))))
        assert not (tmp_path / "b.txt").exists()
        assert (tmp_path / "a.txt").read_text() == "two\n"


async def test_effects_of_several_turns_are_combined_by_file(tmp_path: Path) -> None:
    async with opened(tmp_path, REPLIES) as (live, _, __):
        await live.ask("first")
        await live.ask("second")
        a, b = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
        since = [effects_since(live.folder, live.recorder.store, turn) for turn in (1, 2, 3)]
        assert since[0] == [Effect(a, "created", 1, 0), Effect(b, "created", 1, 0)]
        assert since[1] == [Effect(a, "modified", 1, 1), Effect(b, "created", 1, 0)]
        assert since[2] == []


async def test_a_rewind_names_its_turn_also_if_no_file_changed(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"text": "One."}, {"text": "Two."}]) as (live, _, __):
        await live.ask("first")
        await live.ask("second")
        rewound = live.rewind(find_point(live.folder.events, 2), "files")
        assert rewound.plan is not None
        assert (rewound.plan.turn, rewound.plan.files) == (2, ())
