"""The event vocabulary: one struct per type, one module per family, loaded when first used."""

from importlib import import_module

from trimtab.contracts.events.envelope import Event, EventData, JsonObject

__all__ = ["FAMILIES", "Event", "EventData", "JsonObject", "class_of"]

FAMILIES: dict[str, tuple[str, ...]] = {
    "session": (
        "session.start",
        "session.resume",
        "session.remote_steerable_changed",
        "session.error",
        "session.idle",
        "session.autopilot_stopped",
        "session.title_changed",
        "session.info",
        "session.warning",
        "session.model_change",
        "session.mode_changed",
        "session.mode_notice_delivered",
        "session.permissions_changed",
        "session.plan_changed",
        "session.todos_changed",
        "session.workspace_file_changed",
        "session.handoff",
        "session.snapshot_rewind",
        "session.shutdown",
        "session.context_changed",
        "session.task_complete",
        "session.completion_receipt",
        "session.auto_mode_resolved",
    ),
    "context": (
        "session.session_limits_changed",
        "session.truncation",
        "session.usage_checkpoint",
        "session.usage_info",
        "session.context_cleared",
        "session.compaction_start",
        "session.compaction_complete",
        "prompt_cache_break",
    ),
    "user": (
        "user.message",
        "pending_messages.modified",
    ),
    "assistant": (
        "assistant.turn_start",
        "assistant.turn_retry",
        "agent.interrupted",
        "assistant.intent",
        "assistant.reasoning",
        "assistant.reasoning_delta",
        "assistant.tool_call_delta",
        "assistant.streaming_delta",
        "assistant.message",
        "assistant.message_start",
        "assistant.message_delta",
        "assistant.turn_end",
        "assistant.idle",
        "assistant.usage",
        "abort",
    ),
    "model": (
        "model.call_failure",
        "model.call_final_result",
        "model.call_finished",
        "model.call_start",
    ),
    "tool": (
        "tool.user_requested",
        "tool.execution_start",
        "tool.execution_partial_result",
        "tool.shell_output",
        "tool.execution_progress",
        "tool.execution_complete",
        "tool_search.activated",
        "external_tool.requested",
        "external_tool.completed",
    ),
    "system": (
        "skill.invoked",
        "session.binary_asset",
        "system.message",
        "system.notification",
        "session.custom_notification",
    ),
    "permission": (
        "sandbox.decision",
        "permission.requested",
        "permission.completed",
    ),
    "subagent": (
        "subagent.started",
        "subagent.configured",
        "subagent.completed",
        "subagent.failed",
        "subagent.selected",
        "subagent.deselected",
    ),
    "hook": (
        "hook.start",
        "hook.end",
        "hook.progress",
    ),
    "question": (
        "user_input.requested",
        "user_input.completed",
        "elicitation.requested",
        "elicitation.completed",
        "sampling.requested",
        "sampling.completed",
        "mcp.oauth_required",
        "mcp.oauth_completed",
        "mcp.headers_refresh_required",
        "mcp.headers_refresh_completed",
        "command.queued",
        "command.execute",
        "command.completed",
        "auto_mode_switch.requested",
        "auto_mode_switch.completed",
        "session_limits_exhausted.requested",
        "session_limits_exhausted.completed",
        "exit_plan_mode.requested",
        "exit_plan_mode.completed",
    ),
    "setup": (
        "session.managed_settings_resolved",
        "commands.changed",
        "capabilities.changed",
        "session.tools_updated",
        "session.background_tasks_changed",
        "session.skills_loaded",
        "session.custom_agents_updated",
        "session.mcp_servers_loaded",
        "session.mcp_server_status_changed",
        "session.mcp_server_tools_loaded",
        "session.mcp_server_removed",
        "mcp_app.tool_call_complete",
        "mcp.tools.list_changed",
        "mcp.resources.list_changed",
        "mcp.prompts.list_changed",
        "session.extensions_loaded",
    ),
    "schedule": (
        "session.schedule_created",
        "session.schedule_cancelled",
        "session.schedule_rearmed",
    ),
    "canvas": (
        "session.canvas.opened",
        "session.canvas.recorded",
        "session.canvas.closed",
        "session.canvas.removed",
        "session.canvas.unavailable",
        "session.canvas.registry_changed",
    ),
    "own": (
        "trimtab.model_call",
        "trimtab.arguments_changed",
        "trimtab.tool_running",
        "trimtab.prompt_queued",
        "trimtab.prompt_withdrawn",
        "trimtab.prompt_changed",
        "trimtab.queue_paused",
        "trimtab.retry_wait",
        "trimtab.compaction_skipped",
        "trimtab.message_telemetry",
        "trimtab.images_removed",
        "trimtab.left_out",
        "trimtab.connection_refused",
        "trimtab.pull_request_opened",
        "trimtab.suspended",
        "trimtab.agent_changed",
        "trimtab.mcp_resource_updated",
        "trimtab.events_dropped",
        "trimtab.fleet",
        "trimtab.bridge_request",
        "trimtab.bridge_left_out",
        "trimtab.runtime_started",
        "trimtab.runtime_session",
        "trimtab.runtime_event",
        "trimtab.runtime_ended",
    ),
    "changes": (
        "trimtab.workspace_changed",
        "trimtab.snapshot_limited",
        "trimtab.checkpoint",
        "trimtab.worktree",
    ),
}
"""Module name → the wire names of the events it defines."""

_family_of = {wire_name: family for family, names in FAMILIES.items() for wire_name in names}
_classes: dict[str, type[EventData]] = {}


def class_of(wire_name: str) -> type[EventData] | None:
    """Return the struct of an event type, or None if the type is unknown."""
    cls = _classes.get(wire_name)
    if cls is None and (family := _family_of.get(wire_name)):
        module = import_module(f"{__name__}.{family}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, EventData):
                _classes[value.wire_name] = value
        cls = _classes[wire_name]
    return cls
