"""Runs that go round in circles end by themselves; runs that wait or work do not."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.tool import ToolExecutionComplete
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.processors.progress import Progress


@pytest.mark.parametrize(
    ("mode", "attended"), [("autopilot", True), ("autopilot", False), ("interactive", False)]
)
async def test_the_same_call_with_the_same_result_ends_a_run_that_nobody_watches(
    mode: str, attended: bool
) -> None:
    run = make_run(
        {"replies": [], "otherwise": {"tools": [call(text="a")]}},
        "go",
        tools=[EchoTool()],
        processors=[Progress(attended=attended)],
        mode=mode,
    )
    session = await drained(run)
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code) == ("no_progress", 3)
    assert len(session.of("tool.execution_start")) == 25
    assert session.of("session.warning")[-1].warning_type == "no_progress"


async def test_going_round_between_two_calls_is_no_progress_either() -> None:
    replies = [{"tools": [call(text="a")]}, {"tools": [call(text="b")]}] * 50
    run = make_run(replies, "go", tools=[EchoTool()], processors=[Progress(4)])
    session = await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "no_progress"
    assert len(session.of("tool.execution_start")) == 7


async def test_repeats_are_counted_again_after_something_new() -> None:
    same, other = {"tools": [call(text="a")]}, {"tools": [call(text="b")]}
    replies = [*[same] * 5, other, *[same] * 7, {"text": "done"}]
    run = make_run(replies, "go", tools=[EchoTool()], processors=[Progress(25)])
    session = await drained(run)
    (warning,) = session.of("session.warning")
    assert warning.message == "echo had the same result 8 times; the model is told."


async def test_answers_without_anything_new_end_only_autopilot() -> None:
    for mode, expected in (("interactive", None), ("plan", None), ("autopilot", "no_progress")):
        run = make_run([], "go", processors=[], mode=mode)
        progress = Progress()
        stops = [await progress.before_stop(run, Stop(reason="end_turn")) for _ in range(21)]
        last = stops[-1]
        assert (last and last.reason) == expected, mode


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"name": "echo", "arguments": {"wrong": 1}}, id="wrong arguments"),
        pytest.param({"name": "echo", "arguments": "{"}, id="arguments that are not JSON"),
        pytest.param({"name": "nope", "arguments": {}}, id="no such tool"),
        pytest.param({"name": "crash", "arguments": {"text": "x"}}, id="a crash"),
        pytest.param({"name": "echo", "arguments": {"text": "denied"}}, id="a denied call"),
    ],
)
async def test_calls_that_never_ran_count_as_well(asked: dict[str, Any]) -> None:
    class Denial(Processor):
        async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
            if pending.args.get("text") == "denied":
                return ToolResult(text="Denied.", kind="denied")
            return pending

    async def crash(args: Any) -> None:
        raise RuntimeError("boom")

    run = make_run(
        {"replies": [], "otherwise": {"tools": [asked]}},
        "go",
        tools=[EchoTool(), EchoTool("crash", crash)],
        processors=[Denial(), Progress()],
    )
    session = await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "no_progress"
    assert len(session.of("tool.execution_complete")) == 25


async def test_output_that_is_saved_anew_each_time_is_the_same_result() -> None:
    numbers = iter(range(1000))

    async def save(args: Any) -> ToolResult:
        return ToolResult(text=f"Saved to: /s/files/shell-ab12-{next(numbers)}.txt\nstart")

    script = {"replies": [], "otherwise": {"tools": [call(text="a")]}}
    run = make_run(script, "go", tools=[EchoTool(on_run=save)], processors=[Progress()])
    session = await drained(run)
    assert len(session.of("tool.execution_start")) == 25


async def test_waiting_is_no_circle() -> None:
    """A build is looked at every ten seconds for half an hour, and says the same each time."""
    now = [0.0]

    async def wait(args: Any) -> None:
        now[0] += 10

    replies = [*[{"tools": [call(text="a")]}] * 180, "done"]
    waiting = EchoTool(on_run=wait)
    run = make_run(replies, "go", tools=[waiting], processors=[Progress(clock=lambda: now[0])])
    await drained(run)
    assert run.stop is not None
    assert (run.stop.exit_code, len(waiting.runs)) == (0, 180)


async def test_waiting_ends_as_well() -> None:
    now = [0.0]

    async def wait(args: Any) -> None:
        now[0] += 10

    waiting = EchoTool(on_run=wait)
    run = make_run(
        {"replies": [], "otherwise": {"tools": [call(text="a")]}},
        "go",
        tools=[waiting],
        processors=[Progress(clock=lambda: now[0])],
    )
    await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "no_progress"
    assert 250 <= len(waiting.runs) <= 251
    assert f"called {len(waiting.runs)} times" in run.stop.message


async def test_a_person_who_watches_and_a_limit_of_zero_end_no_run() -> None:
    replies = [*[{"tools": [call(text="a")]}] * 40, "done"]
    for processor in (Progress(attended=True), Progress(0)):
        run = make_run(replies, "go", tools=[EchoTool()], processors=[processor])
        await drained(run)
        assert run.stop is not None
        assert run.stop.exit_code == 0


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 9), st.integers(2, 10), st.booleans())
def test_two_hundred_similar_edits_are_never_stopped(
    checks: int, limit: int, same_result: bool
) -> None:
    """Each edit differs a little; between them the same check fails in the same way."""
    progress, run = Progress(limit), make_run([], mode="autopilot")

    async def happen(name: str, text: str, result: str) -> None:
        request = {"toolCallId": "1", "name": name, "arguments": {"text": text}}
        run.session.emit(AssistantMessage(message_id="m", content="", tool_requests=[request]))
        run.session.emit(
            ToolExecutionComplete(tool_call_id="1", success=True, result={"content": result})
        )
        assert await progress.before_request(run) is None

    async def work() -> None:
        for number in range(200):
            await happen("edit", f"line {number}", "edited" if same_result else f"{number}")
            for _ in range(min(checks, limit - 2)):
                await happen("check", "all", "1 failed")

    asyncio.run(work())


async def test_autopilot_is_told_at_the_eighth_and_stopped_after_the_twentieth_empty_answer() -> (
    None
):
    progress, run = Progress(), make_run([], mode="autopilot")
    done = Stop(reason="done", exit_code=0, message="")
    told = []
    for number in range(1, 21):
        assert await progress.before_stop(run, done) is None, number
        told.append(len(run.session.of("session.warning")))  # type: ignore[attr-defined]
    assert told == [0] * 7 + [1] * 13
    stop = await progress.before_stop(run, done)
    assert stop is not None
    assert (stop.reason, stop.exit_code) == ("no_progress", 3)


async def test_a_prompt_of_a_person_starts_the_count_anew_and_others_do_not() -> None:
    progress, run = Progress(), make_run([], mode="autopilot")
    done = Stop(reason="done", exit_code=0, message="")
    for _ in range(20):
        await progress.before_stop(run, done)
    await progress.on_prompt(run, Prompt(text="go on", source="autopilot"))
    assert await progress.before_stop(run, done) is not None
    await progress.on_prompt(run, Prompt(text="go on", source="user"))
    assert await progress.before_stop(run, done) is None


def refused(number: int, agents: int = 1) -> dict[str, Any]:
    """A reply that starts agents, each with another prompt, where nobody has such a tool."""
    prompts = [{"prompt": f"{number} {agent}"} for agent in range(agents)]
    return {"tools": [{"name": "task", "arguments": prompt} for prompt in prompts]}


async def test_agents_that_are_not_started_are_one_attempt_whatever_they_were_to_do() -> None:
    """Agents that started agents went on asking without end: each prompt was another one."""
    replies = [refused(number, agents=4) for number in range(60)]
    run = make_run(replies, "go", tools=[EchoTool()], processors=[Progress(25)])
    session = await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "no_progress"
    assert len(session.of("assistant.message")) == 25


async def test_many_agents_refused_in_one_reply_do_not_end_a_run() -> None:
    replies = [refused(1, agents=40), {"tools": [call(text="a")]}, refused(2, agents=40), "done"]
    run = make_run(replies, "go", tools=[EchoTool()], processors=[Progress(25)])
    await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "end_turn"
