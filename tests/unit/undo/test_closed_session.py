"""A session that is not running is opened to undo: also what a killed command did."""

import os
from pathlib import Path

import pytest

from properties.undo_cases import Party
from trimtab.contracts.errors import SessionInUse, UsageError
from trimtab.undo.closed_session import UndoRequest, find_session, open_closed_session
from trimtab.undo.recorder import Marker, Reason
from undokit import WorkingSession


def env_of(folder: str) -> dict[str, str]:
    return {"COPILOT_HOME": str(Path(folder).parents[1])}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


async def kill_during_command(tmp_path: Path, root: Path, cwd: str | None) -> Party:
    """Let a session be killed while a command runs, which has changed a file."""
    party = Party(str(tmp_path), str(root))
    party.begin_turn()
    if cwd is not None:
        party.place.update_metadata(cwd=cwd)
    await party.recorder.begin(Reason("shell", "call-1", "make"))
    (root / "a.txt").write_text("by the command\n")
    party.session.close()
    await party.workspace.aclose()
    return party


async def test_what_a_killed_command_did_is_recorded_once_when_the_session_is_opened(
    tmp_path: Path, root: Path
) -> None:
    party = await kill_during_command(tmp_path, root, str(root))
    env = env_of(party.folder)
    for _ in range(2):
        with open_closed_session(env, party.place.id) as closed:
            (entry,) = closed.history.recorded()
            assert Marker(party.folder).read() is None
    event = entry.event
    assert (event.reason, event.tool_call_id, event.detail) == ("interrupted", "call-1", "make")
    assert event.count == 1
    with open_closed_session(env, party.place.id) as closed:
        request = UndoRequest(files=(str(root / "a.txt"),))
        closed.history.apply(closed.history.plan_undo(request))
    assert (root / "a.txt").read_text() == "one\n"


async def test_without_a_folder_to_look_at_nothing_is_recorded(tmp_path: Path, root: Path) -> None:
    party = await kill_during_command(tmp_path, root, None)
    with open_closed_session(env_of(party.folder), party.place.id) as closed:
        assert closed.history.recorded() == []
    assert Marker(party.folder).read() is None


async def test_a_killed_command_that_changed_nothing_is_not_recorded(
    tmp_path: Path, root: Path
) -> None:
    party = await kill_during_command(tmp_path, root, str(root))
    (root / "a.txt").write_text("one\n")
    with open_closed_session(env_of(party.folder), party.place.id) as closed:
        assert closed.history.recorded() == []


async def test_a_marker_without_a_snapshot_is_cleared(tmp_path: Path, root: Path) -> None:
    work = WorkingSession(tmp_path)
    work.folder.update_metadata(cwd=str(root))
    work.session.close()
    Marker(work.folder.path).set("call-1", "make")
    with open_closed_session(env_of(work.folder.path), "session") as closed:
        assert closed.history.recorded() == []
    assert Marker(work.folder.path).read() is None


def test_undo_and_rewind_of_a_closed_session_are_recorded(tmp_path: Path) -> None:
    work = WorkingSession(tmp_path)
    work.write("before.txt", "x", "person")
    for number in (1, 2):
        work.begin_turn(f"turn {number}")
        work.write(f"{number}.txt", "x")
    work.session.close()
    env = env_of(work.folder.path)
    with open_closed_session(env, "session") as closed:
        assert [point.text for point in closed.points()] == ["turn 1", "turn 2"]
        closed.history.apply(closed.history.plan_undo(UndoRequest()))
        assert closed.history.recorded()[-1].event.reason == "undo"
        rewound = closed.rewind(1, "both")
        assert rewound.events_removed == 5
        assert [entry.event.reason for entry in closed.history.recorded()] == ["person", "rewind"]
        assert closed.points() == []
        closed.write_index()
        assert os.path.exists(f"{closed.folder.path}/rewind-file-snapshots/index.json")
    assert os.listdir(work.root) == ["before.txt"]


def test_a_session_is_open_once_and_closed_also_after_an_error(tmp_path: Path) -> None:
    WorkingSession(tmp_path).session.close()
    env = {"COPILOT_HOME": str(tmp_path / "state")}

    def fail() -> None:
        with open_closed_session(env, "session"):
            with pytest.raises(SessionInUse), open_closed_session(env, "session"):
                pass
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with open_closed_session(env, "session") as closed:
        assert closed.folder.id == "session"


def test_the_session_is_the_named_one_or_the_last_of_this_folder(tmp_path: Path) -> None:
    env = {"COPILOT_HOME": str(tmp_path / "state")}
    with pytest.raises(UsageError, match="There is no session yet; start one with trimtab -p TEXT"):
        find_session(env, None, None)
    for name in ("first", "second"):
        work = WorkingSession(tmp_path, name)
        work.folder.update_metadata(cwd=f"/{name}")
        work.begin_turn()
        work.session.close()
    for name in ("first", "second"):
        assert find_session(env, None, f"/{name}") == name
        assert find_session(env, name, "/elsewhere") == name
