"""Folds the events of a session into spans, by OpenTelemetry's conventions for generative AI.

The same events give the same spans, while the session runs and later from its log: times and ids
come from the events.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.hook import HookEnd, HookStart
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.session import SessionIdle, SessionShutdown
from trimtab.contracts.events.subagent import SubagentCompleted, SubagentFailed, SubagentStarted
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage

AGENT = "trimtab"


class Span(msgspec.Struct, kw_only=True):
    """A piece of work. Times are in nanoseconds since 1970; `error` is empty if it succeeded."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start: int
    end: int = 0
    attributes: JsonObject = {}
    error: str = ""


class SpanFold:
    """Builds the spans of one session. `captures` adds prompts, answers, arguments and results."""

    def __init__(self, session_id: str, *, captures: bool = False) -> None:
        self._session_id = session_id
        self._captures = captures
        self._root: Span | None = None
        self._agents: dict[str, Span] = {}
        self._tools: dict[str, Span] = {}
        self._others: dict[str, Span] = {}
        """Open spans of hooks and permission questions, by id."""
        self._chats: dict[str | None, Span] = {}
        """Model calls whose message has not arrived yet, by agent."""
        self._inputs: dict[str | None, list[JsonObject]] = {}
        self._last = 0
        self._answered = False

    def add(self, event: Event) -> Iterator[Span]:
        """Yield the spans that end with an event."""
        now = to_nanoseconds(event.timestamp)
        yield from self._end_chats(event)
        match event.data:
            case UserMessage() as message if event.agent_id is None:
                if self._answered:
                    yield from self._end_root(self._last)
                self._begin_root(event, now)
                self._note(None, "user", message.content)
            case ModelCall() as call:
                self._begin_chat(event, call, now)
            case AssistantMessage() as message:
                yield from self._end_chat(event.agent_id, message)
                self._answered = event.agent_id is None and not message.tool_requests
            case SessionIdle() | SessionShutdown():
                yield from self._end_root(now if event.type == "session.idle" else self._last)
            case _:
                yield from self._add_work(event, now)
        self._last = now

    def finish(self) -> Iterator[Span]:
        """Yield the spans that are still open, as if they ended with the last event."""
        yield from self._end_root(self._last)

    def _add_work(self, event: Event, now: int) -> Iterator[Span]:
        """Handle tools and agents, and what happens in them."""
        match event.data:
            case ToolExecutionStart() as start:
                self._tools[start.tool_call_id] = self._begin_tool(event, start, now)
            case ToolExecutionComplete(tool_call_id=call_id) as done:
                if tool := self._tools.pop(call_id, None):
                    yield self._end_tool(event, tool, done, now)
            case SubagentStarted() as started:
                parent = self._tools.get(started.tool_call_id) or self._owner(event)
                self._agents[event.agent_id or started.tool_call_id] = self._begin(
                    event, f"invoke_agent {started.agent_name}", now, parent
                )
            case SubagentCompleted() | SubagentFailed() as ended:
                key = event.agent_id or ended.tool_call_id
                if agent := self._agents.pop(key, None):
                    agent.end, agent.error = now, getattr(ended, "error", "")
                    name = {"gen_ai.agent.name": ended.agent_name}
                    agent.attributes |= self._operation("invoke_agent") | name
                    yield agent
            case _:
                yield from self._add_question(event, now)

    def _add_question(self, event: Event, now: int) -> Iterator[Span]:
        """Handle hooks and permission questions."""
        match event.data:
            case HookStart() as hook:
                span = self._begin(event, f"hook {hook.hook_type}", now, self._within(event, hook))
                span.attributes["trimtab.hook.type"] = hook.hook_type
                self._others[hook.hook_invocation_id] = span
            case HookEnd(hook_invocation_id=request_id) as hook_end:
                if other := self._others.pop(request_id, None):
                    other.end = now
                    other.error = "" if hook_end.success else "hook_failed"
                    yield other
            case PermissionRequested() as asked:
                kind = str(asked.permission_request.get("kind"))
                tool = self._tools.get(str(asked.permission_request.get("toolCallId")))
                span = self._begin(event, f"permission {kind}", now, tool or self._owner(event))
                span.attributes["trimtab.permission.kind"] = kind
                self._others[asked.request_id] = span
            case PermissionCompleted(request_id=request_id) as completed:
                if other := self._others.pop(request_id, None):
                    other.end = now
                    other.attributes["trimtab.permission.result"] = str(
                        completed.result.get("kind")
                    )
                    yield other

    def _owner(self, event: Event) -> Span:
        """Return the agent whose event this is."""
        if event.agent_id is not None and event.agent_id in self._agents:
            return self._agents[event.agent_id]
        return self._begin_root(event, to_nanoseconds(event.timestamp))

    def _within(self, event: Event, hook: HookStart) -> Span:
        given = hook.input if isinstance(hook.input, dict) else {}
        call_id = hook.parent_tool_call_id or given.get("toolCallId")
        return self._tools.get(str(call_id)) or self._owner(event)

    def _begin_root(self, event: Event, now: int) -> Span:
        if self._root is None:
            self._root = Span(
                name=f"invoke_agent {AGENT}",
                trace_id=derive(event.id, 16),
                span_id=derive(event.id + "/root", 8),
                parent_id=None,
                start=now,
                attributes=self._operation("invoke_agent") | {"gen_ai.agent.name": AGENT},
            )
            self._answered = False
        return self._root

    def _end_root(self, now: int) -> Iterator[Span]:
        root, self._root, self._answered = self._root, None, False
        if root is None:
            return
        for span in (
            *self._chats.values(),
            *self._others.values(),
            *self._tools.values(),
            *self._agents.values(),
        ):
            span.end = span.end or now
            yield span
        for spans in (self._chats, self._others, self._tools, self._agents):
            spans.clear()
        self._inputs.clear()
        root.end = now
        yield root

    def _begin(self, event: Event, name: str, now: int, parent: Span) -> Span:
        return Span(
            name=name,
            trace_id=parent.trace_id,
            span_id=derive(event.id, 8),
            parent_id=parent.span_id,
            start=now,
            attributes={"gen_ai.conversation.id": self._session_id},
        )

    def _begin_chat(self, event: Event, call: ModelCall, now: int) -> None:
        span = self._begin(event, f"chat {call.model}", now, self._owner(event))
        span.start, span.end = now - (call.duration_ms or 0) * 1_000_000, now
        usage = {
            "gen_ai.request.model": call.requested_model or call.model,
            "gen_ai.response.model": call.model,
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": call.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": call.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": call.reasoning_tokens,
            "trimtab.cost.usd": call.cost_usd,
            "trimtab.purpose": call.purpose,
        }
        span.attributes |= self._operation("chat")
        span.attributes |= {name: value for name, value in usage.items() if value is not None}
        if call.status != "success":
            span.error = str(call.status_code or call.status)
        self._chats[event.agent_id] = span

    def _end_chat(self, agent_id: str | None, message: AssistantMessage) -> Iterator[Span]:
        span = self._chats.pop(agent_id, None)
        given = self._inputs.pop(agent_id, [])
        if span is None:
            return
        if self._captures:
            answer = [
                {"role": "assistant", "parts": [{"type": "text", "content": message.content}]}
            ]
            span.attributes["gen_ai.input.messages"] = to_text(given)
            span.attributes["gen_ai.output.messages"] = to_text(answer)
        yield span

    def _end_chats(self, event: Event) -> Iterator[Span]:
        """Yield model calls that were not followed by a message: they failed."""
        if event.ephemeral or isinstance(event.data, AssistantMessage):
            return
        if span := self._chats.pop(event.agent_id, None):
            yield span

    def _begin_tool(self, event: Event, start: ToolExecutionStart, now: int) -> Span:
        span = self._begin(event, f"execute_tool {start.tool_name}", now, self._owner(event))
        span.attributes |= self._operation("execute_tool") | {
            "gen_ai.tool.name": start.tool_name,
            "gen_ai.tool.call.id": start.tool_call_id,
        }
        if self._captures and start.arguments is not None:
            span.attributes["gen_ai.tool.call.arguments"] = to_text(start.arguments)
        return span

    def _end_tool(self, event: Event, tool: Span, done: ToolExecutionComplete, now: int) -> Span:
        tool.end = now
        tool.error = "" if done.success else str((done.error or {}).get("code") or "failure")
        text = str((done.result or {}).get("content") or (done.error or {}).get("message") or "")
        self._note(event.agent_id, "tool", text)
        if self._captures:
            tool.attributes["gen_ai.tool.call.result"] = text
        return tool

    def _note(self, agent_id: str | None, role: str, text: str) -> None:
        """Remember a message that the next model call of an agent is shown."""
        if self._captures:
            message = {"role": role, "parts": [{"type": "text", "content": text}]}
            self._inputs.setdefault(agent_id, []).append(message)

    def _operation(self, name: str) -> JsonObject:
        return {
            "gen_ai.operation.name": name,
            "gen_ai.provider.name": AGENT,
            "gen_ai.conversation.id": self._session_id,
        }


def describe(span: Span, scope: Mapping[str, str]) -> JsonObject:
    """Return a span as one line of a file of spans."""
    return {
        "traceId": f"{span.trace_id:032x}",
        "spanId": f"{span.span_id:016x}",
        "parentSpanId": f"{span.parent_id:016x}" if span.parent_id else "",
        "type": "span",
        "name": span.name,
        "kind": 3 if span.name.startswith("chat ") else 1,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": span.attributes | ({"error.type": span.error} if span.error else {}),
        "status": {"code": 2, "message": span.error} if span.error else {"code": 0},
        "instrumentationScope": scope,
    }


def derive(text: str, size: int) -> int:
    """Return a number of so many bytes that is the same for the same text, and not 0."""
    return int.from_bytes(sha256(text.encode()).digest()[:size]) or 1


def to_nanoseconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000) * 1_000_000


def to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
