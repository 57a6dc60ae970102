"""What a face shows of a session: parts, folded from events in one place."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from livekit import opened
from loopkit import call
from trimtab.contracts.events.assistant import AssistantMessageDelta
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.hook import HookEnd, HookStart
from trimtab.contracts.events.own import ToolRunning
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.events.question import ExitPlanModeRequested, UserInputRequested
from trimtab.contracts.events.session import SessionTitleChanged
from trimtab.contracts.events.subagent import SubagentCompleted, SubagentFailed, SubagentStarted
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.ids import new_id, timestamp
from trimtab.contracts.options import PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import EditsByOthers, HookRun, Part, ToolInvocation
from trimtab.tools.catalog import NAMES
from trimtab.tools.categories import CATEGORIES
from trimtab.transports.acp.tool_calls import find_kind
from trimtab.transports.headless.text import Style, TextOutput
from trimtab.transports.tui.cells import plain
from trimtab.transports.tui.transcript import Transcript
from trimtab.transports.tui.view import EditorView, Scene, lay_out

AGENT: dict[str, Any] = {
    "tool_call_id": "c1",
    "agent_name": "explore",
    "agent_display_name": "Explore",
}
START = ToolExecutionStart(tool_call_id="c1", tool_name="task", arguments={"description": "look"})
STARTED = SubagentStarted(**AGENT, agent_description="finds things")
HOOK: dict[str, Any] = {"hook_invocation_id": "h1", "hook_type": "preToolUse"}
HOST_EVENTS: list[tuple[list[EventData], dict[str, Any]]] = [
    ([AssistantMessageDelta(message_id="m", delta_content="Hi")], {"Markdown": {"text": "Hi"}}),
    ([START], {"ToolInvocation": {"state": "pending"}}),
    ([START, ToolRunning(tool_call_id="c1")], {"ToolInvocation": {"state": "running"}}),
    (
        [START, ToolExecutionComplete(tool_call_id="c1", success=True, result={"content": "ok"})],
        {"ToolInvocation": {"state": "completed", "output": "ok"}},
    ),
    (
        [START, PermissionRequested(request_id="r", permission_request={"kind": "shell"})],
        {"Question": {"kind": "permission", "done": False}},
    ),
    (
        [UserInputRequested(request_id="r", question="Which?", choices=["a", "b"])],
        {"Question": {"kind": "input"}},
    ),
    (
        [
            ExitPlanModeRequested(
                request_id="r",
                summary="s",
                plan_content="p",
                actions=["interactive"],
                recommended_action="interactive",
            )
        ],
        {"Question": {"kind": "plan"}},
    ),
    ([SessionTitleChanged(title="Fix it")], {"Title": {"text": "Fix it"}}),
    ([START, STARTED], {"Subagent": {"state": "running"}, "ToolInvocation": {"state": "pending"}}),
    ([START, STARTED, SubagentCompleted(**AGENT)], {"Subagent": {"state": "completed"}}),
    ([START, STARTED, SubagentFailed(**AGENT, error="e")], {"Subagent": {"error": "e"}}),
    ([HookStart(**HOOK)], {"HookRun": {"name": "preToolUse", "state": "running"}}),
    (
        [HookStart(**HOOK), HookEnd(**HOOK, success=False, error={"message": "no"})],
        {"HookRun": {"state": "failed", "error": "no"}},
    ),
]


def event(data: EventData) -> Event:
    return Event(
        type=data.wire_name,
        data=data,
        id=new_id(),
        timestamp=timestamp(),
        parent_id=None,
        ephemeral=data.is_ephemeral,
    )


@pytest.mark.proves("EVT-19", "VSC-06")
@pytest.mark.parametrize(("events", "expected"), HOST_EVENTS)
def test_every_event_that_a_host_handles_becomes_a_part(
    events: list[EventData], expected: dict[str, Any]
) -> None:
    fold = PartFold()
    parts: dict[str, Part] = {}
    for data in events:
        parts = {type(part).__name__: part for part in fold.apply(event(data))}
    for name, fields in expected.items():
        assert {field: getattr(parts[name], field) for field in fields} == fields


@pytest.mark.proves("VSC-06")
def test_a_sub_agent_enriches_the_call_it_works_for() -> None:
    fold = PartFold()
    for data in (START, STARTED):
        parts = fold.apply(event(data))
    (invocation,) = [part for part in parts if isinstance(part, ToolInvocation)]
    assert invocation.agent is not None
    assert (invocation.agent.name, invocation.agent.state) == ("Explore", "running")


HEADS = ("+++", "---")


class Page:
    """An `Output` that keeps what is written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, data: bytes) -> None:
        self.text += data.decode()


