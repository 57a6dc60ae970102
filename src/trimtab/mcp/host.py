"""The servers of one session: started together, told about, and ended with it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import EventData
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.setup import (
    McpToolsListChanged,
    SessionMcpServerRemoved,
    SessionMcpServerStatusChanged,
    SessionMcpServerToolsLoaded,
)
from trimtab.contracts.mcp import Origin, ServerAccess, config_source
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.mcp.listing import ListedTool
from trimtab.mcp.names import ToolNames
from trimtab.mcp.server import PATIENCE, Happened, Server
from trimtab.mcp.tool import McpTool, ToolSupport

MANY_TOOLS = 100
"""With the built-in ones that is as many as services with a limit take."""


class McpHost:
    """Connects to servers and gives their tools; `on_tools` is called when those change."""

    def __init__(
        self,
        reach: ServerAccess,
        trade: ToolSupport,
        emit: Callable[[EventData], object],
        on_tools: Callable[[], None],
    ) -> None:
        self.servers: dict[str, Server] = {}
        self._reach = reach
        self._trade = trade
        self._emit = emit
        self._on_tools = on_tools
        self._names = ToolNames()
        self._told: set[str] = set()
        self._closed = False
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def tools(self) -> list[McpTool]:
        """The tools of all servers in their order, also of those that must be connected again."""
        return [
            self._build(server, listed)
            for server in self.servers.values()
            if server.status not in ("disabled", "stopped")
            for listed in server.listing.tools
        ]

    async def use(self, configured: Mapping[str, McpServer]) -> None:
        """Have exactly these servers: new ones start, those that changed start again."""
        changed = [
            server for name, server in self.servers.items() if configured.get(name) != server.config
        ]
        await self._end(changed)
        for server in changed:
            del self.servers[server.config.name]
            if server.config.name not in configured:
                self._emit(SessionMcpServerRemoved(server_name=server.config.name))
        before, self.servers = self.servers, {}
        for name, config in configured.items():
            server = before.get(name) or Server(config, self._reach, self._heed)
            self.servers[name] = server
            if name not in before:
                await self.switch(name, enabled=config.enabled)
        if changed:
            self._on_tools()

    async def _end(self, servers: Sequence[Server]) -> None:
        """Close connections; one that takes long is closed while the session goes on."""
        if servers:
            ending = {asyncio.ensure_future(server.aclose()) for server in servers}
            self._ending |= ending
            for task in ending:
                task.add_done_callback(self._ending.discard)
            await asyncio.wait(ending, timeout=PATIENCE)

    async def switch(self, name: str, *, enabled: bool) -> None:
        """Start a server, or end it until it is started again."""
        server = self.servers[name]
        if enabled:
            server.start()
        else:
            await server.aclose("disabled")
            if server.listing.tools:
                self._on_tools()

    async def restart(self, name: str) -> None:
        await self.servers[name].aclose()
        self.servers[name].start()

    async def settled(self) -> list[str]:
        """Wait for servers that are connecting, each as long as it may take; who is not ready."""
        names = [name for name, server in self.servers.items() if server.status == "pending"]
        waited = [self.servers[name] for name in names]
        ready = await asyncio.gather(*(server.settled(server.patience) for server in waited))
        return [name for name, good in zip(names, ready, strict=True) if not good]

    async def aclose(self) -> None:
        """End all servers. Nothing is told any more."""
        self._closed = True
        await asyncio.gather(*(server.aclose() for server in self.servers.values()), *self._ending)

    def _build(self, server: Server, listed: ListedTool) -> McpTool:
        config = server.config
        spec = ToolSpec(
            name=self._names.of(config.name, listed.name),
            description=listed.description,
            parameters=listed.parameters,
        )
        origin = Origin(
            server=config.name,
            tool=listed.name,
            transport=server.transport,
            source=config_source(config),
            title=listed.title,
            read_only=listed.read_only,
            instructions=server.instructions,
        )
        return McpTool(spec, origin, config, server.call, self._trade)

    def _heed(self, server: Server, what: Happened) -> None:
        if self._closed:
            return
        name = server.config.name
        if what == "status":
            self._emit(
                SessionMcpServerStatusChanged(
                    server_name=name,
                    status=server.status,
                    error=server.error or None,
                    config_source=config_source(server.config),
                )
            )
            if server.error:
                self._warn_once(f"The MCP server {name} cannot be used: {server.error}.", "failed")
            return
        if name in self._told:
            self._emit(McpToolsListChanged(server_name=name))
        self._told.add(name)
        number = len(server.listing.tools)
        self._emit(SessionMcpServerToolsLoaded(server_name=name, tool_count=number))
        if problems := server.listing.problems:
            more = f" (and {count(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
            found = f"Of the MCP server {name} {problems[-1]}{more}; see `trimtab mcp test {name}`."
            self._warn_once(found, "tools")
        self._tell_number()
        self._on_tools()

    def _tell_number(self) -> None:
        every = sum(len(server.listing.tools) for server in self.servers.values())
        if every > MANY_TOOLS:
            self._warn_once(
                f"The MCP servers have more than {MANY_TOOLS} tools together, and some model "
                "services take no more; choose with `tools` of an entry, or --excluded-tools.",
                "tools",
            )

    def _warn_once(self, message: str, what: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._emit(SessionWarning(warning_type=f"mcp_server_{what}", message=message))
