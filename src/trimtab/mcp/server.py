"""A connection to one MCP server: made when needed, and again after it is lost."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Literal

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import ServerAccess, Transport
from trimtab.contracts.secrets import MASK
from trimtab.contracts.text import neutralise
from trimtab.mcp.client import MAX_REQUEST_SECONDS, McpClient, Progress, ServerInfo
from trimtab.mcp.http import HttpChannel, SseChannel
from trimtab.mcp.listing import Listing, fetch_tools
from trimtab.mcp.messages import VERSIONS, RemoteError, ServerProblem
from trimtab.mcp.parameter_headers import build_headers
from trimtab.mcp.server_notices import find_log_level
from trimtab.mcp.server_requests import ServerRequests
from trimtab.mcp.stdio import StdioChannel
from trimtab.mcp.tool_cache import CachedServer, ToolCache
from trimtab.mcp.transport import Channel

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


def _find_subscriptions(capabilities: Mapping[str, Any]) -> JsonObject:
    """Return the changes a server can announce, as `subscriptions/listen` names them."""
    return {
        f"{kind}ListChanged": True
        for kind in ("tools", "prompts", "resources")
        if isinstance(found := capabilities.get(kind), dict) and found.get("listChanged") is True
    }


def build_channel(server: McpServer, access: ServerAccess) -> Channel:
    """Return the way to a server. Raises `ServerProblem` for wrong settings of its sign-in."""
    if server.type == "local":
        return StdioChannel(server, access)
    kind = HttpChannel if server.type == "http" else SseChannel
    return kind(server, access)


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
        try:
            return await client.request(method, params, self._seconds)
        except ServerProblem as problem:
            raise ServerProblem(self._sanitize(str(problem)), gone=problem.gone) from None

    def _parameter_headers(self, params: JsonObject) -> dict[str, str]:
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
        self._set(status)

    @property
    def _seconds(self) -> float:
        timeout = self.config.timeout
        return timeout / 1000 if timeout is not None and timeout > 0 else DEFAULT_TIMEOUT

    async def _connected(self) -> McpClient:
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
        client: McpClient | None = None
        try:
            async with asyncio.timeout(self._seconds):
                client, info = await self._greet()
                listing = Listing()
                if info.has_tools:
                    listing = await fetch_tools(client, self.config, self._seconds)
            if client.lost is not None:
                raise ServerProblem(client.lost)
        except asyncio.CancelledError:
            if client is not None:
                await client.aclose()
            raise
        except Exception as error:  # whatever a server provokes is its failure, not ours
            if client is not None:
                await client.aclose()
            self._fail(error)
            return
        client.on_lost = self._lose
        self._client = client
        self.instructions = neutralise(info.instructions[:MAX_INSTRUCTIONS_LENGTH]).strip()
        self._version, self.capabilities = info.version, info.capabilities
        self._set("connected")
        self._use(listing)
        self._remember()
        self._listen_again(client)
        if self._stale:
            self._on_tools_changed()

    async def _greet(self) -> tuple[McpClient, ServerInfo]:
        """Connect in the version of before, else in any; programs that exit then, in an older one.

        Some programs exit if the first message is not the older greeting.
        """
        for version in dict.fromkeys((self._version, "", VERSIONS[0])):
            client = self._build_client()
            try:
                return client, await client.start(self._seconds, version)
            except BaseException as error:
                await client.aclose()
                older = isinstance(error, ServerProblem) and error.gone
                if isinstance(error, ServerProblem | RemoteError) and (
                    version or (older and self.config.type == "local")
                ):
                    failure = error
                    continue
                raise
        raise failure

    def _build_client(self) -> McpClient:
        access, name = self._access, self.config.name
        requests = ServerRequests(name, access.cwd, access.answers, access.extensions)
        client = McpClient(build_channel(self.config, self._access), requests, self._on_notice)
        client.log_level = find_log_level(self.config)
        return client

    def _on_notice(self, method: str, params: JsonObject) -> None:
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

    def _listen_again(self, client: McpClient) -> None:
        """Ask the server for its notices: the changes it can report, its log, the resources."""
        if not client.is_stateless:
            if client.log_level and "logging" in self.capabilities:
                self._run(self._ask(client, "logging/setLevel", level=client.log_level))
            for uri in self._subscribed:
                self._run(self._ask(client, "resources/subscribe", uri=uri))
            return
        if self._listening is not None:
            self._listening.cancel()
        wanted = _find_subscriptions(self.capabilities)
        if self._subscribed:
            wanted["resourceSubscriptions"] = list(self._subscribed)
        if wanted:
            self._listening = self._run(self._listen(client, wanted))

    async def _ask(self, client: McpClient, method: str, **params: str) -> None:
        with suppress(ServerProblem, RemoteError, TimeoutError):
            await client.request(method, params, self._seconds)

    async def _listen(self, client: McpClient, wanted: JsonObject) -> None:
        """Receive changes from a stateless server; after a gap, fetch the list again."""
        for delay in LISTEN_DELAYS:
            with suppress(ServerProblem, RemoteError, TimeoutError):
                params = {"notifications": wanted}
                await client.request("subscriptions/listen", params, MAX_REQUEST_SECONDS)
            if client is not self._client:
                return
            await asyncio.sleep(delay)
            self._on_tools_changed()

    def _fail(self, error: Exception) -> None:
        if isinstance(error, TimeoutError):
            reason = f"it did not answer within {self._seconds:g} s; check it, or its timeout"
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

    async def _relist(self, client: McpClient) -> None:
        """Fetch the list again, at most once a second however often the server asks for it."""
        while self._stale and client is self._client:
            self._stale = False
            try:
                listing = await fetch_tools(client, self.config, self._seconds)
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
