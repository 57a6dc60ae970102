"""Folds the events of a session into the parts that faces render.

To display a new event, add a row to `CASES`, or to `NOTICES` beside it; faces never see events.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from trimtab.contracts.events.assistant import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantReasoning,
    AssistantReasoningDelta,
    AssistantUsage,
)
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.contracts.events.context import (
    SessionCompactionComplete,
    SessionCompactionStart,
    SessionUsageInfo,
)
from trimtab.contracts.events.envelope import Event, EventData, JsonObject
from trimtab.contracts.events.hook import HookEnd, HookStart
from trimtab.contracts.events.own import (
    ModelCall,
    PromptChanged,
    PromptQueued,
    PromptWithdrawn,
    ToolRunning,
)
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.question import (
    ElicitationCompleted,
    ElicitationRequested,
    ExitPlanModeCompleted,
    ExitPlanModeRequested,
    UserInputCompleted,
    UserInputRequested,
)
from trimtab.contracts.events.session import (
    SessionModeChanged,
    SessionModelChange,
    SessionTitleChanged,
    SessionTodosChanged,
)
from trimtab.contracts.events.subagent import SubagentCompleted, SubagentFailed, SubagentStarted
from trimtab.contracts.events.tool import (
    ToolExecutionComplete,
    ToolExecutionPartialResult,
    ToolExecutionProgress,
    ToolExecutionStart,
    ToolShellOutput,
    ToolUserRequested,
)
from trimtab.contracts.events.user import UserMessage
from trimtab.host.calls import describe_call, failure_state, find_exit_code
from trimtab.host.notices import NOTICES
from trimtab.host.parts import (
    Compaction,
    ContextUsage,
    EditsByOthers,
    FileEdit,
    HookRun,
    Markdown,
    ModeInUse,
    ModelInUse,
    Notice,
    Part,
    Question,
    QueuedPrompt,
    Reasoning,
    ReplyEnded,
    Subagent,
    Title,
    TodosChanged,
    ToolInvocation,
    UserPrompt,
)
from trimtab.tools.categories import find_category

OUTPUT_KEPT = 64 * 1024
"""The number of trailing characters of a running call's output that its part carries."""


Case = Callable[["PartFold", Event, Any], Sequence[Part]]


