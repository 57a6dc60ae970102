"""Spans of OpenTelemetry, folded from the events of a session."""

from typing import Any

from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.hook import HookEnd, HookStart
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.session import SessionIdle, SessionShutdown
from trimtab.contracts.events.subagent import SubagentCompleted, SubagentFailed, SubagentStarted
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.session.spans import Span, SpanFold, derive, describe, to_nanoseconds, to_text

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


STARTED = SubagentStarted(
    tool_call_id="c1", agent_name="task", agent_display_name="Task", agent_description="x"
)
SHUTDOWN = SessionShutdown(
    shutdown_type="routine",
    total_api_duration_ms=0,
    session_start_time=0,
    code_changes={},
    model_metrics={},
)
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


def times(span: Span) -> tuple[int, int]:
    """Return the seconds since the first event at which a span begins and ends."""
    return (span.start - START) // SECOND, (span.end - START) // SECOND


def test_everything_that_is_open_ends_with_the_last_event() -> None:
    found = fold(
        UserMessage(content="x"),
        ToolExecutionStart(tool_call_id="c1", tool_name="task"),
        ("child", STARTED),
        ("child", HookStart(hook_invocation_id="h", hook_type="preToolUse")),
        ASKED,
        ("child", call()),
    )
    assert {span.name: times(span) for span in found} == {
        "invoke_agent trimtab": (0, 5),
        "execute_tool task": (1, 5),
        "invoke_agent task": (2, 5),
        "hook preToolUse": (3, 5),
        "permission shell": (4, 5),
        "chat m": (4, 5),
    }
    assert found[-1].name == "invoke_agent trimtab"


def test_what_ended_with_a_session_is_not_ended_again() -> None:
    start = ToolExecutionStart(tool_call_id="c1", tool_name="view")
    done = ToolExecutionComplete(tool_call_id="c1", success=True)
    found = fold(UserMessage(content="x"), start, SessionIdle(), UserMessage(content="y"), done)
    names = [span.name for span in found]
    assert names == ["execute_tool view", "invoke_agent trimtab", "invoke_agent trimtab"]
    assert [times(span) for span in found] == [(1, 2), (0, 2), (3, 4)]


def test_idle_ends_a_run_now_and_a_shutdown_where_its_last_event_was() -> None:
    idle = fold(UserMessage(content="x"), reply("a"), SessionIdle())
    assert [times(span) for span in idle] == [(0, 2)]
    shut = fold(UserMessage(content="x"), reply("a"), SHUTDOWN)
    assert [times(span) for span in shut] == [(0, 1)]
    assert fold(SessionIdle(), SHUTDOWN) == []


def test_a_prompt_after_an_answer_ends_the_run_where_the_answer_was() -> None:
    found = fold(UserMessage(content="x"), reply("a"), UserMessage(content="y"), reply("b"))
    assert [times(span) for span in found] == [(0, 1), (2, 3)]
    steered = fold(UserMessage(content="x"), reply("", "c1"), UserMessage(content="y"), reply("b"))
    assert [times(span) for span in steered] == [(0, 3)]
    theirs = fold(UserMessage(content="x"), ("child", reply("a")), UserMessage(content="y"))
    assert [times(span) for span in theirs] == [(0, 2)]


def test_the_prompt_of_a_sub_agent_begins_no_run() -> None:
    assert fold(("child", UserMessage(content="x"))) == []


def test_work_of_an_agent_that_nobody_started_belongs_to_the_run() -> None:
    found = fold(UserMessage(content="x"), ("stranger", call()), ("stranger", reply("a")))
    chat, root = found
    assert chat.parent_id == root.span_id


def test_a_sub_agent_that_failed_says_why() -> None:
    failed = SubagentFailed(
        tool_call_id="c1", agent_name="task", agent_display_name="Task", error="too slow"
    )
    agent, root = fold(UserMessage(content="x"), STARTED, failed)
    assert (agent.name, agent.error, times(agent)) == ("invoke_agent task", "too slow", (1, 2))
    assert agent.parent_id == root.span_id
    assert agent.attributes["gen_ai.operation.name"] == "invoke_agent"


def test_an_end_without_a_beginning_is_no_span() -> None:
    ends = (
        ToolExecutionComplete(tool_call_id="c1", success=True),
        SubagentCompleted(tool_call_id="c1", agent_name="task", agent_display_name="Task"),
        HookEnd(hook_invocation_id="h", hook_type="preToolUse", success=True),
        PermissionCompleted(request_id="q", result={"kind": "approved"}),
        reply("a"),
    )
    assert fold(*ends) == []


