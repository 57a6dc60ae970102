"""A connection to one MCP server: made when needed, and again after it is lost."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import ServerAccess, Transport
from trimtab.contracts.secrets import MASK
from trimtab.contracts.text import neutralise
from trimtab.mcp.listed_tools import Listing
from trimtab.mcp.messages import MAX_REQUEST_SECONDS, Progress, RemoteError, ServerProblem
from trimtab.mcp.result_cache import MAX_SECONDS, ResultCache
from trimtab.mcp.tool_cache import CachedServer, ToolCache

if TYPE_CHECKING:
    from trimtab.mcp.client import McpClient, ServerInfo

DEFAULT_TIMEOUT = 60.0
"""The seconds a server may take to connect, and to answer a call without progress."""
CONNECT_WAIT = 0.5
"""The seconds that a prompt waits for a server, unless the server's entry sets another time."""
LISTEN_DELAYS = (1.0, 5.0, 30.0, 60.0)
"""The seconds before a subscription that ended is made again."""
CACHED_DELAY = 1.0
"""The seconds after which a server whose tools are known is connected without a call."""
RELIST_INTERVAL = 1.0
MAX_SUBSCRIPTIONS = 20
"""Resources of one server whose changes are reported at the same time."""
MAX_ERROR_LENGTH = 1000
MAX_INSTRUCTIONS_LENGTH = 4000
MIN_SECRET_LENGTH = 6

Status = Literal["pending", "connected", "failed", "needs-auth", "disabled", "stopped"]
Change = Literal["status", "tools", "prompts", "resources"]


def find_subscriptions(capabilities: Mapping[str, Any]) -> JsonObject:
    """Return the changes a server can announce, as `subscriptions/listen` names them."""
    return {
        f"{kind}ListChanged": True
        for kind in ("tools", "prompts", "resources")
        if isinstance(found := capabilities.get(kind), dict) and found.get("listChanged") is True
    }


def find_timeout(config: McpServer) -> float:
    """Return the seconds that a server may take to connect, and to answer without progress."""
    timeout = config.timeout
    return timeout / 1000 if timeout is not None and timeout > 0 else DEFAULT_TIMEOUT


