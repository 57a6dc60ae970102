"""Conditions that must hold before the agent may stop."""

from typing import Any

import pytest

from loopkit import EchoTool, make_run
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ShellEnd, ToolResult
from trimtab.loop.checks import Checks
from trimtab.loop.processors.stop_rules import MAX_REJECTIONS, StopGateSettings, StopRules

END = Stop(reason="end_turn")
HEAD = "<stop_gate>\nYou cannot stop yet. Still missing:\n"


def rules(written: int = 0, **settings: Any) -> StopRules:
    wanted = StopGateSettings(**settings)
    return StopRules(wanted, Checks(wanted.checks, lambda: 0), lambda: written)


def pending(name: str, **args: Any) -> PendingCall:
    return PendingCall(
        call=ToolCall(id="c", name=name, arguments=""), tool=EchoTool(name), args=args
    )


async def view(gate: StopRules, path: str, kind: Any = "success", tool: str = "view") -> None:
    await gate.after_tool(make_run([]), pending(tool, path=path), ToolResult(text="", kind=kind))


async def run_command(gate: StopRules, command: str, code: int, tool: str = "bash") -> None:
    ended = ToolResult(text="", shell=ShellEnd(exit_code=code, duration_ms=1))
    await gate.after_tool(make_run([]), pending(tool, command=command), ended)


async def missing(gate: StopRules) -> list[str]:
    """What the agent is told, line by line; nothing if it may stop."""
    verdict = await gate.before_stop(make_run([]), END)
    if verdict is None:
        return []
    assert isinstance(verdict, Prompt)
    assert (verdict.source, verdict.billable) == ("stop-gate", False)
    assert verdict.text.startswith(HEAD)
    return verdict.text.removeprefix(HEAD).removesuffix("\n</stop_gate>").split("\n")


async def test_without_conditions_the_agent_may_stop() -> None:
    assert await missing(rules()) == []


async def test_files_count_once_however_often_they_are_read() -> None:
    gate = rules(files_read=2)
    assert await missing(gate) == ["- 2 files must be read, and 0 were"]
    await view(gate, "a.py")
    await view(gate, "a.py")
    await view(gate, "b.py", kind="failure")
    await view(gate, "c.py", tool="create")
    assert await missing(gate) == ["- 2 files must be read, and 1 were"]
    await view(gate, "b.py")
    assert await missing(gate) == []


@pytest.mark.parametrize(
    ("written", "told"), [(0, ["- 1 file must be changed, and 0 were"]), (1, []), (2, [])]
)
async def test_files_must_be_changed(written: int, told: list[str]) -> None:
    assert await missing(rules(written, files_written=1)) == told


async def test_turns_are_counted_for_each_prompt_of_a_person() -> None:
    gate, run = rules(turns=2), make_run([])
    assert await gate.before_request(run) is None
    assert await missing(gate) == ["- work for at least 2 turns, not 1"]
    assert await gate.on_prompt(run, nudge := Prompt(text="on", source="stop-gate")) is nudge
    await gate.before_request(run)
    assert await missing(gate) == []
    assert await gate.on_prompt(run, again := Prompt(text="more")) is again
    assert await missing(gate) == ["- work for at least 2 turns, not 0"]


async def test_checks_must_have_passed_in_the_shell_tool() -> None:
    gate = rules(checks=("make test", "make lint"))
    await run_command(gate, "make test", 1)
    await run_command(gate, "make lint", 0, tool="read_bash")
    assert await missing(gate) == [
        "- `make test` failed; correct that and run it again",
        "- run `make lint` with the bash tool, after your last change",
    ]
    await run_command(gate, "make test", 0)
    await run_command(gate, "make lint", 0)
    assert await missing(gate) == []


async def test_a_command_that_has_not_ended_is_no_check() -> None:
    gate = rules(checks=("make test",))
    still = ToolResult(text="still running")
    await gate.after_tool(make_run([]), pending("bash", command="make test"), still)
    assert len(await missing(gate)) == 1


async def test_an_agent_that_never_does_the_rest_is_let_go_as_incomplete() -> None:
    gate, run = rules(files_written=1), make_run([])
    for _ in range(MAX_REJECTIONS):
        assert isinstance(await gate.before_stop(run, END), Prompt)
    stop = await gate.before_stop(run, END)
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.exit_code) == ("stop_gate", 3)
    assert stop.message.startswith(
        "The agent wanted to stop 9 times although something was missing"
    )
    assert "1 file must be changed" in stop.message
    assert warned(run) == ["stop_gate"]
    await gate.on_prompt(run, Prompt(text="x", source="hook"))
    assert isinstance(await gate.before_stop(run, END), Stop)
    await gate.on_prompt(run, Prompt(text="try again"))
    assert isinstance(await gate.before_stop(run, END), Prompt), "a person may ask once more"


def warned(run: Run) -> list[str]:
    return [event.warning_type for event in run.session.of("session.warning")]  # type: ignore[attr-defined]
