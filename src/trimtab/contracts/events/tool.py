"""Events about tool calls, run here or by a client."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class ToolUserRequested(EventData, type="tool.user_requested"):
    tool_call_id: str
    tool_name: str
    arguments: Any | None = None


class ToolExecutionStart(EventData, type="tool.execution_start"):
    tool_call_id: str
    tool_name: str
    arguments: Any | None = None
    mcp_server_name: str | None = None
    mcp_tool_name: str | None = None
    parent_tool_call_id: str | None = None
    tool_title: str | None = None
    shell_tool_info: JsonObject | None = None
    model: str | None = None
    mcp_transport: str | None = None
    mcp_config_source: str | None = None
    turn_id: str | None = None
    display_verbatim: bool | None = None
    tool_description: JsonObject | None = None


class ToolExecutionPartialResult(EventData, type="tool.execution_partial_result", ephemeral=True):
    tool_call_id: str
    partial_output: str


class ToolShellOutput(EventData, type="tool.shell_output", ephemeral=True):
    tool_call_id: str
    text: str
    sequence: int
    stream: str | None = None


class ToolExecutionProgress(EventData, type="tool.execution_progress", ephemeral=True):
    tool_call_id: str
    progress_message: str
    structured_content: Any | None = None


class ToolExecutionComplete(EventData, type="tool.execution_complete"):
    tool_call_id: str
    success: bool
    model: str | None = None
    interaction_id: str | None = None
    is_user_requested: bool | None = None
    result: JsonObject | None = None
    error: JsonObject | None = None
    tool_telemetry: dict[str, Any] | None = None
    parent_tool_call_id: str | None = None
    tool_usage: JsonObject | None = None
    mcp_meta: Any | None = None
    turn_id: str | None = None
    tool_description: JsonObject | None = None
    sandboxed: bool | None = None
    shell_execution: JsonObject | None = None
    file_edits: list[JsonObject] | None = None
    model_text: str | None = None
    """Ours: the text for the model, if it differs from result.content or error.message."""
    fence: str | None = None
    """Ours: the fence behind which its command ran, since nobody had approved it."""


class ToolSearchActivated(EventData, type="tool_search.activated"):
    strategy: str
    tool_names: list[str]


class ExternalToolRequested(EventData, type="external_tool.requested"):
    request_id: str
    session_id: str
    tool_call_id: str
    tool_name: str
    arguments: Any | None = None
    provider_id: str | None = None
    working_directory: str | None = None


class ExternalToolCompleted(EventData, type="external_tool.completed", ephemeral=True):
    request_id: str
