"""The client side of the protocol: sends requests, matches answers, replies to the server."""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import METHOD_NOT_FOUND, VERSIONS, RemoteError, ServerProblem
from trimtab.mcp.transport import Channel
from trimtab.version import __version__

MAX_REQUEST_SECONDS = 3600.0
"""The time after which a request is cancelled, whatever progress it reports."""
MAX_PENDING_MESSAGES = 100
Progress = Callable[[str], None]


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A server's answer to `initialize`."""

    version: str
    instructions: str = ""
    has_tools: bool = True


class _PendingRequest(msgspec.Struct, kw_only=True):
    """A request that waits for its answer."""

    answer: asyncio.Future[Any]
    clock: asyncio.Timeout
    seconds: float
    deadline: float
    on_progress: Progress | None


class McpClient:
    """A connection to one server. If the connection fails, all open requests fail."""

    def __init__(self, channel: Channel, cwd: str, on_tools_changed: Callable[[], None]) -> None:
        self._channel = channel
        self._cwd = cwd
        self._on_tools_changed = on_tools_changed
        self._count = 0
        self._open: dict[int, _PendingRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost: str | None = None
        """The reason why the connection ended; None while it lasts."""
        self.on_lost: Callable[[str], None] = lambda _: None

    async def start(self, seconds: float) -> ServerInfo:
        """Connect and negotiate the version. Raises `ServerProblem` or `TimeoutError`."""
        self._channel.open(self._receive, self._end)
        params = {
            "protocolVersion": VERSIONS[0],
            "capabilities": {"roots": {"listChanged": False}},
            "clientInfo": {"name": "trimtab", "version": __version__},
        }
        answer = await self.request("initialize", params, seconds)
        version = answer.get("protocolVersion")
        if version not in VERSIONS:
            known = f"{VERSIONS[-1]} to {VERSIONS[0]}"
            raise ServerProblem(
                f"it uses version {version!r:.40} of the protocol; {known} are supported"
            )
        self._channel.ready(version)
        await self._channel.send({"method": "notifications/initialized"})
        instructions, capabilities = answer.get("instructions"), answer.get("capabilities")
        return ServerInfo(
            version=version,
            instructions=instructions if isinstance(instructions, str) else "",
            has_tools=not isinstance(capabilities, dict) or "tools" in capabilities,
        )

    async def request(
        self,
        method: str,
        params: JsonObject,
        seconds: float,
        on_progress: Progress | None = None,
    ) -> JsonObject:
        """Send a request and wait for its answer; each report of progress extends the time.

        Raises `ServerProblem`, `RemoteError`, or `TimeoutError`. If the request times out or is
        cancelled, the server is notified.
        """
        if self.lost is not None:
            raise ServerProblem(self.lost, gone=True)
        self._count += 1
        number, loop = self._count, asyncio.get_running_loop()
        meta = params.get("_meta", {})
        if meta is None:  # a hook has removed all metadata, so there is no progress token either
            params = {name: value for name, value in params.items() if name != "_meta"}
        elif on_progress is not None:
            params = {**params, "_meta": {**meta, "progressToken": number}}
        message = {"id": number, "method": method, "params": params}
        try:
            async with asyncio.timeout(seconds) as clock:
                pending = self._open[number] = _PendingRequest(
                    answer=_future(loop),
                    clock=clock,
                    seconds=seconds,
                    deadline=loop.time() + MAX_REQUEST_SECONDS,
                    on_progress=on_progress,
                )
                return await self._exchange(message, pending)
        except (TimeoutError, asyncio.CancelledError):
            if method != "initialize":
                cancelled = {"requestId": number, "reason": "It timed out or was cancelled."}
                self._notify({"method": "notifications/cancelled", "params": cancelled})
            raise
        finally:
            del self._open[number]

    async def _exchange(self, message: JsonObject, pending: _PendingRequest) -> JsonObject:
        sending = asyncio.ensure_future(self._channel.send(message))
        try:
            await asyncio.wait((sending, pending.answer), return_when=asyncio.FIRST_COMPLETED)
            if not pending.answer.done() and not sending.result():
                raise ServerProblem("its answer contained no result", gone=True)
            answer = await pending.answer
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait((sending,))
            elif not sending.cancelled():
                sending.exception()
        return answer if isinstance(answer, dict) else {}

    async def aclose(self) -> None:
        """Close the connection and fail its open requests."""
        try:
            if self._tasks:  # such as a notification that a call was cancelled
                await asyncio.wait(set(self._tasks), timeout=0.2)
        finally:
            self._end("it was stopped")
            for task in (tasks := set(self._tasks)):
                task.cancel()
            await self._channel.aclose()
            if tasks:
                await asyncio.wait(tasks)

    def _receive(self, message: JsonObject) -> None:
        """Handle a message of the server: an answer, a request, or a notification."""
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._answer(number, message)
        elif isinstance(number, str | int):
            self._reply(number, method)
        elif method == "notifications/progress":
            self._progress(message.get("params"))
        elif method == "notifications/tools/list_changed":
            self._on_tools_changed()

    def _answer(self, number: Any, message: JsonObject) -> None:
        pending = self._open.get(number) if isinstance(number, int) else None
        if pending is None or pending.answer.done():
            return
        error = message.get("error")
        if error is None:
            pending.answer.set_result(message.get("result"))
            return
        text = error.get("message") if isinstance(error, dict) else error
        pending.answer.set_exception(RemoteError(str(text)[:4000]))

    def _reply(self, number: str | int, method: str) -> None:
        if method == "ping":
            answer: JsonObject = {"result": {}}
        elif method == "roots/list":
            root = {"uri": f"file://{quote(self._cwd)}", "name": self._cwd.rpartition("/")[2]}
            answer = {"result": {"roots": [root]}}
        else:
            problem = {"code": METHOD_NOT_FOUND, "message": f"Method not found: {method[:100]}"}
            answer = {"error": problem}
        self._notify({"id": number, **answer})

    def _progress(self, params: Any) -> None:
        token = params.get("progressToken") if isinstance(params, dict) else None
        pending = self._open.get(token) if isinstance(token, int) else None
        if pending is None or pending.answer.done() or pending.clock.expired():
            return
        now = asyncio.get_running_loop().time()
        pending.clock.reschedule(min(now + pending.seconds, pending.deadline))
        if pending.on_progress is not None and isinstance(text := params.get("message"), str):
            pending.on_progress(text)

    def _notify(self, message: JsonObject) -> None:
        """Send a message without an answer, in the background."""
        # A server that asks faster than it reads would otherwise fill the memory.
        if self.lost is not None or len(self._tasks) > MAX_PENDING_MESSAGES:
            return
        task = asyncio.get_running_loop().create_task(self._send(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, message: JsonObject) -> None:
        try:
            async with asyncio.timeout(10):
                await self._channel.send(message)
        except (ServerProblem, TimeoutError):
            return

    def _end(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        for pending in self._open.values():
            if not pending.answer.done():
                pending.answer.set_exception(ServerProblem(reason, gone=True))
        self.on_lost(reason)


def _future(loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
    """Return a future whose exception may stay unretrieved: its waiter may be gone."""
    future: asyncio.Future[Any] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future
