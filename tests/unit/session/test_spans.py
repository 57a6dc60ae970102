"""Spans of OpenTelemetry, folded from the events of a session."""

from typing import Any

from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.hook import HookEnd, HookStart
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.session import SessionIdle
from trimtab.contracts.events.subagent import SubagentCompleted, SubagentStarted
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.session.spans import Span, SpanFold, derive, describe, to_nanoseconds

SECOND = 1_000_000_000
START = to_nanoseconds("2026-01-01T00:00:00.000Z")


def fold(*events: EventData | tuple[str, EventData], captures: bool = False) -> list[Span]:
    """The finished spans; one second passes between two events."""
    spans, found = SpanFold("s", captures=captures), list[Span]()
    for number, given in enumerate(events):
        agent, data = given if isinstance(given, tuple) else (None, given)
        time = f"2026-01-01T00:00:{number:02d}.000Z"
        found += spans.add(
            Event(
                type=data.wire_name,
                data=data,
                id=f"e{number}",
                timestamp=time,
                parent_id=None,
                agent_id=agent,
            )
        )
    return found + list(spans.finish())


def call(**fields: Any) -> ModelCall:
    given = {"purpose": "main", "model": "m", "status": "success", "duration_ms": 500, **fields}
    return ModelCall(**given)


def reply(text: str = "", *tools: str) -> AssistantMessage:
    requests = [{"toolCallId": name, "name": "view", "arguments": {}} for name in tools]
    return AssistantMessage(message_id="m", content=text, tool_requests=requests)


ASKED = PermissionRequested(
    request_id="q", permission_request={"kind": "shell", "toolCallId": "c1"}
)
RUN = (
    UserMessage(content="the prompt"),  # 0
    call(input_tokens=11, output_tokens=2),
    reply("I look.", "c1"),
    ToolExecutionStart(tool_call_id="c1", tool_name="view", arguments={"path": "a"}),  # 3
    HookStart(hook_invocation_id="h", hook_type="preToolUse", input={"toolCallId": "c1"}),
    HookEnd(hook_invocation_id="h", hook_type="preToolUse", success=False),
    ASKED,  # 6
    PermissionCompleted(request_id="q", result={"kind": "approved"}),
    ToolExecutionComplete(tool_call_id="c1", success=True, result={"content": "the file"}),
    call(requested_model="alias"),  # 9
    reply("Done."),
    SessionIdle(),
)


def test_spans_nest_and_have_the_times_of_their_events() -> None:
    found = fold(*RUN)
    assert [span.name for span in found] == [
        "chat m",
        "hook preToolUse",
        "permission shell",
        "execute_tool view",
        "chat m",
        "invoke_agent trimtab",
    ]
    first, hook, permission, tool, second, root = found
    assert {span.trace_id for span in found} == {root.trace_id} == {derive("e0", 16)}
    assert len({span.span_id for span in found}) == 6
    assert root.parent_id is None
    assert first.parent_id == second.parent_id == tool.parent_id == root.span_id
    assert hook.parent_id == permission.parent_id == tool.span_id
    assert (root.start, root.end) == (START, START + 11 * SECOND)
    assert (tool.start, tool.end) == (START + 3 * SECOND, START + 8 * SECOND)
    assert (first.start, first.end) == (START + SECOND // 2, START + SECOND)
    assert (hook.error, permission.error, tool.error) == ("hook_failed", "", "")
    assert permission.attributes["trimtab.permission.result"] == "approved"
    assert first.attributes["gen_ai.usage.input_tokens"] == 11
    assert "gen_ai.usage.input_tokens" not in second.attributes
    assert second.attributes["gen_ai.request.model"] == "alias"
    assert all(span.attributes["gen_ai.conversation.id"] == "s" for span in found)


def test_texts_are_in_spans_only_if_they_are_asked_for() -> None:
    for captures in (False, True):
        first, _, _, tool, second, _ = fold(*RUN, captures=captures)
        texts = str([span.attributes for span in (first, tool, second)])
        for text in ("the prompt", "I look.", '{"path":"a"}', "the file", "Done."):
            assert (text in texts) is captures
    assert "the prompt" in first.attributes["gen_ai.input.messages"]
    assert "the file" in second.attributes["gen_ai.input.messages"]
    assert "the prompt" not in second.attributes["gen_ai.input.messages"]


def test_failures_have_their_reason() -> None:
    failed = call(status="error", status_code=500)
    denied = ToolExecutionComplete(
        tool_call_id="c1", success=False, error={"code": "denied", "message": "no"}
    )
    start = ToolExecutionStart(tool_call_id="c1", tool_name="view")
    found = fold(UserMessage(content="x"), failed, call(status="aborted"), start, denied)
    assert [(span.name, span.error) for span in found] == [
        ("chat m", "500"),
        ("chat m", "aborted"),
        ("execute_tool view", "denied"),
        ("invoke_agent trimtab", ""),
    ]


def test_a_sub_agents_work_is_inside_the_call_that_started_it() -> None:
    began = SubagentStarted(
        tool_call_id="c1", agent_name="task", agent_display_name="Task", agent_description="x"
    )
    ended = SubagentCompleted(tool_call_id="c1", agent_name="task", agent_display_name="Task")
    found = fold(
        UserMessage(content="x"),
        ToolExecutionStart(tool_call_id="c1", tool_name="task"),
        ("child", began),
        ("child", call()),
        ("child", reply("answer")),
        ("child", ended),
    )
    names = {span.name: span for span in found}
    agent = names["invoke_agent task"]
    assert names["chat m"].parent_id == agent.span_id
    assert agent.parent_id == names["execute_tool task"].span_id
    assert agent.attributes["gen_ai.agent.name"] == "task"


def test_a_second_prompt_begins_another_trace() -> None:
    found = fold(*RUN[:3], UserMessage(content="steering"), call(), reply("a"), *RUN[:1])
    assert [span.name for span in found].count("invoke_agent trimtab") == 2
    assert len({span.trace_id for span in found}) == 2


def test_a_span_is_written_in_the_words_of_opentelemetry() -> None:
    *_, chat, root = fold(UserMessage(content="x"), call(status="error"))
    line = describe(chat, {"name": "trimtab"})
    assert (line["kind"], line["status"]) == (3, {"code": 2, "message": "error"})
    assert line["attributes"]["error.type"] == "error"
    assert line["parentSpanId"] == f"{root.span_id:016x}"
    assert len(line["traceId"]) == 32
    top = describe(root, {})
    assert (top["kind"], top["status"], top["parentSpanId"]) == (1, {"code": 0}, "")
    assert top["startTimeUnixNano"] == str(START)
