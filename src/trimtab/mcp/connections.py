"""How a session reaches its MCP servers: processes of its workspace, and the one way out."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import Launch, Origin, ServerAccess
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.secrets import SHORTEST, looks_secret
from trimtab.customize.context import SessionContext
from trimtab.mcp.host import McpHost
from trimtab.mcp.messages import LARGEST
from trimtab.mcp.tool import Prepare, ToolSupport
from trimtab.models.choose import is_offline
from trimtab.providers.connection import Timeouts
from trimtab.providers.http import HttpClient
from trimtab.providers.sse import SseParser
from trimtab.tools.output import limit_output
from trimtab.workspace.piped_program import PipedProgram

if TYPE_CHECKING:
    from trimtab.hooks.caller import HookCaller

SECRET_HEADERS = ("authorization", "key", "token", "secret", "cookie")
"""Substrings of header names that mark credentials."""
TIMEOUTS = Timeouts(connect=30.0, first_byte=3600.0, between_bytes=3600.0)
"""How long a server may be silent is decided call by call."""


class SessionConnections:
    """The ports of one session's servers. Connections are shared by all of them."""

    def __init__(
        self, context: SessionContext, hooks: "HookCaller | None", options: SessionOptions
    ) -> None:
        self._context = context
        self._hooks = hooks
        self._offline = is_offline(options, context.env)
        self._http: HttpClient | None = None

    def build_host(self, on_tools: Callable[[], None]) -> McpHost:
        context = self._context
        reach = ServerAccess(
            cwd=context.workspace.root,
            env=context.workspace.child_env,
            start=self._start,
            http=self._connect,
            read_events=lambda: SseParser(LARGEST),
        )
        prepare = None if self._hooks is None else ask_hooks(self._hooks)
        trade = ToolSupport(limit=limit_output, prepare=prepare)
        return McpHost(reach, trade, context.session.emit, on_tools)

    def hide_keys(self, servers: Iterable[McpServer]) -> None:
        """What is in the configuration of servers and looks like a key is shown to nobody."""
        if self._context.session.mask is not None:
            self._context.session.mask.add(key for one in servers for key in find_keys(one))

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def _start(self, launch: Launch) -> PipedProgram:
        self._context.workspace.shells.guard()
        return PipedProgram(launch)

    def _connect(self) -> HttpClient:
        if self._http is None:
            env = self._context.env
            self._http = HttpClient(env, offline=self._offline, timeouts=TIMEOUTS)
        return self._http


def find_keys(server: McpServer) -> Iterator[str]:
    for name, value in server.env.items():
        if looks_secret(name) and len(value) >= SHORTEST:
            yield value
    for name, value in server.headers.items():
        if any(word in name.lower() for word in SECRET_HEADERS):
            yield value.rpartition(" ")[2]


def ask_hooks(hooks: "HookCaller") -> Prepare:
    """Asks `preMcpToolCall` what a request is to say about itself besides its arguments."""

    async def prepare(origin: Origin, params: JsonObject, call_id: str) -> JsonObject:
        output = await hooks.call(
            "preMcpToolCall",
            serverName=origin.server,
            toolName=origin.tool,
            arguments=params["arguments"],
            toolCallId=call_id,
        )
        if "metaToUse" not in output:
            return params
        wanted = output["metaToUse"]
        return {**params, "_meta": wanted if isinstance(wanted, dict) else None}

    return prepare
