"""Events about a session's tools, skills, agents, MCP servers and commands."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class SessionManagedSettingsResolved(
    EventData, type="session.managed_settings_resolved", ephemeral=True
):
    source: str
    server_managed: bool
    device_managed: bool
    fail_closed: bool
    bypass_permissions_disabled: bool
    managed_keys: list[str]
    settings: Any | None = None


class CommandsChanged(EventData, type="commands.changed", ephemeral=True):
    commands: list[JsonObject]


class CapabilitiesChanged(EventData, type="capabilities.changed", ephemeral=True):
    ui: JsonObject | None = None


class SessionToolsUpdated(EventData, type="session.tools_updated", ephemeral=True):
    model: str


class SessionBackgroundTasksChanged(
    EventData, type="session.background_tasks_changed", ephemeral=True
):
    pass


class SessionSkillsLoaded(EventData, type="session.skills_loaded", ephemeral=True):
    skills: list[JsonObject]


class SessionCustomAgentsUpdated(EventData, type="session.custom_agents_updated", ephemeral=True):
    agents: list[JsonObject]
    warnings: list[str]
    errors: list[str]


class McpAppToolCallComplete(EventData, type="mcp_app.tool_call_complete", ephemeral=True):
    """A server's interface, which a client shows, has called a tool of the server."""

    server_name: str
    tool_name: str
    duration_ms: float
    success: bool
    arguments: JsonObject | None = None
    result: JsonObject | None = None
    error: JsonObject | None = None
    tool_meta: JsonObject | None = None


class SessionMcpServersLoaded(EventData, type="session.mcp_servers_loaded", ephemeral=True):
    servers: list[JsonObject]


class SessionMcpServerStatusChanged(
    EventData, type="session.mcp_server_status_changed", ephemeral=True
):
    server_name: str
    status: str
    error: str | None = None
    error_classification: str | None = None
    config_source: str | None = None


class SessionMcpServerToolsLoaded(
    EventData, type="session.mcp_server_tools_loaded", ephemeral=True
):
    server_name: str
    tool_count: int


class SessionMcpServerRemoved(EventData, type="session.mcp_server_removed", ephemeral=True):
    server_name: str


class McpToolsListChanged(EventData, type="mcp.tools.list_changed", ephemeral=True):
    server_name: str


class McpResourcesListChanged(EventData, type="mcp.resources.list_changed", ephemeral=True):
    server_name: str


class McpPromptsListChanged(EventData, type="mcp.prompts.list_changed", ephemeral=True):
    server_name: str


class SessionExtensionsLoaded(EventData, type="session.extensions_loaded", ephemeral=True):
    extensions: list[JsonObject]
