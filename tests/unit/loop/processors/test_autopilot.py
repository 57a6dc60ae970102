"""Autopilot: sends the agent on, up to a number of times, and records how it ended."""

from typing import Any

import pytest

from loopkit import EchoTool, make_run
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.processors.autopilot import Autopilot

END = Stop(reason="end_turn")


def of(run: Run, kind: str) -> list[Any]:
    return run.session.of(kind)  # type: ignore[attr-defined, no-any-return]


async def test_each_continuation_is_counted_aloud_and_nobody_pays_for_a_prompt() -> None:
    run, autopilot = make_run([], mode="autopilot"), Autopilot("Go on.", 2)
    for number in (1, 2):
        prompt = await autopilot.before_stop(run, END)
        assert isinstance(prompt, Prompt)
        assert (prompt.text, prompt.source, prompt.billable) == ("Go on.", "autopilot", False)
        info = of(run, "session.info")[-1]
        assert info.info_type == "autopilot_continuation"
        assert info.message == f"Continuing autonomously ({number} of 2)"
    stop = await autopilot.before_stop(run, END)
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.exit_code) == ("continuation_cap", 3)
    assert stop.message.startswith("Autopilot stopped after 2 continuations without task_complete")
    assert [each.reason for each in of(run, "session.autopilot_stopped")] == ["cap_reached"]
    assert of(run, "session.info")[-1].info_type == "autopilot_stopped"
    assert of(run, "session.info")[-1].message == stop.message


async def test_a_prompt_of_the_person_starts_the_count_anew_and_a_nudge_does_not() -> None:
    run, autopilot = make_run([], mode="autopilot"), Autopilot("Go on.", 1)
    assert isinstance(await autopilot.before_stop(run, END), Prompt)
    nudge, asked = Prompt(text="Go on.", source="autopilot"), Prompt(text="and this")
    assert await autopilot.on_prompt(run, nudge) is nudge
    assert isinstance(await autopilot.before_stop(run, END), Stop)
    assert await autopilot.on_prompt(run, asked) is asked
    assert isinstance(await autopilot.before_stop(run, END), Prompt)


@pytest.mark.parametrize("mode", ["interactive", "plan"])
async def test_other_modes_are_left_alone(mode: str) -> None:
    run, autopilot = make_run([], mode=mode), Autopilot("Go on.", 5)
    assert await autopilot.before_stop(run, END) is None
    await complete(run, autopilot, {"summary": "x"})
    assert run.stop is None


async def complete(
    run: Run, autopilot: Autopilot, args: dict[str, Any], kind: Any = "success", tool: str = ""
) -> None:
    name = tool or "task_complete"
    pending = PendingCall(
        call=ToolCall(id="c", name=name, arguments=""), tool=EchoTool(name), args=args
    )
    result = ToolResult(text="", kind=kind)
    assert await autopilot.after_tool(run, pending, result) is result


@pytest.mark.parametrize(
    ("args", "reason", "told", "code"),
    [
        ({"summary": "All done."}, "task_complete", "task_complete", 0),
        ({"summary": "All done.", "outcome": "completed"}, "task_complete", "task_complete", 0),
        ({"summary": "All done.", "outcome": "blocked"}, "blocked", "blocked", 3),
    ],
)
async def test_the_tool_ends_the_run_with_its_summary(
    args: dict[str, Any], reason: str, told: str, code: int
) -> None:
    run, autopilot = make_run([], mode="autopilot"), Autopilot("Go on.", 5)
    await complete(run, autopilot, args)
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code, run.stop.message) == (reason, code, "All done.")
    (done,), (stopped,) = of(run, "session.task_complete"), of(run, "session.autopilot_stopped")
    assert (done.summary, done.success) == ("All done.", code == 0)
    assert done.outcome == ("blocked" if code else "completed")
    assert stopped.reason == told


async def test_only_a_call_of_that_tool_that_succeeded_counts() -> None:
    run, autopilot = make_run([], mode="autopilot"), Autopilot("Go on.", 5)
    await complete(run, autopilot, {}, kind="denied")
    await complete(run, autopilot, {}, tool="echo")
    assert run.stop is None


async def test_a_task_may_be_complete_without_a_summary() -> None:
    run, autopilot = make_run([], mode="autopilot"), Autopilot("Go on.", 5)
    await complete(run, autopilot, {})
    assert run.stop is not None
    assert run.stop.message == ""
