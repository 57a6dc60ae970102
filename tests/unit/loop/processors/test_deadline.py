"""The end of a session's time: last words of the main agent, and a stop for its sub-agents."""

import pytest

from loopkit import MemorySession, change_agent, make_run
from trimtab.contracts.run import Run
from trimtab.loop.processors.deadline import Deadline
from trimtab.loop.time_limit import TimeLimit


def at(left: float, depth: int = 0) -> tuple[Run, Deadline]:
    """A run with so many of a hundred seconds left."""
    now = [0.0]
    limit = TimeLimit(100, clock=lambda: now[0])
    now[0] = 100.0 - left
    run = make_run([])
    change_agent(run, depth=depth)
    return run, Deadline(limit)


def told(run: Run) -> list[str]:
    assert isinstance(run.session, MemorySession)
    return [str(data.transformed_content) for data in run.session.of("user.message")]


async def test_nothing_happens_before_the_last_tenth() -> None:
    run, deadline = at(10.01)
    assert await deadline.before_request(run) is None
    assert (run.closing, told(run)) == (False, [])


@pytest.mark.parametrize("left", [10.0, 0.5])
async def test_in_the_last_tenth_the_agent_gives_its_last_words_once(left: float) -> None:
    run, deadline = at(left)
    for _ in range(2):
        assert await deadline.before_request(run) is None
    assert run.closing
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code) == ("deadline", 6)
    (text,) = told(run)
    assert f"{left:.0f} of 100 seconds are left" in text


@pytest.mark.parametrize("left", [0.0, -0.5, -5.0])
async def test_when_the_time_is_over_the_run_stops(left: float) -> None:
    run, deadline = at(left)
    stop = await deadline.before_request(run)
    assert stop is not None
    assert stop.message == "Stopped at the deadline of 100 s; raise --deadline to go on."
    assert (run.closing, told(run)) == (False, [])


async def test_a_sub_agent_leaves_the_last_words_to_the_main_agent() -> None:
    run, deadline = at(5, depth=1)
    assert await deadline.before_request(run) is not None
    assert told(run) == []
