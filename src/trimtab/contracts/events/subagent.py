"""Events about sub-agents."""

from trimtab.contracts.events.envelope import EventData


class SubagentStarted(EventData, type="subagent.started"):
    tool_call_id: str
    agent_name: str
    agent_display_name: str
    agent_description: str
    model: str | None = None
    parent_id: str | None = None
    resumable: bool | None = None
    agent_type: str | None = None
    execution_mode: str | None = None
    task_name: str | None = None
    task_description: str | None = None


class SubagentConfigured(EventData, type="subagent.configured"):
    model: str
    multi_turn: bool
    reasoning_effort: str | None = None
    context_tier: str | None = None


class SubagentCompleted(EventData, type="subagent.completed"):
    tool_call_id: str
    agent_name: str
    agent_display_name: str
    model: str | None = None
    total_tool_calls: int | None = None
    total_tokens: int | None = None
    duration_ms: int | float | None = None
    cancelled: bool | None = None


class SubagentFailed(EventData, type="subagent.failed"):
    tool_call_id: str
    agent_name: str
    agent_display_name: str
    error: str
    model: str | None = None
    total_tool_calls: int | None = None
    total_tokens: int | None = None
    duration_ms: int | float | None = None


class SubagentSelected(EventData, type="subagent.selected"):
    agent_name: str
    agent_display_name: str
    tools: list[str]


class SubagentDeselected(EventData, type="subagent.deselected"):
    pass
