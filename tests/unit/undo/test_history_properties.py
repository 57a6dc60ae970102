"""Undo around the work of others: named and random cases, more of them in `make scorecard`."""

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from properties.undo_cases import Case, check
from trimtab.undo.history import Plan, UndoRequest
from trimtab.undo.recorder import Reason

SETTINGS = settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], database=None)


@SETTINGS
@given(st.integers(min_value=0, max_value=1 << 32))
async def test_undo_restores_every_path_and_loses_no_byte_of_others(seed: int) -> None:
    await check(seed)


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[Case]:
    case = Case(0, str(tmp_path))
    yield case
    for party in (case.agent, case.other):
        party.close()
        await party.workspace.aclose()


async def run_command(case: Case, *steps: Callable[[], object]) -> None:
    """Do these things in a command of the agent."""
    reason = Reason("shell", "call", "a command")
    await case.agent.recorder.begin(reason)
    for step in steps:
        step()
    await case.agent.recorder.end(reason)


def put_file_in_place_of(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("by the command\n")


def undo_everything(case: Case) -> Plan:
    history = case.agent.history
    return history.apply(history.plan_undo(UndoRequest(turn=1, since=True)))


async def test_a_moved_file_with_words_of_the_person_survives_though_a_folder_was_in_its_place(
    case: Case,
) -> None:
    source, moved = Path(case.root, "src"), Path(case.root, "moved")
    case.agent.begin_turn()
    await run_command(case, lambda: put_file_in_place_of(source))
    source.write_text("by the command\nby the person\n")
    await run_command(case, lambda: source.rename(moved))
    plan = undo_everything(case)
    assert source.read_text() == "by the command\nby the person\n"
    assert {one.path for one in plan.problems} >= {str(source)}


async def test_a_moved_file_stays_where_it_is_if_its_folder_is_now_a_file_of_the_person(
    case: Case,
) -> None:
    docs, moved = Path(case.root, "docs"), Path(case.root, "moved")
    await case.other.files.write(str(docs / "theirs.txt"), b"by another session\n")
    case.agent.begin_turn()
    await run_command(
        case, lambda: (docs / "theirs.txt").rename(moved), lambda: put_file_in_place_of(docs)
    )
    docs.write_text("by the command\nby the person\n")
    plan = undo_everything(case)
    assert docs.read_text() == "by the command\nby the person\n"
    assert moved.read_text() == "by another session\n"
    assert str(moved) in {one.path for one in plan.problems}


async def test_redo_removes_a_folder_that_undo_had_to_make_for_a_file_of_another_session(
    case: Case,
) -> None:
    source = Path(case.root, "src")
    theirs = source / "deep" / "made" / "theirs.txt"
    case.agent.begin_turn()
    reason = Reason("shell", "call", "a command")
    await case.agent.recorder.begin(reason)
    await case.other.files.write(str(theirs), b"by another session\n")
    await case.agent.recorder.end(reason)
    await run_command(case, lambda: put_file_in_place_of(source))
    undo_everything(case)
    assert theirs.read_text() == "by another session\n"
    history = case.agent.history
    again = history.apply(history.plan_redo(UndoRequest()))
    assert not again.problems
    assert source.read_text() == "by the command\n"
