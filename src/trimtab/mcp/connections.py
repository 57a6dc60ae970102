"""Connects a session's MCP servers to its workspace, its HTTP client and its hooks."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.paths import find_home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.mcp import AnswerServer, Launch, Origin, ServerAccess, SignIn
from trimtab.contracts.options import Client, SessionOptions
from trimtab.contracts.secrets import SHORTEST, looks_secret
from trimtab.customize.context import SessionContext
from trimtab.customize.server_entry import find_secrets
from trimtab.mcp.host import McpHost
from trimtab.mcp.messages import MAX_MESSAGE_BYTES, ServerProblem
from trimtab.mcp.tool import Prepare, ToolSupport
from trimtab.mcp.tool_cache import ToolCache
from trimtab.models.choose import is_offline
from trimtab.providers.connection import Timeouts
from trimtab.providers.http import HttpClient
from trimtab.providers.sse import SseParser
from trimtab.tools.output import limit_output

if TYPE_CHECKING:
    from trimtab.hooks.caller import HookCaller
    from trimtab.mcp.elicitation import Elicitation
    from trimtab.mcp.oauth.login import Login
    from trimtab.mcp.oauth.store import GrantStore
    from trimtab.workspace.piped_program import PipedProgram

SECRET_HEADERS = ("authorization", "key", "token", "secret", "cookie")
"""Substrings of header names that mark credentials."""
TIMEOUTS = Timeouts(connect=30.0, first_byte=3600.0, between_bytes=3600.0)
"""Long, because each call has a time limit of its own."""


APPS: JsonObject = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
"""The extension that says that a client shows interfaces of servers."""


class SessionConnections:
    """The HTTP connections and processes that the servers of a session share."""

    def __init__(
        self,
        context: SessionContext,
        hooks: "HookCaller | None",
        options: SessionOptions,
        client: Client,
    ) -> None:
        self._context = context
        self._client = client
        self._hooks = hooks
        self._offline = is_offline(options, context.env)
        self._http: HttpClient | None = None
        self._keeps_sign_ins = options.customize.keeps_sign_ins
        self._home = context.home or find_home(context.env)
        self._cache = ToolCache(self._home, self._identify)
        self._logins: set[asyncio.Future[None]] = set()
        self.answer_sampling: AnswerServer | None = None
        self.has_apps = False
        """True if servers are told that their interfaces are shown."""

    def build_host(self, on_tools: Callable[[], None]) -> McpHost:
        prepare = None if self._hooks is None else ask_hooks(self._hooks)
        support = ToolSupport(limit=limit_output, prepare=prepare)
        cache = None if self._context.env.get("COPILOT_MCP_TOOL_CACHE") == "false" else self._cache
        return McpHost(self.access, support, self._context.session.emit, on_tools, cache)

    @cached_property
    def access(self) -> ServerAccess:
        """The means of the session to reach servers."""
        context = self._context
        answers: dict[str, AnswerServer] = {"elicitation/create": self._answer_form}
        if self.answer_sampling is not None:
            answers["sampling/createMessage"] = self.answer_sampling
        return ServerAccess(
            cwd=context.workspace.root,
            env=context.workspace.child_env,
            start=self._start,
            http=self._connect,
            read_events=lambda: SseParser(MAX_MESSAGE_BYTES),
            sign_in=self._sign_in,
            answers=answers,
            extensions=APPS if self.has_apps else {},
        )

    async def _answer_form(self, server: str, params: JsonObject, number: str | int) -> JsonObject:
        return await self._forms.answer(server, params, number)

    @cached_property
    def _forms(self) -> "Elicitation":
        from trimtab.mcp.elicitation import Elicitation  # few servers ask anything

        return Elicitation(self._client, self._context.session.emit)

    def hide_keys(self, servers: Iterable[McpServer]) -> None:
        """Mask the keys in the configuration of servers in all events."""
        if self._context.session.mask is not None:
            self._context.session.mask.add(key for server in servers for key in find_keys(server))

    async def aclose(self) -> None:
        for login in (logins := set(self._logins)):
            login.cancel()
        if logins:
            await asyncio.wait(logins)
        if self._http is not None:
            await self._http.aclose()

    @cached_property
    def _store(self) -> "GrantStore":
        from trimtab.mcp.oauth.store import GrantStore, MemoryGrantStore  # programs need none

        if not self._keeps_sign_ins:
            return MemoryGrantStore()
        return GrantStore(self._home, self._context.env)

    def _identify(self, server: McpServer) -> str:
        return self._store.identify(server)

    def _sign_in(self, server: McpServer) -> SignIn:
        from trimtab.mcp.oauth.session_sign_in import SessionSignIn

        return SessionSignIn(
            server, self._connect(), self._store, self._hide_tokens, self._client.ask_token
        )

    async def log_in(self, server: McpServer, host: McpHost, *, anew: bool) -> str:
        """Begin to sign in to a server; return the address that a person must open.

        Returns an empty text if the server needs no sign-in, or the previous one is still valid.
        Once the person has signed in, the server is connected again. Raises `ServerProblem`.
        """
        from trimtab.mcp.oauth.login import Login

        if not anew and host.servers[server.name].status == "connected":
            return ""
        self._store.check(server)
        shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        login = Login(server, self._connect(), shown.set_result, self._store.read(server))
        work = asyncio.ensure_future(self._finish_login(server, host, login))
        self._logins.add(work)
        work.add_done_callback(self._logins.discard)
        await asyncio.wait((shown, work), return_when=asyncio.FIRST_COMPLETED)
        if shown.done():
            return shown.result()
        shown.cancel()
        work.result()
        return ""

    async def _finish_login(self, server: McpServer, host: McpHost, login: "Login") -> None:
        from trimtab.mcp.brief_connection import connect_briefly

        access = msgspec.structs.replace(self.access, sign_in=lambda _: login)
        try:
            result = await login.run(lambda: connect_briefly(server, access))
            error = "" if result.status == "connected" else result.error
        except ServerProblem as problem:
            error = str(problem)
        if error:
            warning = f"Signing in to the MCP server {server.name} failed: {error}."
            self._context.session.emit(
                SessionWarning(warning_type="mcp_sign_in_failed", message=warning)
            )
            return
        if login.grant is not None:
            self._hide_tokens((login.grant.access_token, login.grant.refresh_token))
            self._store.write(server, login.grant)
        await host.restart(server.name)

    def _hide_tokens(self, tokens: tuple[str, ...]) -> None:
        if self._context.session.mask is not None:
            self._context.session.mask.add(tokens)

    def _start(self, launch: Launch) -> "PipedProgram":
        from trimtab.workspace.piped_program import PipedProgram  # known tools need no program

        self._context.workspace.shells.guard()
        return PipedProgram(launch)

    def _connect(self) -> HttpClient:
        if self._http is None:
            env = self._context.env
            self._http = HttpClient(env, offline=self._offline, timeouts=TIMEOUTS)
        return self._http


def find_keys(server: McpServer) -> Iterator[str]:
    """Yield the values of a server's variables, headers and sign-in that are probably keys."""
    yield from find_secrets(server.extra)
    for name, value in server.env.items():
        if looks_secret(name) and len(value) >= SHORTEST:
            yield value
    for name, value in server.headers.items():
        if any(word in name.lower() for word in SECRET_HEADERS):
            yield value.rpartition(" ")[2]


def ask_hooks(hooks: "HookCaller") -> Prepare:
    """Return a function that lets `preMcpToolCall` hooks replace the metadata of a call."""

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
        meta = output["metaToUse"]
        return {**params, "_meta": meta if isinstance(meta, dict) else None}

    return prepare
