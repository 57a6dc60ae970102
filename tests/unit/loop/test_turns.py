"""The inner loop: model call, tools, until none is asked for."""

import asyncio
from typing import Any

import pytest

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.messages import ToolMessage
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult


@pytest.mark.proves("LOOP-02", "LOOP-03", "LOOP-18", "EVT-06")
async def test_turns_count_from_zero_and_every_start_has_its_end() -> None:
    run = make_run(
        [{"tools": [call(text="a")]}, {"tools": [call(text="b")]}, {"text": "done"}],
        "go",
        tools=[EchoTool()],
    )
    session = await drained(run)
    marks = [(e.type, e.data.turn_id) for e in session.events if "turn_" in e.type]
    assert marks == [
        ("assistant.turn_start", "0"), ("assistant.turn_end", "0"),
        ("assistant.turn_start", "1"), ("assistant.turn_end", "1"),
        ("assistant.turn_start", "2"), ("assistant.turn_end", "2"),
    ]  # fmt: skip


async def test_turn_ids_restart_for_every_prompt() -> None:
    run = make_run([{"text": "one"}, {"text": "two"}], "first", "second")
    session = await drained(run)
    assert [data.turn_id for data in session.of("assistant.turn_start")] == ["0", "0"]
    first, second = session.of("user.message")
    assert first.interaction_id != second.interaction_id


class Recorder(Processor):
    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    async def before_request(self, run: Run) -> Stop | None:
        self.seen.append(self.name)
        run.session.emit(SessionInfo(info_type="seen", message=self.name))
        return None


@pytest.mark.proves("LOOP-04")
async def test_processors_run_in_order_before_every_call_and_may_emit() -> None:
    seen: list[str] = []
    run = make_run(
        [{"tools": [call(text="a")]}, {"text": "done"}],
        "go",
        tools=[EchoTool()],
        processors=[Recorder("a", seen), Recorder("b", seen)],
    )
    session = await drained(run)
    assert seen == ["a", "b", "a", "b"]
    types = session.types()
    assert types.index("session.info") < types.index("model.call_start")


@pytest.mark.proves("LOOP-06")
async def test_the_model_is_given_system_prompt_messages_options_and_tools() -> None:
    from trimtab.contracts.events.system import SystemMessage

    run = make_run([{"text": "hi"}], "go", tools=[EchoTool()], effort="high")
    run.session.emit(SystemMessage(role="system", content="Be brief."))
    await drained(run)
    request = run.agent.model.provider.requests[0]  # type: ignore[attr-defined]
    assert request.system == "Be brief."
    assert request.effort == "high"
    assert [spec.name for spec in request.tools] == ["echo"]
    assert len(request.messages) == 1


@pytest.mark.proves("LOOP-07", "LOOP-13")
async def test_the_assistant_message_comes_before_any_tool_runs_and_results_follow_it() -> None:
    run = make_run(
        [{"text": "I will", "tools": [call(text="a")]}, {"text": "done"}], "go", tools=[EchoTool()]
    )
    session = await drained(run)
    types = session.types()
    assert types.index("assistant.message") < types.index("tool.execution_start")
    last = run.agent.model.provider.requests[-1].messages  # type: ignore[attr-defined]
    assert [type(message).__name__ for message in last] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
    ]
    assert last[-1].text == "echo a"


@pytest.mark.proves("LOOP-11", "LOOP-12")
async def test_parallel_calls_run_side_by_side_and_are_recorded_as_they_finish() -> None:
    release = asyncio.Event()

    async def slow(args: Any) -> None:
        if args["text"] == "slow":
            async with asyncio.timeout(60):
                await release.wait()
        else:
            release.set()

    run = make_run(
        [{"tools": [call(text="slow"), call(text="fast")]}, {"text": "done"}],
        "go",
        tools=[EchoTool(on_run=slow)],
    )
    session = await drained(run)
    done = [data.result["content"] for data in session.of("tool.execution_complete")]
    assert done == ["echo fast", "echo slow"]
    starts = [i for i, t in enumerate(session.types()) if t == "tool.execution_start"]
    ends = [i for i, t in enumerate(session.types()) if t == "tool.execution_complete"]
    assert max(starts) < min(ends)
    results = [m.text for m in run.agent.model.provider.requests[-1].messages[2:]]  # type: ignore[attr-defined]
    assert results == ["echo slow", "echo fast"], "the model sees results in the order it asked"


