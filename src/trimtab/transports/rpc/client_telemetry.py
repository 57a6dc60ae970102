"""Telemetry for clients that ask for it: events of their sessions in GitHub's form.

Only the client receives it; nothing is sent to GitHub. It holds names, numbers and outcomes, never
what was said.
"""

import os
from datetime import datetime
from typing import Any

import msgspec

from trimtab.contracts.events.assistant import (
    AssistantMessage,
    AssistantTurnEnd,
    AssistantTurnStart,
    AssistantUsage,
)
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.session import (
    SessionError,
    SessionIdle,
    SessionResume,
    SessionShutdown,
    SessionStart,
)
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.ids import new_id


class Fields(msgspec.Struct, frozen=True):
    """The kind of a telemetry event, and the fields of the session event that it repeats."""

    kind: str
    properties: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


FORWARDED: dict[type, Fields] = {
    SessionStart: Fields(
        "session_start", ("producer", "copilot_version", "selected_model"), ("version",)
    ),
    SessionResume: Fields(
        "session_resume", ("selected_model",), ("event_count", "events_file_size_bytes")
    ),
    UserMessage: Fields("user_message", ("delivery", "turn_id", "agent_mode")),
    AssistantTurnStart: Fields("assistant_turn_start", ("turn_id",)),
    AssistantTurnEnd: Fields("assistant_turn_end", ("turn_id",)),
    AssistantUsage: Fields(
        "assistant_usage",
        ("model", "initiator", "interaction_type", "api_call_id", "finish_reason", "is_byok"),
        (
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "cost",
            "duration",
        ),
    ),
    AssistantMessage: Fields("assistant_message", ("message_id", "turn_id", "model")),
    ToolExecutionComplete: Fields("tool_call_executed", ("tool_call_id", "model", "turn_id")),
    SessionIdle: Fields("session_idle"),
    SessionError: Fields("session_error", ("error_type",), ("status_code",)),
    SessionShutdown: Fields(
        "session_shutdown",
        ("shutdown_type", "current_model"),
        (
            "total_premium_requests",
            "total_api_duration_ms",
            "events_file_size_bytes",
            "current_tokens",
        ),
    ),
}
"""The session events that become telemetry."""


class ClientTelemetry:
    """Turns the session events of one client into telemetry events."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str], tuple[ToolExecutionStart, str]] = {}
        """The tool calls that run, by session and call, with the time they began."""

    def describe(self, session_id: str, event: Event) -> JsonObject | None:
        """Return the notification for a session event; None if there is none for its type."""
        data = event.data
        if isinstance(data, ToolExecutionStart):
            self._calls[session_id, data.tool_call_id] = (data, event.timestamp)
            return None
        fields = FORWARDED.get(type(data))
        if fields is None:
            return None
        properties = {name: getattr(data, name) for name in fields.properties}
        metrics = {name: getattr(data, name) for name in fields.metrics}
        more_properties, more_metrics = self._derive(session_id, event)
        own = {"event_id": event.id, "copilot_pid": str(os.getpid()), "unique_id": new_id()}
        telemetry = {
            "kind": fields.kind,
            "created_at": event.timestamp,
            "session_id": session_id,
            "properties": _to_strings({**properties, **more_properties, **own}),
            "metrics": _present({**metrics, **more_metrics}),
        }
        return {"sessionId": session_id, "restricted": False, "event": telemetry}

    def _derive(self, session_id: str, event: Event) -> tuple[JsonObject, JsonObject]:
        """Return properties and metrics that are derived from the fields of an event."""
        properties: JsonObject = {}
        metrics: JsonObject = {}
        match event.data:
            case SessionStart() | SessionResume() as opened:
                properties = _describe_opening(opened)
            case UserMessage(content=content, attachments=attachments):
                attached = len(attachments or ())
                properties = {"has_attachments": attached > 0}
                metrics = {"content_length": len(content), "attachment_count": attached}
            case AssistantMessage(content=content, tool_requests=requests):
                asked = len(requests or ())
                properties = {"has_tool_requests": asked > 0}
                metrics = {"content_length": len(content), "tool_request_count": asked}
            case ToolExecutionComplete() as done:
                properties, metrics = self._describe_call(session_id, event.timestamp, done)
            case SessionIdle(aborted=aborted):
                properties = {"aborted": bool(aborted)}
            case SessionShutdown(code_changes=changes, model_metrics=models):
                self._forget_calls(session_id)
                metrics = {
                    "lines_added": changes.get("linesAdded"),
                    "lines_removed": changes.get("linesRemoved"),
                    "model_count": len(models),
                }
        return properties, metrics

    def _describe_call(
        self, session_id: str, ended: str, done: ToolExecutionComplete
    ) -> tuple[JsonObject, JsonObject]:
        properties: JsonObject = {"result_type": "SUCCESS" if done.success else "FAILURE"}
        started, begun = self._calls.pop((session_id, done.tool_call_id), (None, ended))
        if started is not None:
            properties["tool_name"] = started.tool_name
            properties["is_mcp_tool"] = started.mcp_server_name is not None
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(begun)
        return properties, {"duration_ms": took.total_seconds() * 1000}

    def _forget_calls(self, session_id: str) -> None:
        self._calls = {key: call for key, call in self._calls.items() if key[0] != session_id}


def _describe_opening(opened: SessionStart | SessionResume) -> JsonObject:
    context = opened.context or {}
    return {
        "is_git_repo": "gitRoot" in context,
        "is_github_repo": context.get("hostType") == "github",
        "already_in_use": bool(opened.already_in_use),
    }


def _to_strings(values: JsonObject) -> dict[str, str]:
    """Return the values as the strings that properties must be."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None
    }


def _present(values: JsonObject) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
