"""Connects to one MCP server, lists its tools, and disconnects."""

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import ServerAccess
from trimtab.mcp.host import McpHost
from trimtab.mcp.tool import ToolSupport
from trimtab.tools.output import limit_output


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a check: the server's status, and its tools by their names for a model."""

    status: str
    error: str = ""
    instructions: str = ""
    tools: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


async def connect_briefly(server: McpServer, access: ServerAccess) -> CheckResult:
    """Connect to a server and list its tools."""
    host = McpHost(access, ToolSupport(limit=limit_output), lambda _: None, lambda: None)
    try:
        enabled = msgspec.structs.replace(server, enabled=True)
        await host.use({server.name: enabled})
        connection = host.servers[server.name]
        await connection.settled(None)
        return CheckResult(
            status=connection.status,
            error=connection.error,
            instructions=connection.instructions,
            tools={tool.spec.name: tool.spec.description for tool in host.tools},
            warnings=connection.listing.problems,
        )
    finally:
        await host.aclose()