@pytest.mark.proves("LOOP-11")
async def test_calls_run_one_after_another_when_parallel_tools_is_off() -> None:
    running = 0

    async def check(args: Any) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        running -= 1

    run = make_run(
        [{"tools": [call(text="1"), call(text="2"), call(text="3")]}, {"text": "done"}],
        "go",
        tools=[EchoTool(on_run=check)],
        parallel_tools=False,
    )
    session = await drained(run)
    assert all(data.success for data in session.of("tool.execution_complete"))


class Deny(Processor):
    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        if pending.args["text"] == "no":
            return ToolResult(text="Denied by a test.", kind="denied")
        return pending


@pytest.mark.proves("LOOP-09", "LOOP-10")
async def test_a_denied_call_gets_its_result_at_once_and_never_runs() -> None:
    tool = EchoTool()
    run = make_run(
        [{"tools": [call(text="no"), call(text="yes")]}, {"text": "done"}],
        "go",
        tools=[tool],
        processors=[Deny()],
    )
    session = await drained(run)
    assert [args["text"] for args in tool.runs] == ["yes"]
    denied = next(d for d in session.of("tool.execution_complete") if not d.success)
    assert denied.error == {"message": "Denied by a test.", "code": "denied"}


@pytest.mark.proves("LOOP-14", "LOOP-17", "OUTER-04")
async def test_a_rejected_result_ends_the_run_after_the_turn_without_another_model_call() -> None:
    async def reject(args: Any) -> ToolResult:
        return ToolResult(text="The user rejected this tool call.", kind="rejected")

    run = make_run(
        [{"tools": [call(text="a")]}, {"text": "never"}], "go", tools=[EchoTool(on_run=reject)]
    )
    session = await drained(run)
    assert run.stop is not None
    assert run.stop.reason == "rejected"
    assert len(run.agent.model.provider.requests) == 1  # type: ignore[attr-defined]
    assert session.types()[-3:] == ["assistant.turn_end", "assistant.idle", "session.idle"]


class Louder(Processor):
    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        return ToolResult(text=result.text.upper())


@pytest.mark.proves("LOOP-15")
async def test_processors_see_every_result_and_may_change_it() -> None:
    run = make_run(
        [{"tools": [call(text="a"), call(text="b")]}, {"text": "done"}],
        "go",
        tools=[EchoTool()],
        processors=[Louder()],
    )
    session = await drained(run)
    assert {d.result["content"] for d in session.of("tool.execution_complete")} == {
        "ECHO A",
        "ECHO B",
    }


@pytest.mark.proves("LOOP-16", "LOOP-17")
async def test_a_reply_without_tool_calls_ends_the_run() -> None:
    run = make_run([{"text": "Hello."}], "hi")
    session = await drained(run)
    assert run.stop == Stop(reason="end_turn")
    assert session.of("assistant.message")[0].content == "Hello."


async def test_an_unknown_tool_is_a_result_and_the_loop_goes_on() -> None:
    run = make_run(
        [{"tools": [call("nope", text="a")]}, {"text": "done"}], "go", tools=[EchoTool()]
    )
    session = await drained(run)
    assert (
        session.of("tool.execution_complete")[0].error["message"] == "Tool 'nope' does not exist."
    )
    assert run.stop == Stop(reason="end_turn")


async def test_invalid_arguments_are_a_result_that_names_the_field() -> None:
    tool = EchoTool()
    run = make_run([{"tools": [call()]}, {"text": "done"}], "go", tools=[tool])
    session = await drained(run)
    done = session.of("tool.execution_complete")[0]
    assert not done.success
    assert "text" in done.error["message"]
    assert not tool.runs


