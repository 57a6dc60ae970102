"""The sub-agents of a session: what they were asked, what they answered, and their states."""

from typing import ClassVar, Literal

import msgspec

from trimtab.contracts.events import assistant, own, subagent, user
from trimtab.contracts.events.envelope import Event

AgentState = Literal["running", "idle", "completed", "failed", "cancelled", "interrupted"]
"""`running`: it works. `idle`: it answered in the background, and takes messages. `completed`:
it answered the caller that waited for it. `failed`: it gave up. `cancelled`: somebody stopped it.
`interrupted`: the process that ran it ended."""


class AgentRecord(msgspec.Struct, kw_only=True):
    """One sub-agent. `caller_id` is empty if the main agent started it."""

    id: str
    type: str
    caller_id: str
    call_id: str
    started_at: str
    name: str = ""
    display_name: str = ""
    description: str = ""
    model: str | None = None
    background: bool = False
    state: AgentState = "running"
    active_since: str = ""
    ended_at: str = ""
    prompt: str = ""
    """The last prompt it was shown."""
    task: str = ""
    """The first prompt it was shown."""
    response: str = ""
    """Its last text."""
    answers: list[str] = []
    """Its last text of each turn: each time it began to work until it stopped."""
    error: str = ""
    removed: bool = False


class Agents:
    """All sub-agents of a session, by id, in the order in which they were started."""

    reads: ClassVar[frozenset[str]] = frozenset(
        (
            "subagent.started",
            "subagent.completed",
            "subagent.failed",
            "user.message",
            "assistant.message",
            "trimtab.agent_changed",
        )
    )

    def __init__(self) -> None:
        self.records: dict[str, AgentRecord] = {}

    def apply(self, event: Event) -> None:
        if event.agent_id is None:
            return
        if isinstance(event.data, subagent.SubagentStarted):
            self._start(event, event.agent_id, event.data)
        elif (record := self.records.get(event.agent_id)) is not None:
            self._change(record, event)

    def _start(self, event: Event, agent_id: str, data: subagent.SubagentStarted) -> None:
        record = self.records.get(agent_id)
        if record is None:
            record = self.records[agent_id] = AgentRecord(
                id=agent_id,
                type=data.agent_name,
                caller_id=data.parent_id or "",
                call_id=data.tool_call_id,
                started_at=event.timestamp,
                answers=[],
            )
        record.name = data.task_name or record.name
        record.display_name = data.agent_display_name
        record.description = data.task_description or record.description
        record.model = data.model
        record.background = data.execution_mode == "background"
        record.state, record.error = "running", ""
        record.active_since, record.ended_at = event.timestamp, ""
        record.response, record.removed = "", False

    def _change(self, record: AgentRecord, event: Event) -> None:
        match event.data:
            case user.UserMessage(content=content, source=source) if source != "tool":
                record.prompt = content
                record.task = record.task or content
            case assistant.AssistantMessage(content=content) if content:
                record.response = content
            case subagent.SubagentCompleted(cancelled=cancelled):
                record.state = (
                    "cancelled" if cancelled else "idle" if record.background else "completed"
                )
                self._end(record, event)
            case subagent.SubagentFailed(error=error):
                record.state, record.error = "failed", error
                self._end(record, event)
            case own.AgentChanged(change="promoted"):
                record.background = True
            case own.AgentChanged(change="interrupted"):
                record.state = "interrupted"
                self._end(record, event)
            case own.AgentChanged(change="removed"):
                record.removed = True

    def _end(self, record: AgentRecord, event: Event) -> None:
        record.ended_at = event.timestamp
        record.answers.append(record.response)
