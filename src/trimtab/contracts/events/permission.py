"""Events about permission requests and their answers."""

from trimtab.contracts.events.envelope import EventData, JsonObject


class SandboxDecision(EventData, type="sandbox.decision", ephemeral=True):
    control: str
    enforcement_point: str
    kind: str
    outcome: str
    platform: str
    backend: str | None = None


class PermissionRequested(EventData, type="permission.requested"):
    request_id: str
    permission_request: JsonObject
    prompt_request: JsonObject | None = None
    resolved_by_hook: bool | None = None
    permission_mode: str | None = None
    agent_mode: str | None = None


class PermissionCompleted(EventData, type="permission.completed"):
    request_id: str
    result: JsonObject
    tool_call_id: str | None = None
    blocker: JsonObject | None = None
    decision_source: str | None = None
