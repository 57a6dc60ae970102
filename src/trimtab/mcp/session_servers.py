"""Decides which configured MCP servers a session uses, and supplies their tools.

The rest of the package is imported only if a server is configured.
"""

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.config.files import read_regular
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.mcp import TRUSTED_SOURCES, config_source
from trimtab.contracts.questions import Loadable
from trimtab.contracts.tool import Tool
from trimtab.customize.folders import server_paths

if TYPE_CHECKING:
    from trimtab.contracts.customization import McpServer
    from trimtab.contracts.events.envelope import JsonObject
    from trimtab.contracts.mcp import AnswerServer
    from trimtab.contracts.options import Client, SessionOptions
    from trimtab.customize.context import SessionContext
    from trimtab.customize.customizations import Customizations
    from trimtab.hooks.caller import HookCaller
    from trimtab.mcp.connections import SessionConnections
    from trimtab.mcp.host import McpHost
    from trimtab.mcp.server import ServerConnection

SERVER_FILES = ("mcp.json", "mcp-config.json")
"""The names of files that contain servers and nothing else."""
APPS = "MCP_APPS"
"""The feature flag of interfaces of servers."""
MAX_SETTINGS_BYTES = 16 * 1024 * 1024


class SessionServers:
    """The MCP servers of a session. They connect when the first prompt is prepared."""

    def __init__(
        self,
        context: "SessionContext",
        hooks: "HookCaller | None",
        on_tools: Callable[[], None],
        options: "Callable[[], SessionOptions]",
        client: "Client",
    ) -> None:
        self._context = context
        self._hooks = hooks
        self._on_tools = on_tools
        self._options = options
        self._client = client
        self._host: McpHost | None = None
        self._connections: SessionConnections | None = None
        self._used: Mapping[str, McpServer] = {}
        self._accepted: set[str] | None = None
        self._slow: set[str] = set()
        self._found: set[str] = set()
        self._starting = asyncio.Lock()
        self.answer_sampling: AnswerServer | None = None
        """Has the session's model answer a server; set by whoever runs the agent."""
        self.on_resource_update: Callable[[str, str], None] = lambda *_: None
        """Called with a server and the address of one of its resources that has changed."""

    @property
    def has_apps(self) -> bool:
        """True if a client shows interfaces of servers, and the feature is on (MCP Apps)."""
        custom = self._context.customizations
        return self._options().mcp_apps and custom is not None and APPS in custom.features

    @property
    def tools(self) -> Sequence[Tool]:
        return self._host.tools if self._host is not None else ()

    def choose_tools(self, window: int | None) -> Sequence[Tool]:
        """Return the tools for a model with a window; many large ones are hidden by a search."""
        if self._host is None:
            return ()
        from trimtab.mcp.deferral import choose_shown

        shown = choose_shown(self._host.tools, window, self._found, self._on_tools)
        return [*shown, *self._host.resource_tools]

    def describe(self) -> list[dict[str, object]]:
        """Return every server with its status, as events and the SDK describe them."""
        host = self._host
        known = host.servers if host is not None else {}
        return [describe_server(server, known.get(name)) for name, server in self._used.items()]

    async def refresh(self) -> None:
        """Apply the current configuration, and wait a moment for new servers to connect."""
        await self.start()
        if self._host is None:
            return
        pending = set(await self._host.settled())
        if new := pending - self._slow:
            self._slow |= new
            message = (
                f"The MCP servers {', '.join(sorted(new))} are not connected yet, so the model "
                "starts without their tools; it gets them once they are connected."
            )
            warning = SessionWarning(warning_type="mcp_servers_pending", message=message)
            self._context.session.emit(warning)

    async def start(self) -> None:
        """Apply the current configuration, without waiting for connections."""
        async with self._starting:
            configured = self._find()
            if configured != self._used:
                await self._use(configured)
            elif self._accepted is None:
                await self._admit(configured)

    async def reload(self) -> None:
        """Read the configuration again, and decide anew about refused servers."""
        async with self._starting:
            self._accepted = None
            await self._use(self._find())

    def _find(self) -> "Mapping[str, McpServer]":
        custom = self._context.customizations
        return {} if custom is None else find_configured(custom)

    async def _use(self, configured: "Mapping[str, McpServer]") -> None:
        if self._host is None or self._connections is None:
            from trimtab.mcp.connections import SessionConnections

            self._connections = SessionConnections(
                self._context, self._hooks, self._options(), self._client
            )
            self._connections.answer_sampling = self.answer_sampling
            self._connections.has_apps = self.has_apps
            self._host = self._connections.build_host(self._on_tools)
            self._host.on_resource_update = self.on_resource_update
            self._host.has_apps = self.has_apps
        self._connections.hide_keys(configured.values())
        admitted = await self._admit(configured)
        self._warn_of_unconfined(admitted)
        await self._host.use(admitted)
        self._used = configured

    def _warn_of_unconfined(self, admitted: "Mapping[str, McpServer]") -> None:
        programs = [
            server.name for server in admitted.values() if server.enabled and server.type == "local"
        ]
        if self._context.sandbox is not None and programs:
            message = (
                f"The MCP servers {', '.join(programs)} run outside the sandbox, which confines "
                "commands only; disable them with `trimtab mcp disable` if you do not trust them."
            )
            warning = SessionWarning(warning_type="mcp_servers_unconfined", message=message)
            self._context.session.emit(warning)

    async def switch(self, name: str, *, enabled: bool) -> None:
        """Enable or disable a server for this session."""
        self.find(name)
        assert self._host is not None
        await self._host.switch(name, enabled=enabled)

    def retry_sign_ins(self) -> None:
        """Connect again to servers that want a token, because a client now supplies tokens."""
        for server in self._host.servers.values() if self._host is not None else ():
            server.retry_sign_in()

    async def log_in(self, name: str, *, anew: bool) -> str:
        """Begin to sign in to a server; return the address to open, or an empty text.

        Raises `UsageError`.
        """
        from trimtab.mcp.messages import ServerProblem

        server = self.find(name)
        assert self._host is not None
        assert self._connections is not None
        if server.config.type == "local":
            raise UsageError(f"{name} is a program on this machine; nobody signs in to it.")
        await server.settled(None)
        try:
            return await self._connections.log_in(server.config, self._host, anew=anew)
        except ServerProblem as problem:
            raise UsageError(f"Signing in to {name} failed: {problem}.") from None

    async def request(self, name: str, method: str, params: "JsonObject") -> "JsonObject":
        """Send a server a request of the protocol. Raises `UsageError`."""
        from trimtab.mcp.messages import RemoteError, ServerProblem

        await self.start()
        try:
            return await self.find(name).request(method, params)
        except (RemoteError, ServerProblem) as error:
            raise UsageError(f"The MCP server {name} refused: {error}.") from None
        except TimeoutError:
            raise UsageError(f"The MCP server {name} did not answer; try again.") from None

    def has_prompts(self, name: str) -> bool:
        """Return True for the name of a server, whose prompts are `/SERVER:PROMPT`."""
        return name in self._find()

    async def complete(self, text: str) -> tuple[str, list[str]]:
        """Return the last word of `/SERVER:PROMPT …` and what it may become; none if unknown."""
        from trimtab.mcp.completion import TYPED, complete

        typed = TYPED.fullmatch(text)
        if typed is None or typed[1] not in self._find():
            return "", []
        server, name, words = typed.groups()
        try:
            return await complete(
                lambda method, given: self.request(server, method, given), name, words
            )
        except UsageError:  # a completion that fails is only not offered
            return "", []

    def find_log_lines(self, name: str = "") -> list[str]:
        """Return the last lines that a server has logged, or all. Raises `UsageError`."""
        if name:
            self.find(name)
        return self._host.find_log_lines(name) if self._host is not None else []

    async def set_log_level(self, name: str, level: str) -> None:
        """Show the lines of a server from a level on. Raises `UsageError`."""
        self.find(name)
        assert self._host is not None
        await self._host.set_log_level(name, level)

    async def expand_prompt(self, text: str) -> str | None:
        """Return the text that `/SERVER:PROMPT` stands for; None if it is something else.

        Raises `UsageError`.
        """
        from trimtab.mcp.prompts import COMMAND, expand_prompt

        match = COMMAND.fullmatch(text.strip())
        if match is None or match[1] not in self._find():
            return None
        await self.start()
        server = match[1]
        return await expand_prompt(
            lambda method, params: self.request(server, method, params), match[2], match[3] or ""
        )

    async def restart(self, name: str) -> None:
        self.find(name)
        assert self._host is not None
        await self._host.restart(name)

    def has(self, name: str) -> bool:
        """Return True if a server has this name, whatever its state."""
        return self._host is not None and name in self._host.servers

    def find(self, name: str) -> "ServerConnection":
        """Return a server by name. Raises `UsageError`."""
        if self._host is None or not self._host.servers:
            raise UsageError(
                f"Unknown MCP server {name!r}: it is not connected. No MCP host initialized: this "
                "session has no servers; list those of this folder with `trimtab mcp`."
            )
        if name not in self._host.servers:
            raise UsageError(
                f"Unknown MCP server {name!r}: it is not connected; list those of this folder with "
                "`trimtab mcp`."
            )
        return self._host.servers[name]

    async def aclose(self) -> None:
        if self._host is not None and self._connections is not None:
            await self._host.aclose()
            await self._connections.aclose()

    async def _admit(self, configured: "Mapping[str, McpServer]") -> "dict[str, McpServer]":
        """Return the servers that may be used.

        A folder's servers must be unchanged since the folder was trusted, and since the session
        started, because its own agent may have written them.
        """
        trust = self._context.trust
        if trust is None:
            return dict(configured)
        own = [
            server
            for server in configured.values()
            if server.enabled and is_from_folder(server, trust.root)
        ]
        entries = [identify(server, trust.root) for server in own]
        if self._accepted is None:
            admitted = await trust.admit(self._context.session, "mcp", entries)
            pairs = zip(entries, admitted, strict=True)
            self._accepted = {digest for (_, digest), allowed in pairs if allowed}
            trust.remember("mcp")
        else:
            admitted = [digest in self._accepted for _, digest in entries]
            pairs = zip(entries, admitted, strict=True)
            self._warn_of_changes([item.path for (item, _), allowed in pairs if not allowed])
        refused = {server.name for server, ok in zip(own, admitted, strict=True) if not ok}
        running = self._host.servers if self._host is not None else {}
        return {
            name: running[name].config if name in refused else server
            for name, server in configured.items()
            if name not in refused or name in running
        }

    def _warn_of_changes(self, changed: Sequence[str]) -> None:
        if changed:
            message = (
                f"{', '.join(changed[:3])} changed while the session was open, so the change is "
                "not used; start or resume a session to use it."
            )
            warning = SessionWarning(warning_type="mcp_changed", message=message)
            self._context.session.emit(warning)


