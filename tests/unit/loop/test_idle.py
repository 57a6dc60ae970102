"""The end of a run: the agent is idle, and the session unless something else works."""

import pytest

from loopkit import change_agent, make_run
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Run
from trimtab.loop.idle import settle

END = Stop(reason="end_turn")


@pytest.mark.parametrize(
    ("busy", "aborted", "idle"),
    [
        (None, None, True),
        (False, None, True),
        (True, None, False),
        (True, True, True),
        (False, True, True),
    ],
)
async def test_a_session_is_idle_unless_something_works_in_the_background(
    busy: bool | None, aborted: bool | None, idle: bool
) -> None:
    run = make_run([], mode="autopilot")
    if busy is not None:
        change_agent(run, has_background_work=lambda: busy)
    await settle(run, END, aborted=aborted)
    (agent,) = run.session.of("assistant.idle")  # type: ignore[attr-defined]
    assert agent.aborted == aborted
    session = run.session.of("session.idle")  # type: ignore[attr-defined]
    assert [(event.aborted, event.mode) for event in session] == (
        [(aborted, "autopilot")] if idle else []
    )


async def test_what_must_happen_before_is_done_first() -> None:
    run, seen = make_run([]), []

    async def before(run: Run, stop: Stop) -> None:
        seen.append((stop, run.session.types()))  # type: ignore[attr-defined]

    change_agent(run, before_idle=before)
    await settle(run, END)
    assert seen == [(END, [])]