async def test_a_tool_that_crashes_is_a_result_and_does_not_stop_its_siblings() -> None:
    async def crash(args: Any) -> None:
        if args["text"] == "crash":
            raise RuntimeError("boom")

    run = make_run(
        [{"tools": [call(text="crash"), call(text="ok")]}, {"text": "done"}],
        "go",
        tools=[EchoTool(on_run=crash)],
    )
    session = await drained(run)
    results = {d.success for d in session.of("tool.execution_complete")}
    assert results == {True, False}
    failed = next(d for d in session.of("tool.execution_complete") if not d.success)
    assert "boom" in (failed.model_text or failed.error["message"])


async def test_cancelling_a_run_gives_open_calls_an_interrupted_result() -> None:
    started = asyncio.Event()

    async def hang(args: Any) -> None:
        started.set()
        await asyncio.sleep(600)

    run = make_run(
        [{"tools": [call(text="a"), call(text="b")]}], "go", tools=[EchoTool(on_run=hang)]
    )
    task = asyncio.create_task(drained(run))
    async with asyncio.timeout(60):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    session: Any = run.session
    codes = [d.error["code"] for d in session.of("tool.execution_complete")]
    assert codes == ["interrupted", "interrupted"]
    assert session.types()[-1] == "assistant.turn_end"


async def test_a_call_with_effects_waits_until_its_start_is_on_disk() -> None:
    run = make_run(
        [{"tools": [call(text="a")]}, {"text": "done"}], "go", tools=[EchoTool(mutates=True)]
    )
    assert (await drained(run)).syncs == 1
    run = make_run(
        [{"tools": [call(text="a")]}, {"text": "done"}], "go", tools=[EchoTool(mutates=False)]
    )
    assert (await drained(run)).syncs == 0


@pytest.mark.proves("LOOP-24", "EVT-18", "HEAD-12")
async def test_streaming_changes_deltas_only() -> None:
    def types(*, stream: bool) -> Any:
        return make_run(
            [
                {"text": "I will now do it", "tools": [call(text="a")]},
                {"text": "It is all done now."},
            ],
            "go",
            tools=[EchoTool()],
            stream=stream,
        )

    streamed = (await drained(types(stream=True))).types()
    plain = (await drained(types(stream=False))).types()
    assert "assistant.message_delta" in streamed
    assert "assistant.message_delta" not in plain
    deltas = {"assistant.message_delta", "assistant.message_start"}
    assert [t for t in streamed if t not in deltas] == plain


@pytest.mark.proves("LOOP-01")
async def test_everything_a_run_does_comes_out_as_typed_events() -> None:
    run = make_run([{"tools": [call(text="a")]}, {"text": "done"}], "go", tools=[EchoTool()])
    session = await drained(run)
    assert all(type(event.data).wire_name == event.type for event in session.events)
    assert session.types()[0] == "user.message"


@pytest.mark.proves("LOOP-25")
@pytest.mark.parametrize(
    ("kind", "success"),
    [("success", True), ("failure", False), ("denied", False), ("rejected", False)],
)
async def test_a_result_has_a_kind_and_a_text_for_the_model(kind: Any, success: bool) -> None:
    async def end(args: Any) -> ToolResult:
        return ToolResult(text=f"It was a {kind}.", kind=kind)

    run = make_run([{"tools": [call(text="a")]}, "done"], "go", tools=[EchoTool(on_run=end)])
    session = await drained(run)
    (complete,) = session.of("tool.execution_complete")
    assert complete.success is success
    texts = [
        message.text
        for message in run.session.conversation.messages
        if isinstance(message, ToolMessage)
    ]
    assert texts == [f"It was a {kind}."]


async def test_a_prompt_says_whether_the_agent_was_idle_when_it_came() -> None:
    session = await drained(make_run(["one", "two", "three"], "a", "b", "c"))
    delivered = [message.delivery for message in session.of("user.message")]
    assert delivered == ["idle", "queued", "queued"]
