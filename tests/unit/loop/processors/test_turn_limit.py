"""Limits on the number of model calls."""

from loopkit import make_run
from trimtab.loop.processors.turn_limit import TurnLimit


async def test_exactly_so_many_turns_are_allowed() -> None:
    limit, run = TurnLimit(2), make_run([])
    assert [await limit.before_request(run) for _ in range(2)] == [None, None]
    stop = await limit.before_request(run)
    assert stop is not None
    assert (stop.reason, stop.exit_code) == ("turn_limit", 6)
    assert stop.message == "Stopped after 2 turns; raise --max-turns to go on."


async def test_turns_from_before_a_lower_limit_count() -> None:
    limit = TurnLimit(2, taken=5)
    assert await limit.before_request(make_run([])) is not None
    assert limit.taken == 5