class ServerConnection:
    """A configured server, the state of its connection, and its tools.

    A server keeps its tools after its connection is lost: the next call connects again.
    `on_change` is called after every change of the status or the tools.
    """

    def __init__(
        self,
        config: McpServer,
        access: ServerAccess,
        on_change: Callable[["ServerConnection", Change], None],
        cache: ToolCache | None = None,
    ) -> None:
        self.config = config
        self.status: Status = "stopped"
        self.error = ""
        self.since = 0
        """The time of the last change of status, in milliseconds since the epoch."""
        self.instructions = ""
        self.listing = Listing()
        self.capabilities: Mapping[str, Any] = {}
        self.is_cached = False
        """True if its tools are known from an earlier session, so that nobody waits for it."""
        self._access = access
        self._on_change = on_change
        self._cache = cache
        self._version = ""
        self._holds_until = 0.0
        self._log_level = ""
        self._results = ResultCache()
        self._wanted = asyncio.Event()
        self._client: McpClient | None = None
        self._stale = False
        self._listed = False
        self._started = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._subscribed: dict[str, None] = {}
        """The addresses of resources whose changes are reported, the oldest first."""
        self.on_notice: Callable[[McpServer, str, JsonObject], None] = lambda *_: None
        """Called with a line of the server's log, or a resource that has changed."""

    @property
    def transport(self) -> Transport:
        return "stdio" if self.config.type == "local" else self.config.type

    @property
    def wait_left(self) -> float:
        """The seconds that a prompt should still wait for the server to connect."""
        threshold = self.config.extra.get("slowConnectionThresholdMs")
        seconds = CONNECT_WAIT
        if isinstance(threshold, int) and threshold > 0:
            seconds = threshold / 1000
        return max(0.0, self._started + seconds - asyncio.get_running_loop().time())

    def start(self) -> None:
        """Connect in the background. Tools that are known from before are there at once."""
        if self._client is not None or self.is_connecting:
            return
        self._set("pending")
        self._started = asyncio.get_running_loop().time()
        known = None
        if self._cache is not None and not self._listed:
            known = self._cache.read(self.config)
        if known is None:
            self._connecting = self._run(self._connect())
            return
        self._version, self.instructions = known.version, known.instructions
        self.capabilities = known.capabilities
        self._holds_until = known.holds_until
        self.is_cached = True
        self._use(known.listing)
        self._connecting = self._run(self._connect_later())

    @property
    def is_connecting(self) -> bool:
        return self._connecting is not None and not self._connecting.done()

    async def _connect_later(self) -> None:
        """Connect when a call needs it, or soon anyway, to notice a list that has changed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CACHED_DELAY):
                await self._wanted.wait()
        await self._connect()

    async def hurry(self) -> bool:
        """Connect now, also if its tools are known; return False if the time was not enough."""
        self._wanted.set()
        return await self.settled(self.wait_left)

    def retry_sign_in(self) -> None:
        """Connect again, if it wants a sign-in now or once it has tried to connect."""
        self._run(self._retry_sign_in())

    async def _retry_sign_in(self) -> None:
        await self.settled(None)
        if self.status == "needs-auth":
            self.start()

    async def settled(self, seconds: float | None) -> bool:
        """Wait until it is connected or has failed; return False if the time was not enough."""
        if self._connecting is not None:
            await asyncio.wait((self._connecting,), timeout=seconds)
        return self.status != "pending"

    async def call(self, params: JsonObject, progress: Progress) -> JsonObject:
        """Call a tool. Raises `ServerProblem`, `RemoteError` or `TimeoutError`."""
        client = await self._connected()
        headers = self._parameter_headers(params) if client.is_stateless else {}
        try:
            return await client.request("tools/call", params, self._seconds, progress, headers)
        except ServerProblem as problem:
            if problem.gone and self._client is client:
                self._lose(str(problem))
            raise ServerProblem(self._sanitize(str(problem)), gone=problem.gone) from None

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request that calls no tool.

        Raises `ServerProblem`, `RemoteError` or `TimeoutError`.
        """
        client = await self._connected()
        if client.is_stateless and (kept := self._results.find(method, params)) is not None:
            return kept
        try:
            answer = await client.request(method, params, self._seconds)
        except ServerProblem as problem:
            raise ServerProblem(self._sanitize(str(problem)), gone=problem.gone) from None
        if client.is_stateless:
            self._results.keep(method, params, answer)
        return answer

    def _parameter_headers(self, params: JsonObject) -> dict[str, str]:
        from trimtab.mcp.parameter_headers import build_headers

        tool = next((tool for tool in self.listing.tools if tool.name == params["name"]), None)
        return {} if tool is None else build_headers(tool.headers, params["arguments"])

    async def aclose(self, status: Status = "stopped") -> None:
        """Close the connection and cancel all tasks of it."""
        for task in (tasks := set(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        client, self._client = self._client, None
        if client is not None:
            client.on_lost = lambda _: None
            await client.aclose()
        self._listed = False
        self._results.clear()
        self._set(status)

    @property
    def _seconds(self) -> float:
        return find_timeout(self.config)

    async def _connected(self) -> "McpClient":
        if self.status in ("disabled", "stopped"):
            raise ServerProblem("it is disabled")
        self.start()
        self._wanted.set()
        if self._client is None and self._connecting is not None:
            await asyncio.wait((self._connecting,))
        if self._client is None:
            raise ServerProblem(self.error or "it was stopped")
        return self._client

    async def _connect(self) -> None:
        from trimtab.mcp.connecting import build_client, connect_client

        tried: list[McpClient] = []

        def build() -> "McpClient":
            tried.append(build_client(self.config, self._access, self._on_notice))
            return tried[-1]

        client: McpClient | None = None
        try:
            async with asyncio.timeout(self._seconds):
                client, info = await connect_client(
                    build,
                    self.config,
                    self._seconds,
                    self._version,
                )
                listing = await self._find_tools(client, info)
            if client.lost is not None:
                raise ServerProblem(client.lost)
        except asyncio.CancelledError:
            if client is not None:
                await client.aclose()
            raise
        except Exception as error:  # whatever a server provokes is its failure, not ours
            if client is not None:
                await client.aclose()
            self._fail(error, tried[-1].noise if tried else "")
            return
        client.on_lost = self._lose
        self._client = client
        self.instructions = neutralise(info.instructions[:MAX_INSTRUCTIONS_LENGTH]).strip()
        self._version, self.capabilities = info.version, info.capabilities
        self._set("connected")
        self._use(listing)
        self._remember()
        client.log_level = self._log_level or client.log_level
        self._listen_again(client)
        if self._stale:
            self._on_tools_changed()

    async def _find_tools(self, client: "McpClient", info: "ServerInfo") -> Listing:
        """Return the tools of a server; a list that still holds is not fetched again."""
        if not info.has_tools:
            return Listing()
        left = self._holds_until - time.time()
        if client.is_stateless and self._listed and 0 < left <= MAX_SECONDS:
            return self.listing
        return await self._fetch_tools(client)

    async def _fetch_tools(self, client: "McpClient") -> Listing:
        from trimtab.mcp.listing import fetch_tools

        listing, holds = await fetch_tools(client, self.config, self._seconds)
        self._holds_until = time.time() + holds if holds else 0.0
        return listing

    def refresh(self) -> None:
        """Fetch the list of tools again, in the background, if it does not hold any more."""
        if self._client is not None and 0 < self._holds_until < time.time():
            self._on_tools_changed()

    def _on_notice(self, method: str, params: JsonObject) -> None:
        self._results.forget(method)
        if method == "notifications/tools/list_changed":
            self._on_tools_changed()
        elif method == "notifications/prompts/list_changed":
            self._on_change(self, "prompts")
        elif method == "notifications/resources/list_changed":
            self._on_change(self, "resources")
        else:
            self.on_notice(self.config, method, params)

    async def subscribe(self, uri: str) -> None:
        """Have changes of a resource reported, if the server can; the oldest of many are left."""
        offered = self.capabilities.get("resources")
        if not isinstance(offered, dict) or offered.get("subscribe") is not True:
            return
        client = await self._connected()
        if uri in self._subscribed:
            return
        self._subscribed[uri] = None
        oldest = next(iter(self._subscribed))
        too_many = len(self._subscribed) > MAX_SUBSCRIPTIONS
        if too_many:
            del self._subscribed[oldest]
        if client.is_stateless:
            self._listen_again(client)
            return
        await client.request("resources/subscribe", {"uri": uri}, self._seconds)
        if too_many:
            await client.request("resources/unsubscribe", {"uri": oldest}, self._seconds)

    async def set_log_level(self, level: str) -> None:
        """Have lines of the log sent from a level on, as far as the server can."""
        self._log_level = level
        client = self._client
        if client is not None:
            client.log_level = level
            if not client.is_stateless and "logging" in self.capabilities:
                await self._ask(client, "logging/setLevel", level=level)

    def _listen_again(self, client: "McpClient") -> None:
        """Ask the server for its notices: the changes it can report, its log, the resources."""
        if not client.is_stateless:
            if client.log_level and "logging" in self.capabilities:
                self._run(self._ask(client, "logging/setLevel", level=client.log_level))
            for uri in self._subscribed:
                self._run(self._ask(client, "resources/subscribe", uri=uri))
            return
        if self._listening is not None:
            self._listening.cancel()
        wanted = find_subscriptions(self.capabilities)
        if self._subscribed:
            wanted["resourceSubscriptions"] = list(self._subscribed)
        if wanted:
            self._listening = self._run(self._listen(client, wanted))

    async def _ask(self, client: "McpClient", method: str, **params: str) -> None:
        with suppress(ServerProblem, RemoteError, TimeoutError):
            await client.request(method, params, self._seconds)

    async def _listen(self, client: "McpClient", wanted: JsonObject) -> None:
        """Receive changes from a stateless server; after a gap, fetch the list again."""
        for delay in LISTEN_DELAYS:
            with suppress(ServerProblem, RemoteError, TimeoutError):
                params = {"notifications": wanted}
                await client.request("subscriptions/listen", params, MAX_REQUEST_SECONDS)
            if client is not self._client:
                return
            await asyncio.sleep(delay)
            self._on_tools_changed()

    def _fail(self, error: Exception, noise: str) -> None:
        if isinstance(error, TimeoutError):
            wrote = f" and wrote {noise!r}, which is not a message of MCP" if noise else ""
            late = f"it did not answer within {self._seconds:g} s"
            reason = f"{late}{wrote}; check it, or its timeout"
        elif isinstance(error, RemoteError):
            reason = f"it rejected the connection ({error})"
        elif isinstance(error, ServerProblem):
            reason = str(error)
        else:
            reason = f"connecting failed ({type(error).__name__}: {error})"
        needs_auth = isinstance(error, ServerProblem) and error.needs_auth
        self._set("needs-auth" if needs_auth else "failed", self._sanitize(reason))

    def _lose(self, reason: str) -> None:
        """Mark the connection as failed, and close it in the background."""
        client, self._client = self._client, None
        if client is None:
            return
        client.on_lost = lambda _: None
        self._run(client.aclose())
        self._set("failed", self._sanitize(reason))

    def _on_tools_changed(self) -> None:
        self._stale = True
        if self._client is not None and (self._relisting is None or self._relisting.done()):
            self._relisting = self._run(self._relist(self._client))

    async def _relist(self, client: "McpClient") -> None:
        """Fetch the list again, at most once a second however often the server asks for it."""
        while self._stale and client is self._client:
            self._stale = False
            try:
                listing = await self._fetch_tools(client)
            except (ServerProblem, RemoteError, TimeoutError):
                return
            self._use(listing)
            self._remember()
            await asyncio.sleep(RELIST_INTERVAL)

    def _use(self, listing: Listing) -> None:
        if not self._listed or listing != self.listing:
            self._listed, self.listing = True, listing
            self._on_change(self, "tools")

    def _remember(self) -> None:
        if self._cache is not None:
            known = CachedServer(
                version=self._version,
                instructions=self.instructions,
                capabilities=self.capabilities,
                listing=self.listing,
                holds_until=self._holds_until,
            )
            if known != self._cache.read(self.config):
                self._cache.write(self.config, known)

    def _set(self, status: Status, error: str = "") -> None:
        if (status, error) != (self.status, self.error):
            self.status, self.error, self.since = status, error, int(time.time() * 1000)
            self._on_change(self, "status")

    def _sanitize(self, text: str) -> str:
        """Return a reason on one line, shortened, without values that may be secrets."""
        for value in (*self.config.env.values(), *self.config.headers.values()):
            for part in {value, value.rpartition(" ")[2]}:
                if len(part) >= MIN_SECRET_LENGTH:
                    text = text.replace(part, MASK)
        return " ".join(neutralise(text).split())[:MAX_ERROR_LENGTH]

    def _run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