def test_a_hook_belongs_to_the_call_it_was_run_for() -> None:
    start = ToolExecutionStart(tool_call_id="c1", tool_name="view")
    for fields in ({"parent_tool_call_id": "c1"}, {"input": {"toolCallId": "c1"}}):
        hook = HookStart(hook_invocation_id="h", hook_type="preToolUse", **fields)
        end = HookEnd(hook_invocation_id="h", hook_type="preToolUse", success=True)
        found = {span.name: span for span in fold(UserMessage(content="x"), start, hook, end)}
        assert found["hook preToolUse"].parent_id == found["execute_tool view"].span_id
        assert found["hook preToolUse"].error == ""
        assert found["hook preToolUse"].attributes["trimtab.hook.type"] == "preToolUse"
    other = HookStart(hook_invocation_id="h", hook_type="stop", input=["toolCallId"])
    found = {span.name: span for span in fold(UserMessage(content="x"), start, other)}
    assert found["hook stop"].parent_id == found["invoke_agent trimtab"].span_id


def test_a_model_call_without_a_message_ends_with_the_next_durable_event() -> None:
    spans = SpanFold("s")

    def add(data: EventData, number: int, *, ephemeral: bool = False) -> list[str]:
        time = f"2026-01-01T00:00:{number:02d}.000Z"
        event = Event(type=data.wire_name, data=data, id=f"e{number}", timestamp=time,
                      parent_id=None, ephemeral=ephemeral)  # fmt: skip
        return [span.name for span in spans.add(event)]

    assert add(UserMessage(content="x"), 0) == []
    assert add(call(status="error"), 1) == []
    assert add(HookStart(hook_invocation_id="h", hook_type="a"), 2, ephemeral=True) == []
    assert add(HookStart(hook_invocation_id="i", hook_type="b"), 3) == ["chat m"]


def test_a_model_call_has_all_its_figures() -> None:
    figures = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "cache_write_tokens": 4,
        "reasoning_tokens": 5,
        "cost_usd": 0.5,
    }
    chat, _ = fold(UserMessage(content="x"), call(**figures, duration_ms=None), reply("a"))
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "trimtab",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m",
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "trimtab.cost.usd": 0.5,
        "trimtab.purpose": "main",
    }
    assert (chat.start, chat.end) == (START + SECOND, START + SECOND)
    assert chat.error == ""


def captured(*events: EventData | tuple[str, EventData]) -> dict[str, Any]:
    found = fold(UserMessage(content="x"), *events, captures=True)
    return next(span.attributes for span in found if span.name == "execute_tool view")


def test_the_text_of_a_failed_call_is_its_message() -> None:
    start = ToolExecutionStart(tool_call_id="c1", tool_name="view")
    result = "gen_ai.tool.call.result"
    for fields, text, error in (
        ({"success": False, "error": {"message": "no"}}, "no", "failure"),
        ({"success": False}, "", "failure"),
        ({"success": True, "result": {"content": "yes"}}, "yes", ""),
        ({"success": True, "result": {"content": ""}}, "", ""),
    ):
        done = ToolExecutionComplete(tool_call_id="c1", **fields)
        assert captured(start, done)[result] == text
        (tool, _) = fold(UserMessage(content="x"), start, done)
        assert tool.error == error
    assert "gen_ai.tool.call.arguments" not in captured(start)
    given = ToolExecutionStart(tool_call_id="c1", tool_name="view", arguments={"a": 1})
    assert captured(given)["gen_ai.tool.call.arguments"] == '{"a":1}'


def test_messages_of_one_run_are_not_shown_in_the_next() -> None:
    found = fold(
        UserMessage(content="first"), SessionIdle(), UserMessage(content="second"), call(),
        reply("a"), captures=True,
    )  # fmt: skip
    chat = next(span for span in found if span.name == "chat m")
    assert "second" in chat.attributes["gen_ai.input.messages"]
    assert "first" not in chat.attributes["gen_ai.input.messages"]


def test_ids_have_the_size_that_opentelemetry_wants() -> None:
    assert derive("e0", 8).bit_length() > 56
    assert derive("e0", 16).bit_length() > 120
    assert derive("e0", 8) == derive("e0", 16) >> 64
    assert derive("x", 0) == 1, "an id is never 0"
    *_, root = found = fold(*RUN)
    assert {span.span_id.bit_length() for span in found} <= set(range(57, 65))
    assert root.span_id == derive("e0/root", 8)
    assert found[0].span_id == derive("e1", 8)


def test_times_are_read_to_the_millisecond_and_texts_left_alone() -> None:
    assert to_nanoseconds("1970-01-01T00:00:01.250Z") == 1_250_000_000
    assert to_text("as it is") == "as it is"
    assert to_text([1, {"a": 2}]) == '[1,{"a":2}]'
