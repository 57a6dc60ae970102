"""Checks the connection to an MCP server, without a session."""

import os
import tempfile
from collections.abc import Mapping

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import Launch, ServerAccess
from trimtab.mcp.host import McpHost
from trimtab.mcp.messages import MAX_MESSAGE_BYTES
from trimtab.mcp.tool import ToolSupport
from trimtab.providers.http import HttpClient
from trimtab.providers.sse import SseParser
from trimtab.tools.output import limit_output
from trimtab.workspace.local import LocalWorkspace
from trimtab.workspace.piped_program import PipedProgram


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a check: the server's status, and its tools by their names for a model."""

    status: str
    error: str = ""
    instructions: str = ""
    tools: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


async def check_server(server: McpServer, env: Mapping[str, str], *, offline: bool) -> CheckResult:
    """Connect, list the tools, and stop the server again. No tool is called."""
    http = HttpClient(env, offline=offline)
    with tempfile.TemporaryDirectory(prefix="trimtab-mcp-") as files:
        workspace = LocalWorkspace(root=os.getcwd(), files=files, env=env)

        def start(launch: Launch) -> PipedProgram:
            workspace.shells.guard()
            return PipedProgram(launch)

        access = ServerAccess(
            cwd=workspace.root,
            env=workspace.child_env,
            start=start,
            http=lambda: http,
            read_events=lambda: SseParser(MAX_MESSAGE_BYTES),
        )
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
            await http.aclose()
            await workspace.aclose()
