"""The MCP servers of a session: starts and stops them, names their tools, reports changes."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import EventData
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.setup import (
    McpPromptsListChanged,
    McpResourcesListChanged,
    McpToolsListChanged,
    SessionMcpServerRemoved,
    SessionMcpServerStatusChanged,
    SessionMcpServerToolsLoaded,
)
from trimtab.contracts.mcp import Origin, ServerAccess, config_source
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.contracts.tool import Tool
from trimtab.mcp.listed_tools import ListedTool
from trimtab.mcp.server import CONNECT_WAIT, Change, ServerConnection
from trimtab.mcp.server_notices import ServerNotices
from trimtab.mcp.tool import McpTool, ToolSupport
from trimtab.mcp.tool_cache import ToolCache

MANY_TOOLS = 100
"""More tools, together with the built-in ones, exceed the limit of some model services."""
MAX_NAME_LENGTH = 64


class ToolNames:
    """Assigns each tool of a server a unique name, which it keeps while the session lives."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def of(self, server: str, tool: str) -> str:
        key = server, tool
        if key not in self._names:
            self._names[key] = self._find_free(sanitize(f"{server}-{tool}"))
        return self._names[key]

    def _find_free(self, name: str) -> str:
        free, number = name, 1
        while free in self._taken:
            number += 1
            suffix = f"-{number}"
            free = name[: MAX_NAME_LENGTH - len(suffix)] + suffix
        self._taken.add(free)
        return free


def sanitize(name: str) -> str:
    """Return a name that every model service accepts."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:MAX_NAME_LENGTH]


class McpHost:
    """Connects to servers and supplies their tools; calls `on_tools` when those change."""

    def __init__(
        self,
        access: ServerAccess,
        support: ToolSupport,
        emit: Callable[[EventData], object],
        on_tools: Callable[[], None],
        cache: ToolCache | None = None,
    ) -> None:
        self.servers: dict[str, ServerConnection] = {}
        self._access = access
        self._support = support
        self._emit = emit
        self._on_tools = on_tools
        self._cache = cache
        self._names = ToolNames()
        self._listed: set[str] = set()
        self._warnings: set[str] = set()
        self._closed = False
        self._is_starting = False
        self._has_changed = False
        self.has_apps = False
        """True if a client shows interfaces of servers (MCP Apps); their tools are left to it."""
        self._closing: set[asyncio.Task[None]] = set()
        self.on_resource_update: Callable[[str, str], None] = lambda *_: None
        """Called with a server and the address of one of its resources that has changed."""
        self._notices = ServerNotices(emit, self._on_update)

    @property
    def tools(self) -> list[McpTool]:
        """The tools of all servers, including servers that lost their connection."""
        return [
            self._build(server, listed)
            for server in self.servers.values()
            if server.status not in ("disabled", "stopped")
            for listed in server.listing.tools
            if not (listed.app_only and self.has_apps)
        ]

    @property
    def resource_tools(self) -> list[Tool]:
        """The tools for resources, if a connected server has resources."""
        having = {
            name: server
            for name, server in self.servers.items()
            if server.status not in ("disabled", "stopped") and "resources" in server.capabilities
        }
        if not having:
            return []
        from trimtab.mcp.resources import LIST, READ, ResourceTool

        return [ResourceTool(name, having, self._support.limit) for name in (LIST, READ)]

    async def use(self, configured: Mapping[str, McpServer]) -> None:
        """Use exactly these servers: start new ones, restart changed ones, stop the others."""
        changed = [
            server for name, server in self.servers.items() if configured.get(name) != server.config
        ]
        await self._close(changed)
        for server in changed:
            del self.servers[server.config.name]
            if server.config.name not in configured:
                self._emit(SessionMcpServerRemoved(server_name=server.config.name))
        before, self.servers = self.servers, {}
        self._is_starting, self._has_changed = True, bool(changed)
        for name, config in configured.items():
            server = before.get(name) or ServerConnection(
                config, self._access, self._on_change, self._cache
            )
            server.on_notice = self._notices.show
            self.servers[name] = server
            if name not in before:
                await self.switch(name, enabled=config.enabled)
        self._is_starting = False
        if self._has_changed:
            self._on_tools()

    async def _close(self, servers: Sequence[ServerConnection]) -> None:
        """Close connections; slow ones finish closing in the background."""
        if servers:
            closing = {asyncio.ensure_future(server.aclose()) for server in servers}
            self._closing |= closing
            for task in closing:
                task.add_done_callback(self._closing.discard)
            await asyncio.wait(closing, timeout=CONNECT_WAIT)

    async def switch(self, name: str, *, enabled: bool) -> None:
        """Start a server, or stop it until it is started again."""
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

    def find_log_lines(self, name: str = "") -> list[str]:
        """Return the last lines that a server has logged, or all servers."""
        kept = self._notices.kept
        return [line for server, lines in kept.items() if name in ("", server) for line in lines]

    async def set_log_level(self, name: str, level: str) -> None:
        """Have the lines of a server from a level on sent and shown, for this session."""
        self._notices.levels[name] = level
        await self.servers[name].set_log_level(level)

    def _on_update(self, server: str, uri: str) -> None:
        self.on_resource_update(server, uri)

    async def settled(self) -> list[str]:
        """Wait for connecting servers, each for its own time; return the names of slow ones.

        Lists that do not hold any more are fetched again meanwhile.
        """
        for server in self.servers.values():
            server.refresh()
        names = [
            name
            for name, server in self.servers.items()
            if server.status == "pending" and not server.is_cached
        ]
        pending = [self.servers[name] for name in names]
        settled = await asyncio.gather(*(server.settled(server.wait_left) for server in pending))
        return [name for name, is_settled in zip(names, settled, strict=True) if not is_settled]

    async def aclose(self) -> None:
        """Stop all servers. No more events are emitted."""
        self._closed = True
        servers = self.servers.values()
        await asyncio.gather(*(server.aclose() for server in servers), *self._closing)

    def _build(self, server: ServerConnection, listed: ListedTool) -> McpTool:
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
        return McpTool(spec, origin, config, server.call, self._support)

    def _on_change(self, server: ServerConnection, change: Change) -> None:
        if self._closed:
            return
        name = server.config.name
        if change == "status":
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
        if change != "tools":
            kind = McpPromptsListChanged if change == "prompts" else McpResourcesListChanged
            self._emit(kind(server_name=name))
            return
        if name in self._listed:
            self._emit(McpToolsListChanged(server_name=name))
        self._listed.add(name)
        number = len(server.listing.tools)
        self._emit(SessionMcpServerToolsLoaded(server_name=name, tool_count=number))
        if problems := server.listing.problems:
            more = f" (and {count(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
            message = f"MCP server {name}: {problems[-1]}{more}; see `trimtab mcp test {name}`."
            self._warn_once(message, "tools")
        self._check_number()
        self._has_changed = True
        if not self._is_starting:  # the lists of many known servers are offered together
            self._on_tools()

    def _check_number(self) -> None:
        total = sum(len(server.listing.tools) for server in self.servers.values())
        if total > MANY_TOOLS:
            self._warn_once(
                f"The MCP servers have more than {MANY_TOOLS} tools together, which some model "
                "services do not accept; select some with `tools` of an entry or --excluded-tools.",
                "tools",
            )

    def _warn_once(self, message: str, kind: str) -> None:
        if message not in self._warnings:
            self._warnings.add(message)
            self._emit(SessionWarning(warning_type=f"mcp_server_{kind}", message=message))
