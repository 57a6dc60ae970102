"""The outer loop: prompts in order, the stop gate, steering, autopilot, limits, retries."""

from typing import Any

import pytest

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.errors import ModelError
from trimtab.contracts.ids import new_id
from trimtab.contracts.options import RetryPolicy
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.processors.autopilot import Autopilot
from trimtab.loop.processors.retry import Retry
from trimtab.loop.processors.steering import Steering
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.loop.processors.turn_limit import TurnLimit


@pytest.mark.proves("OUTER-13", "AMSES-03")
async def test_queued_prompts_are_answered_one_after_another() -> None:
    run = make_run([{"text": "one"}, {"text": "two"}, {"text": "three"}], "1", "2", "3")
    session = await drained(run)
    spoken = [
        e.data.content for e in session.events if e.type in ("user.message", "assistant.message")
    ]
    assert spoken == ["1", "one", "2", "two", "3", "three"]


@pytest.mark.proves("OUTER-12")
async def test_idle_is_said_once_when_nothing_waits() -> None:
    run = make_run([{"text": "one"}, {"text": "two"}], "1", "2")
    session = await drained(run)
    assert session.types().count("session.idle") == 1
    assert session.types()[-1] == "session.idle"


class Drop(Processor):
    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        return None if prompt.text == "drop" else prompt


async def test_a_processor_may_drop_a_prompt() -> None:
    run = make_run([{"text": "ok"}], "drop", "keep", processors=[Drop()])
    session = await drained(run)
    assert [data.content for data in session.of("user.message")] == ["keep"]


class Gate:
    """An agentStop hook that blocks with the given reasons, one a time."""

    def __init__(self, *reasons: str | None) -> None:
        self.reasons = list(reasons)
        self.active: list[bool] = []

    async def __call__(self, run: Run, active: bool) -> str | None:
        self.active.append(active)
        return self.reasons.pop(0) if self.reasons else None


@pytest.mark.proves("OUTER-09", "OUTER-10", "OUTER-12")
async def test_a_block_puts_its_reason_in_front_of_the_queue_and_the_loop_runs_again() -> None:
    gate = Gate("Run the tests first.")
    run = make_run(
        [{"text": "done"}, {"text": "tests pass"}, {"text": "later"}],
        "work",
        "queued before",
        processors=[StopGate(gate)],
    )
    session = await drained(run)
    asked = [data.content for data in session.of("user.message")]
    assert asked == ["work", "Run the tests first.", "queued before"]
    assert gate.active[:2] == [False, True]
    assert session.types().count("session.idle") == 1
    assert session.types()[-1] == "session.idle"


@pytest.mark.proves("OUTER-11")
async def test_a_block_without_a_reason_does_not_go_on() -> None:
    run = make_run([{"text": "done"}], "work", processors=[StopGate(Gate("", None))])
    session = await drained(run)
    assert len(session.of("user.message")) == 1


async def test_the_gate_gives_up_after_eight_blocks_in_a_row() -> None:
    gate = Gate(*["again"] * 50)
    run = make_run(
        {"replies": [], "otherwise": {"text": "still done"}}, "work", processors=[StopGate(gate)]
    )
    session = await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "agent_stop_block_limit"
    assert run.stop.exit_code == 3
    assert len(session.of("user.message")) == 1 + 8
    assert session.of("session.warning")[0].warning_type == "agent_stop_block_limit"


@pytest.mark.proves("OUTER-07")
async def test_the_gate_is_not_asked_while_the_model_still_calls_tools() -> None:
    gate = Gate("never")
    run = make_run(
        [{"tools": [call(text="a")]}] * 2,
        "go",
        tools=[EchoTool()],
        processors=[TurnLimit(1), StopGate(gate)],
    )
    await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "turn_limit"
    assert gate.active == []


@pytest.mark.proves("OUTER-07")
async def test_the_gate_is_not_asked_after_a_rejection() -> None:
    from trimtab.contracts.tool import ToolResult

    async def reject(args: Any) -> ToolResult:
        return ToolResult(text="no", kind="rejected")

    gate = Gate("never")
    run = make_run(
        [{"tools": [call(text="a")]}],
        "go",
        tools=[EchoTool(on_run=reject)],
        processors=[StopGate(gate)],
    )
    await drained(run)
    assert gate.active == []


