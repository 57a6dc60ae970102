"""Resources of MCP servers, as two tools for the model."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import neutralise
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.mcp.messages import RemoteError, ServerProblem
from trimtab.mcp.result import read_result
from trimtab.mcp.server import ServerConnection
from trimtab.mcp.tool import Limit

LIST, READ = "list_mcp_resources", "read_mcp_resource"
MAX_LISTED = 200
SERVER = {"type": "string", "description": "The name of the server"}


class ResourceTool:
    """Lists or reads the resources of servers that have some."""

    def __init__(self, name: str, servers: Mapping[str, ServerConnection], limit: Limit) -> None:
        self._servers = servers
        self._limit = limit
        names = ", ".join(servers)
        properties: dict[str, Any] = {"server": SERVER}
        if name == LIST:
            text = f"List the resources, and templates of resources, of an MCP server: {names}."
        else:
            text = f"Read a resource of an MCP server ({names}) by its address."
            properties["uri"] = {"type": "string", "description": "The address of the resource"}
        self.spec = ToolSpec(
            name=name,
            description=text,
            parameters={
                "type": "object",
                "properties": properties,
                "required": list(properties),
            },
        )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        server = str(args.get("server"))
        return [
            Access(
                kind="mcp",
                target=self.spec.name,
                intention=f"Read what the MCP server {server} offers",
                detail={
                    "serverName": server,
                    "toolName": self.spec.name,
                    "toolTitle": self.spec.name,
                    "args": dict(args),
                    "readOnly": True,
                },
            )
        ]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        server = self._servers.get(str(args["server"]))
        if server is None:
            known = ", ".join(self._servers)
            return ToolResult(text=f"No such server; use one of {known}.", kind="failure")
        try:
            text = await (
                self._list(server) if self.spec.name == LIST else self._read(server, args)
            )
        except (RemoteError, ServerProblem, TimeoutError) as error:
            reason = neutralise(str(error)) or "it did not answer in time"
            return ToolResult(text=f"The MCP server refused: {reason}", kind="failure")
        return ToolResult(text=await self._limit(text, ctx))

    async def _list(self, server: ServerConnection) -> str:
        found: dict[str, Any] = {}
        for method, key in (
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ):
            try:
                entries = (await server.request(method, {})).get(key)
            except RemoteError:
                entries = None  # not every server has templates
            found[key] = entries[:MAX_LISTED] if isinstance(entries, list) else []
        return neutralise(msgspec.json.encode(found).decode())

    async def _read(self, server: ServerConnection, args: Args) -> str:
        answer = await server.request("resources/read", {"uri": str(args["uri"])})
        with suppress(RemoteError, ServerProblem, TimeoutError):
            await server.subscribe(str(args["uri"]))
        contents = answer.get("contents")
        blocks = [
            {"type": "resource", "resource": content}
            for content in (contents if isinstance(contents, list) else ())
        ]
        return read_result({"content": blocks}, "hidden_characters").text
