"""MCP Apps: a client shows the interfaces of servers, and calls their tools from there."""

import time
from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.setup import McpAppToolCallComplete
from trimtab.mcp.listing import MAX_PAGES, find_interface, is_for
from trimtab.mcp.session_servers import APPS, SessionServers
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()
SAMPLES = 5
"""Names of tools in a diagnosis."""


class FromServer(msgspec.Struct, rename="camel"):
    """A request of an interface. It may reach only the server that it was loaded from."""

    server_name: str
    origin_server_name: str | None = None


class CallTool(FromServer, rename="camel"):
    tool_name: str = ""
    arguments: dict[str, Any] = {}


class ReadResource(msgspec.Struct, rename="camel"):
    server_name: str
    uri: str


class Server(msgspec.Struct, rename="camel"):
    server_name: str


@methods.on("session.mcp.apps.listTools", FromServer)
async def list_tools(call: Call, params: FromServer) -> JsonObject:
    """Return the tools of a server that its interface may call, as the server lists them."""
    servers = _servers(call)
    _check_origin(params, "tools/list", f'list tools on "{params.server_name}"')
    found = await _fetch_tools(servers, params.server_name)
    return {"tools": [tool for tool in found if is_for(tool, "app")]}


@methods.on("session.mcp.apps.callTool", CallTool)
async def call_tool(call: Call, params: CallTool) -> JsonObject:
    """Call a tool for a server's interface; return the server's own answer."""
    servers, name = _servers(call), params.tool_name
    _check_origin(params, "tools/call", f'call {name} on "{params.server_name}"')
    found = {tool.get("name"): tool for tool in await _fetch_tools(servers, params.server_name)}
    if name not in found:
        raise UsageError(f"MCP tool not found on {params.server_name}: {name}")
    if not is_for(found[name], "app"):
        raise UsageError(f"Tool {name} on {params.server_name} is not callable from MCP Apps")
    given = {"name": name, "arguments": params.arguments}
    started, meta = time.monotonic(), found[name].get("_meta")
    answer: JsonObject | None = None
    failure = ""
    try:
        answer = await servers.request(params.server_name, "tools/call", given)
    except UsageError as error:
        failure = error.message
        raise
    finally:
        call.session.live.emit(
            McpAppToolCallComplete(
                server_name=params.server_name,
                tool_name=name,
                duration_ms=(time.monotonic() - started) * 1000,
                success=answer is not None and answer.get("isError") is not True,
                arguments=params.arguments,
                result=answer,
                error={"message": failure} if failure else None,
                tool_meta=meta if isinstance(meta, dict) else None,
            )
        )
    return answer


@methods.on("session.mcp.apps.readResource", ReadResource)
async def read_resource(call: Call, params: ReadResource) -> JsonObject:
    servers = _servers(call)
    await _require(servers, params.server_name)
    answer = await servers.request(params.server_name, "resources/read", {"uri": params.uri})
    return {"contents": answer.get("contents") or []}


@methods.on("session.mcp.apps.diagnose", Server)
async def diagnose(call: Call, params: Server) -> JsonObject:
    """Report whether interfaces are on, and what a server offers for them."""
    live, servers = call.session.live, call.session.live.controls.servers
    try:
        tools = await _fetch_tools(servers, params.server_name)
        connected = True
    except UsageError:
        tools, connected = [], False
    having = [str(tool.get("name")) for tool in tools if find_interface(tool)]
    return {
        "capability": {
            "sessionHasMcpApps": servers.has_apps,
            "featureFlagEnabled": live.has_feature(APPS),
            "advertised": servers.has_apps,
        },
        "server": {
            "connected": connected,
            "toolCount": len(tools),
            "toolsWithUiMeta": len(having),
            "sampleToolNames": having[:SAMPLES],
        },
    }


class HostContext(msgspec.Struct):
    context: JsonObject


@methods.on("session.mcp.apps.setHostContext", HostContext)
async def set_host_context(call: Call, params: HostContext) -> None:
    call.session.settings["mcp_host_context"] = params.context


@methods.on("session.mcp.apps.getHostContext")
async def get_host_context(call: Call, params: Nothing) -> JsonObject:
    return {"context": call.session.settings.get("mcp_host_context") or {}}


def _servers(call: Call) -> SessionServers:
    servers = call.session.live.controls.servers
    if not servers.has_apps:
        raise UsageError(
            'The "mcp-apps" capability is not available in this session; create it with '
            "requestMcpApps, and start the server with COPILOT_MCP_APPS=true."
        )
    return servers


def _check_origin(params: FromServer, method: str, deed: str) -> None:
    origin = params.origin_server_name
    if not origin:
        raise UsageError(
            "originServerName is required: name the server whose interface makes the request."
        )
    if origin != params.server_name:
        raise UsageError(
            f'Cross-server MCP App {method} is not allowed: app loaded from "{origin}" cannot '
            f"{deed}"
        )


async def _require(servers: SessionServers, name: str) -> None:
    """Raise `UsageError` unless a server is connected, or becomes it soon."""
    await servers.start()
    if all(described["name"] != name for described in servers.describe()):
        raise UsageError(f"MCP server not connected: {name} (this session has no such server)")
    server = servers.find(name)
    await server.hurry()
    if server.status != "connected":
        why = server.error or f"its status is {server.status}"
        raise UsageError(f"MCP server not connected: {name} ({why})")


async def _fetch_tools(servers: SessionServers, name: str) -> list[JsonObject]:
    """Return the tools of a connected server as it lists them now. Raises `UsageError`."""
    await _require(servers, name)
    tools: list[JsonObject] = []
    given: JsonObject = {}
    for _ in range(MAX_PAGES):
        page = await servers.request(name, "tools/list", given)
        tools += [tool for tool in page.get("tools") or () if isinstance(tool, dict)]
        if not isinstance(cursor := page.get("nextCursor"), str):
            break
        given = {"cursor": cursor}
    return tools
