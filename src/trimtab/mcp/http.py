"""A server that is reached over HTTP: the kind that answers requests, and the older one."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urljoin

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import ServerAccess
from trimtab.mcp.exchange import EVENTS, Exchange
from trimtab.mcp.messages import ServerProblem, decode, encode
from trimtab.mcp.transport import Deliver

SESSION = "mcp-session-id"
ACCEPT = {"Accept": f"application/json, {EVENTS}", "Content-Type": "application/json"}
GOODBYE_SECONDS = 2.0
LISTENING_PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before a stream that ended is asked for again; after the last it is left alone."""


class HttpChannel:
    """Streamable HTTP: every message is posted, and its answer is JSON or a stream of events."""

    def __init__(self, server: McpServer, reach: ServerAccess) -> None:
        self._exchange = Exchange(server, reach)
        self._deliver: Deliver = lambda _: None
        self._known: dict[str, str] = {}
        self._listening: asyncio.Task[None] | None = None

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver = deliver

    async def send(self, message: JsonObject) -> bool:
        exchange = self._exchange
        answer = await exchange.request("POST", exchange.url, ACCEPT | self._known, encode(message))
        answered = False
        try:
            if message.get("method") == "initialize" and SESSION in answer.headers:
                self._known["Mcp-Session-Id"] = answer.headers[SESSION]
            wanted = message.get("id") if "method" in message else None
            async for one in exchange.messages(answer):
                self._deliver(one)
                if wanted is not None and one.get("id") == wanted and "method" not in one:
                    answered = True
                    break
        finally:
            answer.close(expect_end=answered)
        return False

    def ready(self, version: str) -> None:
        self._known["MCP-Protocol-Version"] = version
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        """Hear what the server says unasked, if it offers that: most do not."""
        for pause in LISTENING_PAUSES:
            try:
                await self._hear()
            except ServerProblem as problem:
                if not problem.gone:
                    return
            await asyncio.sleep(pause)

    async def _hear(self) -> None:
        exchange = self._exchange
        answer = await exchange.request("GET", exchange.url, {"Accept": EVENTS} | self._known)
        try:
            async for one in exchange.messages(answer):
                self._deliver(one)
        finally:
            answer.close()

    async def aclose(self) -> None:
        await _cancel(self._listening)
        if "Mcp-Session-Id" in self._known:
            with suppress(TimeoutError, ServerProblem):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    url = self._exchange.url
                    (await self._exchange.request("DELETE", url, self._known)).close()


class SseChannel:
    """HTTP with server-sent events, as versions before 2025-03-26 had it: one stream for all that
    comes back, whose first event says where to post."""

    def __init__(self, server: McpServer, reach: ServerAccess) -> None:
        self._exchange = Exchange(server, reach)
        self._deliver: Deliver = lambda _: None
        self._lost: Callable[[str], None] = lambda _: None
        self._target: asyncio.Future[str] | None = None
        self._stream: asyncio.Task[None] | None = None

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver, self._lost = deliver, lost
        loop = asyncio.get_running_loop()
        self._target = loop.create_future()
        self._stream = loop.create_task(self._read())

    async def send(self, message: JsonObject) -> bool:
        assert self._target is not None
        url = await asyncio.shield(self._target)
        headers = {"Content-Type": "application/json"}
        (await self._exchange.request("POST", url, headers, encode(message))).close()
        return True

    def ready(self, version: str) -> None:
        pass

    async def aclose(self) -> None:
        await _cancel(self._stream)
        if self._target is not None:
            self._target.cancel()

    async def _read(self) -> None:
        problem = ServerProblem("its stream of events ended", gone=True)
        try:
            await self._hear()
        except ServerProblem as error:
            problem = error
        assert self._target is not None
        if not self._target.done():
            self._target.set_exception(problem)
            self._target.exception()  # it was looked at: nobody may be waiting
        self._lost(str(problem))

    async def _hear(self) -> None:
        assert self._target is not None
        exchange = self._exchange
        answer = await exchange.request("GET", exchange.url, {"Accept": EVENTS})
        try:
            async for event in exchange.events(answer):
                if not self._target.done():
                    place = urljoin(exchange.url, event.decode("utf-8", "replace").strip())
                    self._target.set_result(exchange.same_origin(place))
                    continue
                for message in decode(event):
                    self._deliver(message)
        finally:
            answer.close()


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait((task,))
