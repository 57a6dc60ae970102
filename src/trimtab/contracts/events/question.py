"""Events that ask a person or a client, and that record the answer."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class UserInputRequested(EventData, type="user_input.requested", ephemeral=True):
    request_id: str
    question: str
    choices: list[str] | None = None
    allow_freeform: bool | None = None
    tool_call_id: str | None = None


class UserInputCompleted(EventData, type="user_input.completed", ephemeral=True):
    request_id: str
    answer: str | None = None
    was_freeform: bool | None = None


class ElicitationRequested(EventData, type="elicitation.requested", ephemeral=True):
    request_id: str
    message: str
    tool_call_id: str | None = None
    elicitation_source: str | None = None
    mode: str | None = None
    requested_schema: JsonObject | None = None
    url: str | None = None


class ElicitationCompleted(EventData, type="elicitation.completed", ephemeral=True):
    request_id: str
    action: str | None = None
    content: dict[str, Any] | None = None


class SamplingRequested(EventData, type="sampling.requested", ephemeral=True):
    request_id: str
    server_name: str
    mcp_request_id: Any
    request: JsonObject | None = None
    """The parameters of the server's request; `session.mcp.executeSampling` takes them."""


class SamplingCompleted(EventData, type="sampling.completed", ephemeral=True):
    request_id: str


class McpOauthRequired(EventData, type="mcp.oauth_required", ephemeral=True):
    request_id: str
    server_name: str
    server_url: str
    reason: str
    static_client_config: JsonObject | None = None
    www_authenticate_params: JsonObject | None = None
    http_response: JsonObject | None = None
    resource_metadata: str | None = None
    runtime_refresh_supported: bool | None = None


class McpOauthCompleted(EventData, type="mcp.oauth_completed", ephemeral=True):
    request_id: str
    outcome: str


class McpHeadersRefreshRequired(EventData, type="mcp.headers_refresh_required", ephemeral=True):
    request_id: str
    server_name: str
    server_url: str
    reason: str


class McpHeadersRefreshCompleted(EventData, type="mcp.headers_refresh_completed", ephemeral=True):
    request_id: str
    outcome: str


class CommandQueued(EventData, type="command.queued", ephemeral=True):
    request_id: str
    command: str


class CommandExecute(EventData, type="command.execute", ephemeral=True):
    request_id: str
    command: str
    command_name: str
    args: str


class CommandCompleted(EventData, type="command.completed", ephemeral=True):
    request_id: str


class AutoModeSwitchRequested(EventData, type="auto_mode_switch.requested", ephemeral=True):
    request_id: str
    error_code: str | None = None
    retry_after_seconds: int | None = None


class AutoModeSwitchCompleted(EventData, type="auto_mode_switch.completed", ephemeral=True):
    request_id: str
    response: str


class SessionLimitsExhaustedRequested(
    EventData, type="session_limits_exhausted.requested", ephemeral=True
):
    request_id: str
    used_ai_credits: float
    max_ai_credits: float


class SessionLimitsExhaustedCompleted(
    EventData, type="session_limits_exhausted.completed", ephemeral=True
):
    request_id: str
    response: JsonObject


class ExitPlanModeRequested(EventData, type="exit_plan_mode.requested", ephemeral=True):
    request_id: str
    summary: str
    plan_content: str
    actions: list[str]
    recommended_action: str
    model: str | None = None


class ExitPlanModeCompleted(EventData, type="exit_plan_mode.completed", ephemeral=True):
    request_id: str
    approved: bool | None = None
    selected_action: str | None = None
    auto_approve_edits: bool | None = None
    feedback: str | None = None
