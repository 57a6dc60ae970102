"""Events about hooks."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class HookStart(EventData, type="hook.start"):
    hook_invocation_id: str
    hook_type: str
    input: Any | None = None
    parent_tool_call_id: str | None = None


class HookEnd(EventData, type="hook.end"):
    hook_invocation_id: str
    hook_type: str
    success: bool
    output: Any | None = None
    error: JsonObject | None = None
    parent_tool_call_id: str | None = None


class HookProgress(EventData, type="hook.progress", ephemeral=True):
    message: str
    temporary: bool | None = None
