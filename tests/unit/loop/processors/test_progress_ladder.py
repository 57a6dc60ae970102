"""The ladder of a run that repeats itself: a nudge, a changed way, a stop; never too early."""

from typing import Any

import pytest

from loopkit import EchoTool, MemorySession, call, drained, make_run
from trimtab.contracts.run import Run
from trimtab.loop.processors.autopilot import Autopilot
from trimtab.loop.processors.progress import Progress
from trimtab.providers.scripted import ScriptedProvider


def warnings(session: MemorySession) -> list[str]:
    return [data.warning_type for data in session.of("session.warning")]


def requests(run: Run) -> list[Any]:
    provider = run.agent.model.provider
    assert isinstance(provider, ScriptedProvider)
    return provider.requests


def told(run: Run, text: str) -> list[int]:
    """The numbers of the requests before which a text was first or again told."""
    return [n for n, r in enumerate(requests(run), 1) if text in str(r.messages[-1])]


async def test_each_step_is_an_event_and_none_comes_before_its_time() -> None:
    tool = EchoTool()
    run = make_run(
        [{"tools": [call(text="a")], "repeat": 40}], "go", tools=[tool], processors=[Progress()]
    )
    session = await drained(run)
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code) == ("no_progress", 3)
    assert warnings(session) == ["stall_nudge", "stall_change", "no_progress"]
    assert told(run, "You have called echo") == [9]
    assert told(run, "is closed from now on") == [15]
    assert 20 <= len(requests(run)) <= 25
    assert len(tool.runs) == 14


async def test_a_cycle_and_edits_that_undo_each_other_are_noticed() -> None:
    both = [{"tools": [call(text="a")]}, {"tools": [call(text="b")]}] * 40
    run = make_run(both, "go", tools=[EchoTool()], processors=[Progress()])
    session = await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "no_progress"
    assert warnings(session).count("stall_nudge") == 2
    assert 40 <= len(requests(run)) <= 50


async def test_repeated_texts_are_nudged_and_stop_late() -> None:
    run = make_run(
        {"replies": [], "otherwise": {"text": "I will do it."}},
        "go",
        processors=[Progress(), Autopilot("Go on.", 100)],
        mode="autopilot",
    )
    session = await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "no_progress"
    assert warnings(session) == ["stall_nudge", "no_progress"]
    assert len(requests(run)) == 21


async def test_something_new_opens_a_closed_call_again() -> None:
    tool = EchoTool()
    replies = [
        {"tools": [call(text="a")], "repeat": 15},
        {"tools": [call(text="b")]},
        {"tools": [call(text="a")], "repeat": 2},
        {"text": "Done."},
    ]
    run = make_run(replies, "go", tools=[tool], processors=[Progress()])
    await drained(run)
    assert run.stop is not None
    assert run.stop.exit_code == 0
    assert len(tool.runs) == 14 + 1 + 2


@pytest.mark.parametrize("limit", [0, 4])
async def test_a_limit_of_ones_own_has_no_steps_before_it(limit: int) -> None:
    replies = [{"tools": [call(text="a")], "repeat": 12}, {"text": "Done."}]
    run = make_run(replies, "go", tools=[EchoTool()], processors=[Progress(limit)])
    session = await drained(run)
    assert "stall_nudge" not in warnings(session)


async def test_the_way_is_changed_by_the_agent_too() -> None:
    changed: list[Run] = []

    async def change_way(run: Run) -> str:
        changed.append(run)
        return " From now on the effort is high."

    processor = Progress(change_way=change_way)
    replies = [{"tools": [call(text="a")], "repeat": 16}, {"text": "Done."}]
    run = make_run(replies, "go", tools=[EchoTool()], processors=[processor])
    session = await drained(run)
    assert len(changed) == 1
    (message,) = [
        d.message for d in session.of("session.warning") if d.warning_type == "stall_change"
    ]
    assert "From now on the effort is high." in message
