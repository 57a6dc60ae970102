"""The calls of one reply, and what their events say about them."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from loopkit import EchoTool, call, change_agent, drained, make_run
from trimtab.contracts.mcp import Origin
from trimtab.contracts.messages import INTERRUPTED, Image, ToolCall
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import FileChange, ShellEnd, ToolResult
from trimtab.loop.execute import MAX_ERROR_LENGTH, describe_origin, execute


def echo(text: str, call_id: str = "c1", name: str = "echo") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=msgspec.json.encode({"text": text}).decode())


def returning(result: ToolResult) -> EchoTool:
    async def give(args: Any) -> ToolResult:
        return result

    return EchoTool(on_run=give)


def of(run: Run, kind: str) -> list[Any]:
    return run.session.of(kind)  # type: ignore[attr-defined, no-any-return]


class Stages(Processor):
    """Notes the stages it sees; may answer instead of the tool."""

    def __init__(self, name: str, seen: list[str], verdict: ToolResult | None = None) -> None:
        self._name, self._seen, self._verdict = name, seen, verdict

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        self._seen.append(f"{self._name} before")
        return self._verdict or pending

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        self._seen.append(f"{self._name} after")
        return msgspec.structs.replace(result, text=result.text + f" {self._name}")


@pytest.mark.parametrize(("title", "shown"), [("Echo it", "Echo it"), ("", None)])
def test_events_of_a_servers_tool_name_the_server_and_the_tool(
    title: str, shown: str | None
) -> None:
    tool = EchoTool("small-echo")
    tool.origin = Origin(  # type: ignore[attr-defined]
        server="small", tool="echo", transport="stdio", source="user", title=title
    )
    assert describe_origin(tool) == {
        "mcp_server_name": "small",
        "mcp_tool_name": "echo",
        "mcp_transport": "stdio",
        "mcp_config_source": "user",
        "tool_title": shown,
    }


def test_events_of_other_tools_name_no_server() -> None:
    assert describe_origin(EchoTool()) == {}
    assert describe_origin(None) == {}


async def test_images_of_results_follow_all_results_and_are_named_if_they_have_a_name() -> None:
    async def look(args: Any) -> ToolResult:
        name = "a.png" if args["text"] == "named" else None
        return ToolResult(
            text="seen", images=(Image(data="aGk=", mime_type="image/png", name=name),)
        )

    calls = [call(text="named"), call(text="nameless")]
    run = make_run([{"tools": calls}, "done"], "go", tools=[EchoTool(on_run=look)])
    session = await drained(run)
    shown = session.of("user.message")[1:]
    assert [message.content for message in shown] == ["Image file at path a.png", "Image"]
    assert [message.attachments[0]["displayName"] for message in shown] == ["a.png", None]
    types = session.types()
    last = len(types) - 1 - types[::-1].index("tool.execution_complete")
    assert types.index("user.message", 2) > last


async def test_the_start_of_a_call_says_what_was_asked_for_and_by_which_model() -> None:
    run = make_run([], tools=[EchoTool()])
    run.turn = 5
    await execute(run, [echo("hi")])
    (start,), (running,) = of(run, "tool.execution_start"), of(run, "trimtab.tool_running")
    assert (start.tool_call_id, start.tool_name) == ("c1", "echo")
    assert (start.arguments, start.model, start.turn_id) == ({"text": "hi"}, "scripted", "5")
    assert running.tool_call_id == "c1"


async def test_a_successful_call_is_recorded_with_all_that_its_tool_reports() -> None:
    result = ToolResult(
        text="for the model",
        detail="for a person",
        changes=(
            FileChange(path="new.py", lines_added=3, lines_removed=0, created=True),
            FileChange(path="old.py", lines_added=1, lines_removed=2),
        ),
        telemetry={"properties": {"a": "b"}},
        sandboxed=True,
        shell=ShellEnd(exit_code=0, duration_ms=12),
    )
    run = make_run([], tools=[returning(result)])
    run.turn, run.interaction_id = 5, "i1"
    assert await execute(run, [echo("hi")]) == [result]
    (done,) = of(run, "tool.execution_complete")
    assert (done.tool_call_id, done.success, done.error) == ("c1", True, None)
    assert done.result == {"content": "for the model", "detailedContent": "for a person"}
    assert (done.model, done.turn_id, done.interaction_id) == ("scripted", "5", "i1")
    assert done.file_edits == [
        {"kind": "create", "path": "new.py", "linesAdded": 3, "linesRemoved": 0},
        {"kind": "edit", "path": "old.py", "linesAdded": 1, "linesRemoved": 2},
    ]
    assert done.tool_telemetry == {"properties": {"a": "b"}}
    assert (done.sandboxed, done.model_text) == (True, None)
    assert done.shell_execution == {"exitCode": 0, "durationMs": 12}


async def test_a_plain_result_is_its_own_detail_and_claims_nothing_else() -> None:
    run = make_run([], tools=[EchoTool()])
    await execute(run, [echo("hi")])
    (done,) = of(run, "tool.execution_complete")
    assert done.result == {"content": "echo hi", "detailedContent": "echo hi"}
    assert (done.file_edits, done.tool_telemetry, done.shell_execution) == (None, None, None)
    assert done.sandboxed is None


@pytest.mark.parametrize("kind", ["failure", "denied", "rejected"])
@pytest.mark.parametrize("summary", [None, "In short."])
async def test_a_failed_call_has_an_error_and_keeps_the_words_for_the_model(
    kind: Any, summary: str | None
) -> None:
    run = make_run([], tools=[returning(ToolResult(text="Long.", kind=kind, summary=summary))])
    await execute(run, [echo("hi")])
    (done,) = of(run, "tool.execution_complete")
    assert (done.success, done.result) == (False, None)
    assert done.error == {"message": summary or "Long.", "code": kind}
    assert done.model_text == ("Long." if summary else None)


async def test_processors_see_a_call_in_order_before_and_after_the_tool() -> None:
    seen: list[str] = []
    run = make_run(
        [], tools=[EchoTool()], processors=[Stages("first", seen), Stages("second", seen)]
    )
    (result,) = await execute(run, [echo("hi")])
    assert seen == ["first before", "second before", "first after", "second after"]
    assert result.text == "echo hi first second"


async def test_a_verdict_of_a_processor_replaces_the_rest_of_the_call() -> None:
    seen: list[str] = []
    no = ToolResult(text="No.", kind="denied")
    tool = EchoTool()
    run = make_run([], tools=[tool], processors=[Stages("first", seen, no), Stages("second", seen)])
    assert await execute(run, [echo("hi")]) == [no]
    assert (seen, tool.runs) == (["first before"], [])
    assert of(run, "trimtab.tool_running") == []


@pytest.mark.parametrize("mutates", [True, False])
async def test_the_log_is_on_disk_before_a_call_changes_anything(mutates: bool) -> None:
    synced: list[int] = []
    run = make_run([])

    async def look(args: Any) -> None:
        synced.append(run.session.syncs)  # type: ignore[attr-defined]

    change_agent(run, tools={"echo": EchoTool(on_run=look, mutates=mutates)})
    await execute(run, [echo("hi")])
    assert synced == [1 if mutates else 0]


@pytest.mark.parametrize(
    ("parallel", "order"),
    [(True, ["a", "b", "a ends", "b ends"]), (False, ["a", "a ends", "b", "b ends"])],
)
async def test_calls_run_one_by_one_for_a_model_that_makes_no_parallel_calls(
    parallel: bool, order: list[str]
) -> None:
    seen: list[str] = []

    async def note(args: Any) -> None:
        seen.append(args["text"])
        for _ in range(3):
            await asyncio.sleep(0)
        seen.append(f"{args['text']} ends")

    run = make_run([], tools=[EchoTool(on_run=note)], parallel_tools=parallel)
    results = await execute(run, [echo("a", "c1"), echo("b", "c2")])
    assert seen == order
    assert [result.text for result in results] == ["echo a", "echo b"]
    assert [start.tool_call_id for start in of(run, "tool.execution_start")] == ["c1", "c2"]


@pytest.mark.parametrize("advice", ["", "Use echo."])
async def test_a_tool_that_does_not_exist_is_a_failed_call_with_advice(advice: str) -> None:
    seen: list[str] = []
    run = make_run([], tools=[EchoTool()], processors=[Stages("p", seen)])
    parser = msgspec.structs.replace(run.agent.parser, advise=lambda _: advice)
    change_agent(run, parser=parser, pipeline=run.agent.pipeline)
    (result,) = await execute(run, [echo("hi", name="ecko")])
    told = f"Tool 'ecko' does not exist. {advice}".rstrip()
    assert (result.kind, result.text) == ("failure", f"{told} p")
    assert seen == ["p before", "p after"], "processors see the call like any other"


async def test_a_call_by_another_name_is_translated_before_it_is_recorded() -> None:
    tool = EchoTool()
    run = make_run([], tools=[tool])
    parser = msgspec.structs.replace(
        run.agent.parser, translate=lambda call, _: msgspec.structs.replace(call, name="echo")
    )
    change_agent(run, parser=parser)
    await execute(run, [echo("hi", name="Shout")])
    assert tool.runs == [{"text": "hi"}]
    assert of(run, "tool.execution_start")[0].tool_name == "echo"


async def test_a_crash_of_a_tool_is_its_result_and_long_texts_are_cut() -> None:
    async def crash(args: Any) -> None:
        raise RuntimeError("because " + "x" * 9_000)

    run = make_run([], tools=[EchoTool(on_run=crash)])
    (result,) = await execute(run, [echo("y" * 9_000)])
    assert result.kind == "failure"
    assert result.text.startswith("Failed to execute `echo` tool with arguments: {")
    assert "due to error: RuntimeError: because xxx" in result.text
    assert result.text.count("left out]") == 2
    assert len(result.text) < 2 * MAX_ERROR_LENGTH + 300
    (done,) = of(run, "tool.execution_complete")
    assert done.error["message"].startswith("because x")
    assert done.model_text == result.text


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("printed", ["half a line", ""])
async def test_an_interrupted_call_is_recorded_with_what_it_printed(
    printed: str, suspended: bool
) -> None:
    began = asyncio.Event()

    async def hang(args: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    run = make_run(
        [],
        tools=[EchoTool(on_run=hang)],
        tool_context=lambda _run, _id: SimpleNamespace(printed=printed),
    )
    run.suspended = suspended
    task = asyncio.ensure_future(execute(run, [echo("hi")]))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    assert type(cancelled.value) is asyncio.CancelledError
    done = of(run, "tool.execution_complete")
    if suspended:
        assert done == [], "the call is run again when the session goes on"
        return
    assert done[0].error == {"message": INTERRUPTED, "code": "interrupted"}
    assert done[0].result == ({"content": printed} if printed else None)


async def test_arguments_that_cannot_be_read_are_told_without_asking_processors() -> None:
    seen: list[str] = []
    run = make_run([], tools=[EchoTool()], processors=[Stages("p", seen)])
    broken = ToolCall(id="c1", name="echo", arguments='{"text": ')
    (result,) = await execute(run, [broken])
    assert (result.kind, seen) == ("failure", [])