class PartFold:
    """Folds events into parts. Pure: no clock, no disk; a replayed log yields the same parts.

    `apply` returns the parts an event adds or replaces, in display order.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._messages: dict[str | None, str] = {}
        """The id of the message that each agent is writing."""
        self._calls: dict[tuple[str | None, str], ToolInvocation] = {}
        self._requested: set[str] = set()
        """Ids of calls that a person asked for."""
        self._questions: dict[str, Question] = {}
        self._agents: dict[str, Subagent] = {}
        self._hooks: dict[str, HookRun] = {}
        self._queue: dict[str, QueuedPrompt] = {}

    @property
    def open_questions(self) -> list[Question]:
        """Unanswered questions, oldest first."""
        return list(self._questions.values())

    @property
    def open_calls(self) -> list[ToolInvocation]:
        """Tool calls that have not ended."""
        return [call for call in self._calls.values() if not call.ended]

    @property
    def waiting_prompts(self) -> list[QueuedPrompt]:
        """Prompts that have not been sent to the model yet."""
        return list(self._queue.values())

    def apply(self, event: Event) -> Sequence[Part]:
        kind = type(event.data)
        if kind in NOTICES:
            return self.notice(event, event.data)
        case = CASES.get(kind)
        return case(self, event, event.data) if case is not None else ()

    def user_message(self, event: Event, data: UserMessage) -> Sequence[Part]:
        prompt = UserPrompt(
            key=data.message_id or event.id,
            agent_id=event.agent_id,
            timestamp=event.timestamp,
            text=data.content,
            source=data.source or "",
            delivery=data.delivery or "",
            attachments=tuple(data.attachments or ()),
        )
        waiting = self._queue.pop(data.message_id or "", None)
        if waiting is None:
            return (prompt,)
        return msgspec.structs.replace(waiting, state="sent", done=True), prompt

    def prompt_queued(self, event: Event, data: PromptQueued) -> Sequence[Part]:
        if event.agent_id or data.notification:
            return ()
        waiting = QueuedPrompt(
            key=f"queue {data.message_id}",
            timestamp=event.timestamp,
            done=False,
            text=data.display or data.text,
            steering=data.mode == "immediate",
        )
        self._queue[data.message_id] = waiting
        return (waiting,)

    def prompt_changed(self, event: Event, data: PromptChanged) -> Sequence[Part]:
        waiting = None if event.agent_id else self._queue.get(data.message_id)
        if waiting is None:
            return ()
        changes: JsonObject = {"steering": waiting.steering or data.mode == "immediate"}
        if data.text is not None:
            changes["text"] = data.display or data.text
        self._queue[data.message_id] = msgspec.structs.replace(waiting, **changes)
        return (self._queue[data.message_id],)

    def prompt_withdrawn(self, _event: Event, data: PromptWithdrawn) -> Sequence[Part]:
        waiting = self._queue.pop(data.message_id, None)
        if waiting is None:
            return ()
        return (msgspec.structs.replace(waiting, state="withdrawn", done=True),)

    def message_delta(self, event: Event, data: AssistantMessageDelta) -> Sequence[Part]:
        text = self._texts.get(data.message_id, "") + data.delta_content
        self._texts[data.message_id] = text
        self._messages[event.agent_id] = data.message_id
        return (self._markdown(event, data.message_id, text, data.delta_content, done=False),)

    def message(self, event: Event, data: AssistantMessage) -> Sequence[Part]:
        shown = self._texts.pop(data.message_id, "")
        self._messages.pop(event.agent_id, None)
        if not data.content and not shown:
            return ()
        rest = data.content.removeprefix(shown)
        return (self._markdown(event, data.message_id, data.content, rest, done=True),)

    def model_call(self, event: Event, data: ModelCall) -> Sequence[Part]:
        """End a message that was stopped or failed; a log has its text nowhere else."""
        key = self._messages.pop(event.agent_id, "")
        if not data.partial_content:
            return ()
        rest = data.partial_content.removeprefix(self._texts.pop(key, ""))
        return (self._markdown(event, key or event.id, data.partial_content, rest, done=True),)

    def _markdown(self, event: Event, key: str, text: str, delta: str, *, done: bool) -> Markdown:
        return Markdown(
            key=key,
            agent_id=event.agent_id,
            timestamp=event.timestamp,
            text=text,
            delta=delta,
            done=done,
        )

    def reasoning_delta(self, event: Event, data: AssistantReasoningDelta) -> Sequence[Part]:
        text = self._texts.get(data.reasoning_id, "") + data.delta_content
        self._texts[data.reasoning_id] = text
        return (self._reasoning(event, data.reasoning_id, text, data.delta_content, done=False),)

    def reasoning(self, event: Event, data: AssistantReasoning) -> Sequence[Part]:
        shown = self._texts.pop(data.reasoning_id, "")
        if not data.content and not shown:
            return ()
        text = data.content or shown
        rest = text.removeprefix(shown)
        part = self._reasoning(event, data.reasoning_id, text, rest, done=True)
        took = None if data.duration_ms is None else data.duration_ms / 1000
        return (msgspec.structs.replace(part, seconds=took),)

    def _reasoning(self, event: Event, key: str, text: str, delta: str, *, done: bool) -> Reasoning:
        return Reasoning(
            key=key,
            agent_id=event.agent_id,
            timestamp=event.timestamp,
            text=text,
            delta=delta,
            done=done,
        )

    def reply_ended(self, event: Event, data: AssistantUsage) -> Sequence[Part]:
        return (
            ReplyEnded(
                key=event.id,
                agent_id=event.agent_id,
                timestamp=event.timestamp,
                finish_reason=data.finish_reason or "",
            ),
        )

    def user_requested(self, _event: Event, data: ToolUserRequested) -> Sequence[Part]:
        self._requested.add(data.tool_call_id)
        return ()

    def tool_start(self, event: Event, data: ToolExecutionStart) -> Sequence[Part]:
        # Calls of our own commands, such as /pr, are requested as well, but made for a model.
        by_person = data.tool_call_id in self._requested and data.model is None
        name = "!" if by_person else data.tool_name
        call = ToolInvocation(
            key=f"call {event.agent_id or ''} {data.tool_call_id}",
            agent_id=event.agent_id,
            timestamp=event.timestamp,
            done=False,
            call_id=data.tool_call_id,
            name=data.tool_name,
            title=data.tool_title or describe_call(name, data.arguments),
            state="pending",
            by_person=by_person,
            arguments=data.arguments,
            category=find_category(
                data.mcp_tool_name or data.tool_name, is_remote=bool(data.mcp_server_name)
            ),
            server=data.mcp_server_name or "",
            started=event.timestamp,
            parent_call_id=data.parent_tool_call_id or "",
        )
        return (self._store(call),)

    def tool_running(self, event: Event, data: ToolRunning) -> Sequence[Part]:
        # The time that hooks and people take to decide is not the call's.
        running = {"state": "running", "started": event.timestamp, "delta": ""}
        return self._change_call(event, data.tool_call_id, lambda _: running)

    def tool_output(
        self, event: Event, data: ToolExecutionPartialResult | ToolShellOutput
    ) -> Sequence[Part]:
        text = data.text if isinstance(data, ToolShellOutput) else data.partial_output
        return self._change_call(
            event,
            data.tool_call_id,
            lambda call: {
                "state": "running",
                "output": (call.output + text)[-OUTPUT_KEPT:],
                "delta": text,
            },
        )

    def tool_progress(self, event: Event, data: ToolExecutionProgress) -> Sequence[Part]:
        return self._change_call(
            event, data.tool_call_id, lambda _: {"detail": data.progress_message, "delta": ""}
        )

    def workspace_changed(self, event: Event, data: WorkspaceChanged) -> Sequence[Part]:
        edits = tuple(
            FileEdit(
                path=change.os_path,
                before=change.before.digest,
                after=change.after.digest,
                created=change.before.kind == "absent",
            )
            for change in data.changes
            if "file" in (change.before.kind, change.after.kind)
        )
        if data.reason == "person":
            common: JsonObject = {"agent_id": event.agent_id, "timestamp": event.timestamp}
            return (EditsByOthers(key=event.id, edits=edits, count=data.count, **common),)
        if data.tool_call_id is None or not data.changes:
            return ()
        return self._change_call(
            event, data.tool_call_id, lambda call: {"edits": (*call.edits, *edits), "delta": ""}
        )

    def tool_complete(self, event: Event, data: ToolExecutionComplete) -> Sequence[Part]:
        result, error = data.result or {}, data.error or {}
        text = str(result.get("content") or data.model_text or "")
        changes: dict[str, Any] = {
            "state": "completed" if data.success else failure_state(error),
            "output": text,
            "delta": "",
            "detail": str(result.get("detailedContent") or ""),
            "error": str(error.get("message") or ""),
            "exit_code": find_exit_code(data),
            "sandboxed": data.sandboxed,
            "completed": event.timestamp,
            "done": True,
        }
        parts = self._change_call(event, data.tool_call_id, lambda _: changes)
        self._calls.pop((event.agent_id, data.tool_call_id), None)
        moot = [
            question.request_id
            for question in self._questions.values()
            if (question.agent_id, question.call_id) == (event.agent_id, data.tool_call_id)
        ]
        return (*(part for request_id in moot for part in self._answer(request_id, "")), *parts)

    def _change_call(
        self,
        event: Event,
        call_id: str,
        change: Callable[[ToolInvocation], dict[str, Any]],
    ) -> Sequence[Part]:
        call = self._calls.get((event.agent_id, call_id))
        if call is None:
            return ()
        return (self._store(msgspec.structs.replace(call, **change(call))),)

    def _store(self, call: ToolInvocation) -> ToolInvocation:
        self._calls[call.agent_id, call.call_id] = call
        return call

    def permission_requested(self, event: Event, data: PermissionRequested) -> Sequence[Part]:
        if data.resolved_by_hook:
            return ()
        call_id = str(data.permission_request.get("toolCallId") or "")
        question = self._ask(event, data.request_id, "permission", data.permission_request, call_id)
        call = self._change_call(event, call_id, lambda _: {"state": "pending", "delta": ""})
        return (*call, question)

    def permission_completed(self, event: Event, data: PermissionCompleted) -> Sequence[Part]:
        outcome = str(data.result.get("kind") or "")
        words = str(data.result.get("feedback") or "")
        answered = self._answer(data.request_id, outcome, words)
        if not answered or not outcome.startswith("approved"):
            return answered
        running = self.tool_running(event, ToolRunning(tool_call_id=answered[0].call_id))
        return (*answered, *running)

    def input_requested(self, event: Event, data: UserInputRequested) -> Sequence[Part]:
        request = {
            "question": data.question,
            "choices": data.choices or [],
            "allowFreeform": data.allow_freeform is not False,
        }
        return (self._ask(event, data.request_id, "input", request, data.tool_call_id or ""),)

    def input_completed(self, _event: Event, data: UserInputCompleted) -> Sequence[Part]:
        return self._answer(data.request_id, data.answer or "")

    def plan_requested(self, event: Event, data: ExitPlanModeRequested) -> Sequence[Part]:
        request = {
            "summary": data.summary,
            "planContent": data.plan_content,
            "actions": data.actions,
            "recommendedAction": data.recommended_action,
        }
        return (self._ask(event, data.request_id, "plan", request, ""),)

    def plan_completed(self, _event: Event, data: ExitPlanModeCompleted) -> Sequence[Part]:
        return self._answer(data.request_id, data.selected_action or "rejected")

    def elicitation_requested(self, event: Event, data: ElicitationRequested) -> Sequence[Part]:
        request = {
            "message": data.message,
            "mode": data.mode or "form",
            "requestedSchema": data.requested_schema,
            "url": data.url,
            "source": data.elicitation_source,
        }
        return (self._ask(event, data.request_id, "elicitation", request, data.tool_call_id or ""),)

    def elicitation_completed(self, _event: Event, data: ElicitationCompleted) -> Sequence[Part]:
        return self._answer(data.request_id, data.action or "")

    def _ask(
        self,
        event: Event,
        request_id: str,
        kind: Literal["permission", "input", "plan", "elicitation"],
        request: JsonObject,
        call_id: str,
    ) -> Question:
        question = Question(
            key=f"question {request_id}",
            agent_id=event.agent_id,
            timestamp=event.timestamp,
            done=False,
            request_id=request_id,
            kind=kind,
            request=request,
            call_id=call_id,
        )
        self._questions[request_id] = question
        return question

    def _answer(self, request_id: str, answer: str, words: str = "") -> Sequence[Question]:
        question = self._questions.pop(request_id, None)
        if question is None:
            return ()
        return (msgspec.structs.replace(question, answer=answer, words=words, done=True),)

    def subagent_started(self, event: Event, data: SubagentStarted) -> Sequence[Part]:
        agent = Subagent(
            key=f"agent {event.agent_id or data.tool_call_id}",
            agent_id=event.agent_id,
            timestamp=event.timestamp,
            done=False,
            name=data.agent_display_name or data.agent_name,
            call_id=data.tool_call_id,
            description=data.agent_description,
            model=data.model or "",
        )
        self._agents[agent.key] = agent
        return (agent, *self._enrich_call(agent))

    def subagent_ended(
        self, event: Event, data: SubagentCompleted | SubagentFailed
    ) -> Sequence[Part]:
        agent = self._agents.pop(f"agent {event.agent_id or data.tool_call_id}", None)
        if agent is None:
            return ()
        failed = isinstance(data, SubagentFailed)
        cancelled = not failed and bool(getattr(data, "cancelled", False))
        changes: dict[str, Any] = {
            "state": "failed" if failed else "cancelled" if cancelled else "completed",
            "error": data.error if isinstance(data, SubagentFailed) else "",
            "tool_calls": data.total_tool_calls,
            "tokens": data.total_tokens,
            "duration_ms": data.duration_ms,
            "done": True,
        }
        ended = msgspec.structs.replace(agent, **changes)
        return (ended, *self._enrich_call(ended))

    def _enrich_call(self, agent: Subagent) -> Sequence[Part]:
        """Return the call that a sub-agent works for, with what is known of the agent."""
        calls = [call for call in self._calls.values() if call.call_id == agent.call_id]
        return [self._store(msgspec.structs.replace(call, agent=agent)) for call in calls[-1:]]

    def hook_start(self, event: Event, data: HookStart) -> Sequence[Part]:
        given = data.input if isinstance(data.input, dict) else {}
        hook = HookRun(
            key=f"hook {data.hook_invocation_id}",
            agent_id=event.agent_id,
            timestamp=event.timestamp,
            done=False,
            name=data.hook_type,
            call_id=str(data.parent_tool_call_id or given.get("toolCallId") or ""),
            started=event.timestamp,
        )
        self._hooks[hook.key] = hook
        return (hook,)

    def hook_end(self, event: Event, data: HookEnd) -> Sequence[Part]:
        hook = self._hooks.pop(f"hook {data.hook_invocation_id}", None)
        if hook is None:
            return ()
        changes: JsonObject = {
            "state": "completed" if data.success else "failed",
            "error": str((data.error or {}).get("message") or ""),
            "completed": event.timestamp,
            "done": True,
        }
        return (msgspec.structs.replace(hook, **changes),)

    def compaction_start(self, event: Event, data: SessionCompactionStart) -> Sequence[Part]:
        key = f"compaction {data.compaction_attempt_id or ''}"
        return (
            Compaction(
                key=key,
                agent_id=event.agent_id,
                timestamp=event.timestamp,
                done=False,
                tokens_before=data.current_tokens,
            ),
        )

    def compaction_complete(self, event: Event, data: SessionCompactionComplete) -> Sequence[Part]:
        return (
            Compaction(
                key=f"compaction {data.compaction_attempt_id or ''}",
                agent_id=event.agent_id,
                timestamp=event.timestamp,
                success=data.success,
                tokens_before=data.pre_compaction_tokens,
                tokens_after=data.post_compaction_tokens,
                error=data.error or "",
            ),
        )

    def notice(self, event: Event, data: EventData) -> Sequence[Part]:
        level, kind, text = NOTICES[type(data)](data)
        return (
            Notice(
                key=event.id,
                agent_id=event.agent_id,
                timestamp=event.timestamp,
                level=level,
                kind=kind,
                text=text,
            ),
        )

    def state(self, event: Event, data: Any) -> Sequence[Part]:
        common: JsonObject = {"agent_id": event.agent_id, "timestamp": event.timestamp}
        match data:
            case SessionTitleChanged(title=title):
                return (Title(key="title", text=title, **common),)
            case SessionModelChange(new_model=model, reasoning_effort=effort):
                return (ModelInUse(key="model", name=model, effort=effort or "", **common),)
            case SessionModeChanged(new_mode=mode):
                return (ModeInUse(key="mode", mode=mode, **common),)
            case SessionUsageInfo(current_tokens=used, token_limit=limit):
                return (ContextUsage(key="context", used=used, limit=limit, **common),)
            case SessionTodosChanged():
                return (TodosChanged(key="todos", **common),)
        return ()


CASES: dict[type[EventData], Case] = {
    UserMessage: PartFold.user_message,
    PromptQueued: PartFold.prompt_queued,
    PromptChanged: PartFold.prompt_changed,
    PromptWithdrawn: PartFold.prompt_withdrawn,
    AssistantMessageDelta: PartFold.message_delta,
    AssistantMessage: PartFold.message,
    AssistantReasoningDelta: PartFold.reasoning_delta,
    AssistantReasoning: PartFold.reasoning,
    AssistantUsage: PartFold.reply_ended,
    ModelCall: PartFold.model_call,
    ToolUserRequested: PartFold.user_requested,
    ToolExecutionStart: PartFold.tool_start,
    ToolRunning: PartFold.tool_running,
    ToolExecutionPartialResult: PartFold.tool_output,
    ToolShellOutput: PartFold.tool_output,
    ToolExecutionProgress: PartFold.tool_progress,
    ToolExecutionComplete: PartFold.tool_complete,
    WorkspaceChanged: PartFold.workspace_changed,
    PermissionRequested: PartFold.permission_requested,
    PermissionCompleted: PartFold.permission_completed,
    UserInputRequested: PartFold.input_requested,
    UserInputCompleted: PartFold.input_completed,
    ExitPlanModeRequested: PartFold.plan_requested,
    ExitPlanModeCompleted: PartFold.plan_completed,
    ElicitationRequested: PartFold.elicitation_requested,
    ElicitationCompleted: PartFold.elicitation_completed,
    SubagentStarted: PartFold.subagent_started,
    SubagentCompleted: PartFold.subagent_ended,
    SubagentFailed: PartFold.subagent_ended,
    HookStart: PartFold.hook_start,
    HookEnd: PartFold.hook_end,
    SessionCompactionStart: PartFold.compaction_start,
    SessionCompactionComplete: PartFold.compaction_complete,
    SessionTitleChanged: PartFold.state,
    SessionModelChange: PartFold.state,
    SessionModeChanged: PartFold.state,
    SessionUsageInfo: PartFold.state,
    SessionTodosChanged: PartFold.state,
}
"""The method that folds each displayed event type."""