async def test_a_steering_prompt_is_shown_before_the_next_call_of_the_same_run() -> None:
    run: Run

    async def steer(args: Any) -> None:
        run.inbox.put(Prompt(text="use tabs", mode="immediate", id=new_id()))

    run = make_run(
        [{"tools": [call(text="a")]}, {"text": "done"}],
        "go",
        tools=[EchoTool(on_run=steer)],
        processors=[Steering()],
    )
    session = await drained(run)
    first, second = session.of("user.message")
    assert (second.content, second.delivery) == ("use tabs", "steering")
    assert first.interaction_id == second.interaction_id
    last = run.agent.model.provider.requests[-1].messages  # type: ignore[attr-defined]
    assert last[-1].parts[0].text == "use tabs"


def autopilot(limit: int = 5) -> list[Processor]:
    return [Autopilot("You have not called task_complete.", limit)]


@pytest.mark.proves("AUTO-07", "AUTO-09")
async def test_autopilot_nudges_a_model_that_stops_and_says_so() -> None:
    run = make_run(
        [{"text": "planned"}, {"tools": [call("task_complete", text="did it")]}],
        "go",
        tools=[EchoTool("task_complete")],
        processors=autopilot(),
        mode="autopilot",
    )
    session = await drained(run)
    nudge = session.of("user.message")[1]
    assert nudge.content == ""
    assert nudge.transformed_content == "You have not called task_complete."
    assert nudge.is_autopilot_continuation
    assert session.of("session.info")[0].info_type == "autopilot_continuation"


@pytest.mark.parametrize(
    ("outcome", "reason", "told"),
    [("completed", "task_complete", "task_complete"), ("blocked", "blocked", "blocked")],
)
async def test_a_blocked_task_ends_the_run_as_incomplete_and_says_so(
    outcome: str, reason: str, told: str
) -> None:
    tool = EchoTool("task_complete")
    tool.spec.parameters["properties"]["outcome"] = {"type": "string"}
    run = make_run(
        [{"tools": [call("task_complete", text="x", outcome=outcome)]}],
        "go",
        tools=[tool],
        processors=autopilot(),
        mode="autopilot",
    )
    session = await drained(run)
    (complete,) = session.of("session.task_complete")
    assert (complete.success, complete.outcome) == (outcome == "completed", outcome)
    (stopped,) = session.of("session.autopilot_stopped")
    assert stopped.reason == told
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code) == (reason, 3 if reason == "blocked" else 0)


@pytest.mark.proves("EVT-14")
async def test_task_complete_ends_the_run_with_its_summary() -> None:
    tool = EchoTool("task_complete")
    tool.spec.parameters["properties"]["summary"] = {"type": "string"}
    run = make_run(
        [{"tools": [call("task_complete", text="x", summary="All green.")]}, {"text": "never"}],
        "go",
        tools=[tool],
        processors=autopilot(),
        mode="autopilot",
    )
    session = await drained(run)
    complete = session.of("session.task_complete")[0]
    assert (complete.success, complete.summary) == (True, "All green.")
    assert run.stop == Stop(reason="task_complete", message="All green.")
    assert len(run.agent.model.provider.requests) == 1  # type: ignore[attr-defined]


async def test_blocked_is_a_legal_way_to_end() -> None:
    tool = EchoTool("task_complete")
    tool.spec.parameters["properties"]["outcome"] = {"type": "string"}
    run = make_run(
        [{"tools": [call("task_complete", text="x", outcome="blocked")]}],
        "go",
        tools=[tool],
        processors=autopilot(),
        mode="autopilot",
    )
    session = await drained(run)
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code) == ("blocked", 3)
    assert session.of("session.task_complete")[0].success is False