@pytest.mark.proves("VSC-06")
@pytest.mark.parametrize("order", [1, -1], ids=["asked first", "asked last"])
async def test_the_line_of_a_call_is_held_back_until_its_own_permission_is_decided(
    tmp_path: Path, order: int
) -> None:
    fold, transcript, notes = PartFold(), Transcript(), Page()
    text = TextOutput(notes, notes, Style())
    asked, answer = asyncio.Event(), asyncio.Event()

    def show(shown: Event, line: bytes) -> None:
        text.on_event(shown, line)
        for part in fold.apply(shown):
            transcript.apply(part)

    def rows() -> str:
        scene = Scene(columns=80, rows=40, editor=EditorView("", 0, "", ""))
        return "\n".join(plain(row) for row in lay_out(transcript, scene).rows)

    async def ask(request_id: str, request: Any) -> Answer:
        asked.set()
        await answer.wait()
        return Answer(kind="approve-once")

    calls = [
        call("bash", command="touch asked.txt", description="x"),
        call("bash", command="sleep 0.2; sleep 60", description="x"),
    ]
    replies = [{"tools": calls[::order]}, {"text": "done"}]
    allowed = PermissionOptions(allow=("shell(sleep:*)",))
    async with opened(tmp_path, replies, ask, permissions=allowed) as (live, watch, _):
        live.subscribe(show)
        live.send("go")
        async with asyncio.timeout(50):
            await asked.wait()
            await watch.saw("trimtab.tool_running")
        assert "sleep 60" in rows()
        assert "sleep 60" in notes.text
        assert "asked.txt" not in rows()
        assert "asked.txt" not in notes.text
        answer.set()
        await watch.saw("trimtab.tool_running", 2)
        await watch.saw("tool.execution_complete")
        assert "● bash touch asked.txt" in notes.text
        await live.abort()


@pytest.mark.proves("VSC-06", "EVT-19")
async def test_a_hook_that_fails_is_shown_with_its_name(tmp_path: Path) -> None:
    hooks = {"postToolUse": [{"type": "command", "bash": "echo broken >&2; exit 1"}]}
    (tmp_path / "home" / "hooks").mkdir(parents=True)
    text = json.dumps({"version": 1, "hooks": hooks})
    (tmp_path / "home" / "hooks" / "hooks.json").write_text(text)
    fold, transcript, seen = PartFold(), Transcript(), list[HookRun]()

    def show(shown: Event, _line: bytes) -> None:
        for part in fold.apply(shown):
            transcript.apply(part)
            seen.extend([part] if isinstance(part, HookRun) else [])

    replies = [{"tools": [call("bash", command="true", description="x")]}, {"text": "done"}]
    async with opened(tmp_path, replies) as (live, _, _provider):
        live.subscribe(show)
        await live.ask("go")
    mine = [hook for hook in seen if hook.name == "postToolUse"]
    assert [hook.state for hook in mine] == ["running", "failed"]
    shown = "\n".join(plain(line) for line in transcript.take(100))
    assert "! The hook postToolUse failed" in shown


@pytest.mark.proves("VSC-07")
async def test_edits_of_others_are_shown_as_theirs_and_not_in_the_diff_of_a_call(
    tmp_path: Path,
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("one\na\nb\ntwo\nc\nd\nthree\n")
    fold, transcript, notes = PartFold(), Transcript(), Page()
    text = TextOutput(notes, notes, Style())
    parts: list[Part] = []

    def show(shown: Event, line: bytes) -> None:
        text.on_event(shown, line)
        for part in fold.apply(shown):
            parts.append(part)
            transcript.apply(part)

    def edit(old: str, new: str) -> Any:
        return call("edit", path=str(file), old_str=old, new_str=new)

    replies = [
        {"tools": [edit("one", "1")]},
        {"text": "first"},
        {"tools": [edit("three", "3")]},
        {"text": "second"},
    ]
    async with opened(tmp_path, replies) as (live, _, _provider):
        live.subscribe(show)
        await live.ask("first")
        file.write_text(file.read_text().replace("two", "by hand"))
        await live.ask("second")
        diff = await live.run_command("/diff")
    (theirs,) = [part for part in parts if isinstance(part, EditsByOthers)]
    assert [edit.path for edit in theirs.edits] == [str(file)]
    calls = [part for part in parts if isinstance(part, ToolInvocation) and part.done]
    assert ["+by hand" in call.detail for call in calls] == [False, False]
    assert [len(call.edits) for call in calls] == [1, 1]
    assert "Changed by others meanwhile: notes.txt" in "\n".join(map(plain, transcript.take(100)))
    assert "1 file changed by others." in notes.text
    assert diff is not None
    assert [line for line in diff.split("\n") if line[:1] in "+-" and line[:3] not in HEADS] == [
        "-one",
        "+1",
        "-three",
        "+3",
    ]
    assert " by hand" in diff


@pytest.mark.proves("VSC-11")
def test_every_tool_has_a_category_by_which_displays_mark_its_calls() -> None:
    assert set(CATEGORIES) == {
        "file",
        "shell",
        "search",
        "agent",
        "interaction",
        "review",
        "data",
        "security",
    }
    named = [name for names in CATEGORIES.values() for name in names]
    assert len(named) == len(set(named))
    assert set(NAMES) <= set(named)

    def show(name: str, server: str | None = None) -> tuple[str, str]:
        start = ToolExecutionStart(tool_call_id="c", tool_name=name, mcp_server_name=server)
        (part,) = PartFold().apply(event(start))
        assert isinstance(part, ToolInvocation)
        return part.category, find_kind(part)

    assert show("edit") == ("file", "edit")
    assert show("bash") == show("stop_bash") == ("shell", "execute")
    assert show("glob") == ("search", "search")
    assert show("task") == show("stop_agent") == ("agent", "think")
    assert show("ask_user") == ("interaction", "other")
    assert show("store_memory") == ("data", "other")
    assert show("weather", "sky") == ("data", "other")
    assert show("create_pull_request", "github") == ("review", "other")
    assert show("codeql_checker") == ("security", "other")
    assert show("my_tool") == ("other", "other")
