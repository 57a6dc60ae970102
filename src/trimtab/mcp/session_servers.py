"""The MCP servers of one session: which of those configured may be used, and what they give."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.mcp import config_source
from trimtab.contracts.questions import Loadable
from trimtab.contracts.tool import Tool
from trimtab.customize.folders import server_paths

if TYPE_CHECKING:
    from trimtab.contracts.customization import McpServer
    from trimtab.contracts.options import SessionOptions
    from trimtab.customize.context import SessionContext
    from trimtab.customize.customizations import Customizations
    from trimtab.hooks.caller import HookCaller
    from trimtab.mcp.connections import SessionConnections
    from trimtab.mcp.host import McpHost
    from trimtab.mcp.server import Server

OWN_FILES = ("mcp.json", "mcp-config.json")
"""How files end that are about servers and nothing else."""
LARGEST_SETTINGS = 16 * 1024 * 1024
BROUGHT = ("user", "flag", "sdk", "plugin")
"""Sources that a person or their program chose; nothing in a folder can be one of them."""


class SessionServers:
    """Connects when the first prompt is prepared. A session without servers imports nothing."""

    def __init__(
        self,
        context: "SessionContext",
        hooks: "HookCaller | None",
        on_tools: Callable[[], None],
        options: "Callable[[], SessionOptions]",
    ) -> None:
        self._context = context
        self._hooks = hooks
        self._on_tools = on_tools
        self._options = options
        self._host: McpHost | None = None
        self._reach: SessionConnections | None = None
        self._used: Mapping[str, McpServer] = {}
        self._accepted: set[str] | None = None
        self._slow: set[str] = set()
        self._starting = asyncio.Lock()

    @property
    def tools(self) -> Sequence[Tool]:
        return self._host.tools if self._host is not None else ()

    def describe(self) -> list[dict[str, object]]:
        """Every server and how it is doing, as events and the SDK know them."""
        host = self._host
        known = host.servers if host is not None else {}
        return [describe_server(one, known.get(name)) for name, one in self._used.items()]

    async def refresh(self) -> None:
        """Use what is configured now; servers that are new get a moment to connect."""
        await self.start()
        if self._host is None:
            return
        pending = set(await self._host.settled())
        if new := pending - self._slow:
            self._slow |= new
            message = (
                f"The MCP servers {', '.join(sorted(new))} are not connected yet, so the model "
                "starts without their tools; it gets them as soon as they are."
            )
            warning = SessionWarning(warning_type="mcp_servers_pending", message=message)
            self._context.session.emit(warning)

    async def start(self) -> None:
        """Use what is configured now, without waiting for it."""
        async with self._starting:
            configured = self._find()
            if configured != self._used:
                await self._use(configured)
            elif self._accepted is None:
                await self._admit(configured)

    async def reload(self) -> None:
        """Look at the configuration again, whatever was refused before."""
        async with self._starting:
            self._accepted = None
            await self._use(self._find())

    def _find(self) -> "Mapping[str, McpServer]":
        custom = self._context.customizations
        return {} if custom is None else find_configured(custom)

    async def _use(self, configured: "Mapping[str, McpServer]") -> None:
        if self._host is None or self._reach is None:
            from trimtab.mcp.connections import SessionConnections

            self._reach = SessionConnections(self._context, self._hooks, self._options())
            self._host = self._reach.build_host(self._on_tools)
        self._reach.hide_keys(configured.values())
        admitted = await self._admit(configured)
        self._tell_unconfined(admitted)
        await self._host.use(admitted)
        self._used = configured

    def _tell_unconfined(self, admitted: "Mapping[str, McpServer]") -> None:
        programs = [one.name for one in admitted.values() if one.enabled and one.type == "local"]
        if self._context.sandbox is not None and programs:
            message = (
                f"The MCP servers {', '.join(programs)} run outside of the sandbox, which holds "
                "commands only; switch them off with `trimtab mcp disable` if that is not meant."
            )
            warning = SessionWarning(warning_type="mcp_servers_unconfined", message=message)
            self._context.session.emit(warning)

    async def switch(self, name: str, *, enabled: bool) -> None:
        """Switch a server on or off for this session."""
        self.find(name)
        assert self._host is not None
        await self._host.switch(name, enabled=enabled)

    async def restart(self, name: str) -> None:
        self.find(name)
        assert self._host is not None
        await self._host.restart(name)

    def find(self, name: str) -> "Server":
        """Raises `UsageError`."""
        if self._host is None or name not in self._host.servers:
            raise UsageError(f"There is no MCP server {name!r} in this session; see `trimtab mcp`.")
        return self._host.servers[name]

    async def aclose(self) -> None:
        if self._host is not None and self._reach is not None:
            await self._host.aclose()
            await self._reach.aclose()

    async def _admit(self, configured: "Mapping[str, McpServer]") -> "dict[str, McpServer]":
        """Those that may be used: a folder's only as they were when it was trusted, and while the
        session lives only as they were when it began: its own agent may have written others.
        """
        trust = self._context.trust
        if trust is None:
            return dict(configured)
        mine = [
            one for one in configured.values() if one.enabled and is_from_folder(one, trust.root)
        ]
        entries = [identify(one, trust.root) for one in mine]
        if self._accepted is None:
            admitted = await trust.admit(self._context.session, "mcp", entries)
            pairs = zip(entries, admitted, strict=True)
            self._accepted = {digest for (_, digest), good in pairs if good}
            trust.remember("mcp")
        else:
            admitted = [digest in self._accepted for _, digest in entries]
            pairs = zip(entries, admitted, strict=True)
            self._tell_changed([item.path for (item, _), good in pairs if not good])
        refused = {one.name for one, good in zip(mine, admitted, strict=True) if not good}
        running = self._host.servers if self._host is not None else {}
        return {
            name: running[name].config if name in refused else one
            for name, one in configured.items()
            if name not in refused or name in running
        }

    def _tell_changed(self, changed: Sequence[str]) -> None:
        if changed:
            message = (
                f"{', '.join(changed[:3])} changed while the session was open, so it is not used. "
                "Start or resume a session to use what is there now."
            )
            warning = SessionWarning(warning_type="mcp_changed", message=message)
            self._context.session.emit(warning)


def is_from_folder(server: "McpServer", root: str) -> bool:
    """Whether a file of the folder configures a server."""
    inside = os.path.realpath(server.file).startswith(os.path.realpath(root) + os.sep)
    return inside and server.source not in BROUGHT


def identify(server: "McpServer", root: str) -> tuple[Loadable, str]:
    """An entry of the folder by its name, and what it is now."""
    name = f"{os.path.relpath(server.file, root)} {server.name}"
    return Loadable("mcp", name), digest(server, root)


def digest(server: "McpServer", root: str) -> str:
    """What a server is: its entry, and the scripts of the repository it names."""
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
    """The servers of a session. Files are parsed only where one of them names a server: settings
    of other agents can be large, and most have none.
    """
    paths = server_paths(custom.server_places)
    if not custom.brings_servers and not any(map(names_servers, paths)):
        return {}
    return custom.servers.servers


def names_servers(path: str) -> bool:
    """Whether a file may name a server; an object without entries is how most say that it does
    not."""
    if path.endswith(OWN_FILES):
        return os.path.exists(path)
    import re

    from trimtab.config.files import read_regular

    try:
        data = read_regular(path, LARGEST_SETTINGS)
    except OSError:
        return False
    found = re.search(rb'\[mcp_servers|"mcp_?[sS]ervers"\s*:\s*\{\s*[^}\s]', data)
    return found is not None


def describe_server(server: "McpServer", state: "Server | None") -> dict[str, object]:
    """A server as `session.mcp_servers_loaded` and the SDK describe it.

    One without a state is not used: it was changed after its folder was trusted.
    """
    described: dict[str, object] = {
        "name": server.name,
        "status": state.status if state else "stopped",
        "source": config_source(server),
        "transport": "stdio" if server.type == "local" else server.type,
    }
    if server.display_name:
        described["displayName"] = server.display_name
    if state is None:
        described["error"] = "it was changed or added since its folder was trusted"
    elif state.error:
        described["error"] = state.error
    if state is not None and state.instructions:
        described["serverMetadata"] = {"instructions": state.instructions}
    return described