@pytest.mark.proves("AUTO-10")
@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_the_cap_bounds_the_number_of_continuations(limit: int) -> None:
    run = make_run(
        {"replies": [], "otherwise": {"text": "thinking"}},
        "go",
        processors=autopilot(limit),
        mode="autopilot",
    )
    session = await drained(run)
    assert len(session.of("user.message")) == 1 + limit
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code) == ("continuation_cap", 3)


@pytest.mark.proves("AUTO-12")
async def test_without_autopilot_a_run_ends_after_one_answer() -> None:
    run = make_run([{"text": "done"}], "go", processors=autopilot())
    session = await drained(run)
    assert len(session.of("user.message")) == 1
    assert not session.of("session.task_complete")
    assert not session.of("session.info")


async def test_the_turn_limit_ends_a_run_before_the_call_that_would_exceed_it() -> None:
    run = make_run(
        {"replies": [], "otherwise": {"tools": [call(text="again")]}},
        "go",
        tools=[EchoTool()],
        processors=[TurnLimit(3)],
    )
    session = await drained(run)
    assert len(run.agent.model.provider.requests) == 3  # type: ignore[attr-defined]
    assert run.stop is not None
    assert (run.stop.reason, run.stop.exit_code) == ("turn_limit", 6)
    assert session.types()[-3:] == ["assistant.turn_end", "assistant.idle", "session.idle"]


@pytest.mark.proves("LOOP-21")
@pytest.mark.parametrize("status", [429, 503, 500])
async def test_failures_that_may_pass_are_tried_again(status: int) -> None:
    heard: list[tuple[int | None, int]] = []

    class Listener(Processor):
        async def on_request_error(self, run: Run, error: Any, attempt: int) -> bool:
            heard.append((error.status, attempt))
            return False

    run = make_run(
        [{"error": {"status": status}}, {"error": {"status": status}}, {"text": "at last"}],
        "go",
        processors=[Listener(), Retry(RetryPolicy(retries=5, delay=0.001))],
    )
    session = await drained(run)
    assert session.of("assistant.message")[0].content == "at last"
    assert heard == [(status, 0), (status, 1)]
    assert len(session.of("assistant.turn_retry")) == 2


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_failures_that_cannot_pass_are_not_tried_again(status: int) -> None:
    run = make_run(
        [{"error": {"status": status}}, {"text": "never"}],
        "go",
        processors=[Retry(RetryPolicy(retries=5, delay=0.001))],
    )
    with pytest.raises(ModelError):
        await drained(run)
    assert len(run.agent.model.provider.requests) == 1  # type: ignore[attr-defined]


async def test_a_call_cut_at_the_output_limit_is_asked_for_in_smaller_steps() -> None:
    """It ended the run, although the model could go on with shorter arguments."""
    retry = Retry(RetryPolicy(retries=0))
    run = make_run([{"text": "x"}], "go", processors=[retry])
    cut = ModelError("x", category="invalid", code="output_limit")
    assert [await retry.on_request_error(run, cut, attempt) for attempt in range(3)] == [
        True,
        True,
        False,
    ]
    assert len(run.session.of("user.message")) == 2  # type: ignore[attr-defined]


def test_back_off_grows_and_the_service_may_ask_for_more() -> None:
    retry = Retry(RetryPolicy(retries=5, delay=1.0, max_delay=8.0))
    for attempt, longest in enumerate([1, 2, 4, 8, 8]):
        assert longest / 2 <= retry.delay(ModelError("x"), attempt) <= longest
    assert retry.delay(ModelError("x", retry_after=30.0), 0) == 30.0
    assert retry.delay(ModelError("x", retry_after=1e9), 0) == RetryPolicy().max_wait


@pytest.mark.parametrize("reason", ["aborted", "budget", "rejected", "turn_limit"])
async def test_the_gate_is_asked_only_when_the_model_stopped_by_itself(reason: str) -> None:
    class Ends(Processor):
        async def before_request(self, run: Run) -> Stop | None:
            return Stop(reason=reason)

    gate = Gate("never")
    run = make_run([], "go", processors=[Ends(), StopGate(gate)])
    await drained(run)
    assert run.stop is not None
    assert run.stop.reason == reason
    assert gate.active == []
