"""One server of a session: connected when it is needed, and again when the connection is lost."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Literal

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import ServerAccess, Transport
from trimtab.contracts.secrets import MASK
from trimtab.contracts.text import neutralise
from trimtab.mcp.client import Client, Progress
from trimtab.mcp.listing import Listing, fetch_tools
from trimtab.mcp.messages import RemoteError, ServerProblem
from trimtab.mcp.transport import Channel

SECONDS = 60.0
"""How long a server may take to connect, and to answer a call without progress."""
PATIENCE = 0.5
"""Seconds for which a prompt waits for a server, unless the server's entry says otherwise."""
RELIST_PAUSE = 1.0
LONGEST_ERROR = 1000
LONGEST_INSTRUCTIONS = 4000
SHORTEST_SECRET = 6

Status = Literal["pending", "connected", "failed", "needs-auth", "disabled", "stopped"]
Happened = Literal["status", "tools"]


class Server:
    """A configured server, its state and its tools.

    A server that is lost keeps its tools: the next call connects again. `on_change` hears of
    every change of its state or its tools.
    """

    def __init__(
        self,
        config: McpServer,
        reach: ServerAccess,
        on_change: Callable[["Server", Happened], None],
    ) -> None:
        self.config = config
        self.status: Status = "stopped"
        self.error = ""
        self.since = 0
        """When it got its status, in milliseconds since the epoch."""
        self.instructions = ""
        self.listing = Listing()
        self._reach = reach
        self._on_change = on_change
        self._client: Client | None = None
        self._stale = False
        self._listed = False
        self._started = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._relisting: asyncio.Task[None] | None = None

    @property
    def transport(self) -> Transport:
        return "stdio" if self.config.type == "local" else self.config.type

    @property
    def patience(self) -> float:
        """Seconds that are left until everybody goes on without the server."""
        wanted = self.config.extra.get("slowConnectionThresholdMs")
        seconds = wanted / 1000 if isinstance(wanted, int) and wanted > 0 else PATIENCE
        return max(0.0, self._started + seconds - asyncio.get_running_loop().time())

    def start(self) -> None:
        """Connect in the background."""
        if self._client is None and (self._connecting is None or self._connecting.done()):
            self._set("pending")
            self._started = asyncio.get_running_loop().time()
            self._connecting = self._run(self._connect())

    async def settled(self, seconds: float | None) -> bool:
        """Wait so long until it is connected or has failed, or without end; whether it has."""
        if self._connecting is not None:
            await asyncio.wait((self._connecting,), timeout=seconds)
        return self.status != "pending"

    async def call(self, params: JsonObject, progress: Progress) -> JsonObject:
        """Raises `ServerProblem`, `RemoteError` or `TimeoutError`."""
        client = await self._connected()
        try:
            return await client.request("tools/call", params, self._seconds, progress)
        except ServerProblem as problem:
            if problem.gone and self._client is client:
                self._lose(str(problem))
            raise ServerProblem(self._tidy(str(problem)), gone=problem.gone) from None

    async def aclose(self, status: Status = "stopped") -> None:
        """End the connection and all that belongs to it."""
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
        wanted = self.config.timeout
        return wanted / 1000 if wanted is not None and wanted > 0 else SECONDS

    async def _connected(self) -> Client:
        if self.status in ("disabled", "stopped"):
            raise ServerProblem("it is switched off")
        self.start()
        if self._client is None and self._connecting is not None:
            await asyncio.wait((self._connecting,))
        if self._client is None:
            raise ServerProblem(self.error or "it was stopped")
        return self._client

    async def _connect(self) -> None:
        client = Client(self._build_channel(), self._reach.cwd, self._tools_changed)
        try:
            async with asyncio.timeout(self._seconds):
                hello = await client.start(self._seconds)
                listing = Listing()
                if hello.has_tools:
                    listing = await fetch_tools(client, self.config, self._seconds)
            if client.lost is not None:
                raise ServerProblem(client.lost)
        except asyncio.CancelledError:
            await client.aclose()
            raise
        except Exception as error:  # whatever a server brings about is its failure, not ours
            await client.aclose()
            self._fail(error)
            return
        client.on_lost = self._lose
        self._client = client
        self.instructions = neutralise(hello.instructions[:LONGEST_INSTRUCTIONS]).strip()
        self._set("connected")
        self._use(listing)
        if self._stale:
            self._tools_changed()

    def _build_channel(self) -> Channel:
        if self.config.type == "local":
            from trimtab.mcp.stdio import StdioChannel

            return StdioChannel(self.config, self._reach)
        from trimtab.mcp.http import HttpChannel, SseChannel

        kind = HttpChannel if self.config.type == "http" else SseChannel
        return kind(self.config, self._reach)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, TimeoutError):
            reason = f"it did not answer within {self._seconds:g} s; check it, or its timeout"
        elif isinstance(error, RemoteError):
            reason = f"it refused to work with us ({error})"
        elif isinstance(error, ServerProblem):
            reason = str(error)
        else:
            reason = f"connecting failed ({type(error).__name__}: {error})"
        needs_auth = isinstance(error, ServerProblem) and error.needs_auth
        self._set("needs-auth" if needs_auth else "failed", self._tidy(reason))

    def _lose(self, reason: str) -> None:
        """The connection is over; what is left of it is cleared away beside everything else."""
        client, self._client = self._client, None
        if client is None:
            return
        client.on_lost = lambda _: None
        self._run(client.aclose())
        self._set("failed", self._tidy(reason))

    def _tools_changed(self) -> None:
        self._stale = True
        if self._client is not None and (self._relisting is None or self._relisting.done()):
            self._relisting = self._run(self._relist(self._client))

    async def _relist(self, client: Client) -> None:
        """List again, at most once a second however often the server says that it should be."""
        while self._stale and client is self._client:
            self._stale = False
            try:
                listing = await fetch_tools(client, self.config, self._seconds)
            except (ServerProblem, RemoteError, TimeoutError):
                return
            self._use(listing)
            await asyncio.sleep(RELIST_PAUSE)

    def _use(self, listing: Listing) -> None:
        if not self._listed or listing != self.listing:
            self._listed, self.listing = True, listing
            self._on_change(self, "tools")

    def _set(self, status: Status, error: str = "") -> None:
        if (status, error) != (self.status, self.error):
            self.status, self.error, self.since = status, error, int(time.time() * 1000)
            self._on_change(self, "status")

    def _tidy(self, text: str) -> str:
        """A reason that can be shown: short, on one line, without values that may be secrets."""
        for value in (*self.config.env.values(), *self.config.headers.values()):
            for part in {value, value.rpartition(" ")[2]}:
                if len(part) >= SHORTEST_SECRET:
                    text = text.replace(part, MASK)
        return " ".join(neutralise(text).split())[:LONGEST_ERROR]

    def _run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