def is_from_folder(server: "McpServer", root: str) -> bool:
    """Return True if a file of the folder configures a server."""
    inside = os.path.realpath(server.file).startswith(os.path.realpath(root) + os.sep)
    return inside and server.source not in TRUSTED_SOURCES


def identify(server: "McpServer", root: str) -> tuple[Loadable, str]:
    """Return the name of a folder's entry for a person, and the digest of its present state."""
    name = f"{os.path.relpath(server.file, root)} {server.name}"
    return Loadable("mcp", name), digest(server, root)


def digest(server: "McpServer", root: str) -> str:
    """Return a hash of a server's entry and of the repository's scripts that it names."""
    from trimtab.contracts.hooks import HookEntry
    from trimtab.customize.hook_files import fingerprint

    entry = HookEntry(
        event=server.digest,
        type="command",
        origin="repository",
        file="",
        argv=(server.command, *server.args),
        folder=server.cwd or "",
    )
    return fingerprint(entry, root)


def find_configured(custom: "Customizations") -> "Mapping[str, McpServer]":
    """Return the configured servers.

    Files are parsed only if one of them mentions a server: the settings of other agents can be
    large, and most contain none.
    """
    paths = server_paths(custom.server_places)
    if not custom.brings_servers and not any(map(mentions_servers, paths)):
        return {}
    return custom.servers.servers


def mentions_servers(path: str) -> bool:
    """Return True if a file may configure a server, judged without parsing it."""
    if path.endswith(SERVER_FILES):
        return os.path.exists(path)
    try:
        data = read_regular(path, MAX_SETTINGS_BYTES)
    except OSError:
        return False
    found = re.search(rb'\[mcp_servers|"mcp_?[sS]ervers"\s*:\s*\{\s*[^}\s]', data)
    return found is not None


def describe_server(
    server: "McpServer", connection: "ServerConnection | None"
) -> dict[str, object]:
    """Return a server as `session.mcp_servers_loaded` and the SDK describe it.

    A server without a connection is refused: it changed after its folder was trusted.
    """
    description: dict[str, object] = {
        "name": server.name,
        "status": connection.status if connection else "stopped",
        "source": config_source(server),
        "transport": "stdio" if server.type == "local" else server.type,
    }
    if server.display_name:
        description["displayName"] = server.display_name
    if connection is None:
        description["error"] = "it was added or changed after its folder was trusted"
    elif connection.error:
        description["error"] = connection.error
    if connection is not None and connection.instructions:
        description["serverMetadata"] = {"instructions": connection.instructions}
    return description
