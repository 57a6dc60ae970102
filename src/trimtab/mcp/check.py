"""Connects to one MCP server to see whether it works, without a session."""

import os
import tempfile
from collections.abc import Mapping

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import Launch, ServerAccess
from trimtab.mcp.host import McpHost
from trimtab.mcp.messages import LARGEST
from trimtab.mcp.tool import ToolSupport
from trimtab.providers.http import HttpClient
from trimtab.providers.sse import SseParser
from trimtab.tools.output import limit_output
from trimtab.workspace.local import LocalWorkspace
from trimtab.workspace.piped_program import PipedProgram


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How it went: the tools by the names a model would know, and what the server says of them."""

    status: str
    error: str = ""
    instructions: str = ""
    tools: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


async def try_server(server: McpServer, env: Mapping[str, str], *, offline: bool) -> Trial:
    """Connect, list the tools, and end the server again. No tool is called."""
    http = HttpClient(env, offline=offline)
    with tempfile.TemporaryDirectory(prefix="trimtab-mcp-") as files:
        workspace = LocalWorkspace(root=os.getcwd(), files=files, env=env)

        def start(launch: Launch) -> PipedProgram:
            workspace.shells.guard()
            return PipedProgram(launch)

        reach = ServerAccess(
            cwd=workspace.root,
            env=workspace.child_env,
            start=start,
            http=lambda: http,
            read_events=lambda: SseParser(LARGEST),
        )
        host = McpHost(reach, ToolSupport(limit=limit_output), lambda _: None, lambda: None)
        try:
            enabled = msgspec.structs.replace(server, enabled=True)
            await host.use({server.name: enabled})
            state = host.servers[server.name]
            await state.settled(None)
            return Trial(
                status=state.status,
                error=state.error,
                instructions=state.instructions,
                tools={tool.spec.name: tool.spec.description for tool in host.tools},
                warnings=state.listing.problems,
            )
        finally:
            await host.aclose()
            await http.aclose()
            await workspace.aclose()
