"""Tools of clients, built-in tools, and answers to calls of a client's tools."""

import msgspec

from trimtab.agents.client_tools import ExternalTool, Outcome, ToolDefinition
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.tool import Tool
from trimtab.tools.catalog import builtin_tools
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class HandlePending(msgspec.Struct, rename="camel"):
    request_id: str
    result: str | JsonObject | None = None
    error: str | None = None


@methods.on("session.tools.handlePendingToolCall", HandlePending)
async def handle_pending(call: Call, params: HandlePending) -> JsonObject:
    outcome = Outcome(result=params.result, error=params.error)
    return {"success": call.session.questions.answer(params.request_id, outcome)}


@methods.on("session.tools.listPendingRequests")
async def list_pending(call: Call, params: Nothing) -> JsonObject:
    return {"items": call.session.open_requests("external_tool.requested")}


class SetTools(msgspec.Struct):
    tools: tuple[ToolDefinition, ...] = ()


@methods.on("session.tools.set", SetTools)
async def set_tools(call: Call, params: SetTools) -> JsonObject:
    call.session.set_tools(call.peer, params.tools)
    return {}


class SubagentSettings(msgspec.Struct):
    subagents: JsonObject | None = None


@methods.on("session.tools.updateSubagentSettings", SubagentSettings)
async def update_subagents(call: Call, params: SubagentSettings) -> JsonObject:
    """Set the models of sub-agents by name; null restores the settings."""
    given = params.subagents or {}
    call.session.live.controls.set_subagents(given.get("agents", given))
    return {}


@methods.on("session.tools.getSubagentSettings")
async def get_subagents(call: Call, params: Nothing) -> JsonObject:
    """Return the models of sub-agents that a client has set, or those of the settings."""
    pool = call.session.live.controls.pool
    if pool.overrides:
        return {"subagents": {"agents": pool.overrides}}
    settings = pool.settings
    agents = {name: dict(entry) for name, entry in settings.agents.items()}
    found = {"agents": agents, "disabledSubagents": list(settings.disabled_subagents)}
    return {"subagents": found if agents or settings.disabled_subagents else None}


@methods.on("session.tools.getBuiltinDescriptors")
async def get_descriptors(call: Call, params: Nothing) -> JsonObject:
    """Return the built-in tools, as a client needs them to offer tools of its own beside them."""
    return {
        "tools": [
            {
                "name": tool.spec.name,
                "title": None,
                "description": tool.spec.description,
                "inputSchema": tool.spec.parameters or None,
                "instructions": None,
                "type": None,
                "format": None,
                "safeForTelemetry": False,
                "isTerminal": False,
                "hasSummariseIntention": False,
            }
            for tool in builtin_tools().values()
        ]
    }


@methods.on("session.tools.initializeAndValidate")
async def initialize(call: Call, params: Nothing) -> JsonObject:
    call.session.refresh()
    return {}


@methods.on("session.tools.getCurrentMetadata")
async def get_metadata(call: Call, params: Nothing) -> JsonObject:
    """Return the tools the model has now. The schema has another name here than in `tools.list`."""
    return {"tools": [_describe(tool, "input_schema") for tool in call.session.live.controls.tools]}


@methods.on("tools.list")
async def list_tools(call: Call, params: Nothing) -> JsonObject:
    return {"tools": [_describe(tool) for tool in builtin_tools().values()]}


def _describe(tool: Tool, schema: str = "parameters") -> JsonObject:
    source = getattr(tool, "source", None)  # the file or package of a Python function
    prefix = "builtin" if source is None and not isinstance(tool, ExternalTool) else "custom"
    described: JsonObject = {
        "name": tool.spec.name,
        "namespacedName": f"{prefix}:{tool.spec.name}",
        "description": tool.spec.description,
        schema: tool.spec.parameters,
    }
    if (origin := origin_of(tool)) is not None:
        named = {"mcpServerName": origin.server, "mcpToolName": origin.tool}
        return {**described, **named, "namespacedName": f"{origin.server}/{origin.tool}"}
    return {**described, "source": source} if source else described
