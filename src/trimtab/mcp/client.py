"""Speaks with one server: requests and their answers, and what the server asks of us."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import METHOD_NOT_FOUND, VERSIONS, RemoteError, ServerProblem
from trimtab.mcp.transport import Channel
from trimtab.version import __version__

LONGEST = 3600.0
"""Seconds after which a request is given up, whatever progress is made."""
Progress = Callable[[str], None]


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself when it is first spoken to."""

    version: str
    instructions: str = ""
    has_tools: bool = True


class _Waiting(msgspec.Struct, kw_only=True):
    """A request that is not answered yet."""

    answer: asyncio.Future[Any]
    clock: asyncio.Timeout
    seconds: float
    until: float
    on_progress: Progress | None


class Client:
    """One connection. What goes wrong with it as a whole ends every request that is open."""

    def __init__(self, channel: Channel, cwd: str, on_tools_changed: Callable[[], None]) -> None:
        self._channel = channel
        self._cwd = cwd
        self._on_tools_changed = on_tools_changed
        self._count = 0
        self._open: dict[int, _Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost: str | None = None
        """Why the connection is over, once it is."""
        self.on_lost: Callable[[str], None] = lambda _: None

    async def start(self, seconds: float) -> Hello:
        """Connect and agree on a version. Raises `ServerProblem` or `TimeoutError`."""
        self._channel.open(self._take, self._end)
        params = {
            "protocolVersion": VERSIONS[0],
            "capabilities": {"roots": {"listChanged": False}},
            "clientInfo": {"name": "trimtab", "version": __version__},
        }
        answer = await self.request("initialize", params, seconds)
        version = answer.get("protocolVersion")
        if version not in VERSIONS:
            known = f"{VERSIONS[-1]} to {VERSIONS[0]}"
            raise ServerProblem(f"it speaks version {version!r:.40} of the protocol, not {known}")
        self._channel.ready(version)
        await self._channel.send({"method": "notifications/initialized"})
        said, can = answer.get("instructions"), answer.get("capabilities")
        return Hello(
            version=version,
            instructions=said if isinstance(said, str) else "",
            has_tools=not isinstance(can, dict) or "tools" in can,
        )

    async def request(
        self,
        method: str,
        params: JsonObject,
        seconds: float,
        on_progress: Progress | None = None,
    ) -> JsonObject:
        """Ask, and wait for the answer; progress gives it more time.

        Raises `ServerProblem`, `RemoteError`, or `TimeoutError`. A request that is given up is
        cancelled at the server, too.
        """
        if self.lost is not None:
            raise ServerProblem(self.lost, gone=True)
        self._count += 1
        number, loop = self._count, asyncio.get_running_loop()
        said = params.get("_meta", {})
        if said is None:  # nothing is to be said about the request, not even who hears of it
            params = {name: value for name, value in params.items() if name != "_meta"}
        elif on_progress is not None:
            params = {**params, "_meta": {**said, "progressToken": number}}
        message = {"id": number, "method": method, "params": params}
        try:
            async with asyncio.timeout(seconds) as clock:
                waiting = self._open[number] = _Waiting(
                    answer=_future(loop),
                    clock=clock,
                    seconds=seconds,
                    until=loop.time() + LONGEST,
                    on_progress=on_progress,
                )
                return await self._exchange(message, waiting)
        except (TimeoutError, asyncio.CancelledError):
            if method != "initialize":
                gone = {"requestId": number, "reason": "It was given up."}
                self._tell({"method": "notifications/cancelled", "params": gone})
            raise
        finally:
            del self._open[number]

    async def _exchange(self, message: JsonObject, waiting: _Waiting) -> JsonObject:
        sending = asyncio.ensure_future(self._channel.send(message))
        try:
            await asyncio.wait((sending, waiting.answer), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.answer.done() and not sending.result():
                raise ServerProblem("it answered without a result", gone=True)
            answer = await waiting.answer
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait((sending,))
            elif not sending.cancelled():
                sending.exception()
        return answer if isinstance(answer, dict) else {}

    async def aclose(self) -> None:
        """End the connection and what is under way on it."""
        try:
            if self._tasks:
                await asyncio.wait(set(self._tasks), timeout=0.2)  # that a call is cancelled, say
        finally:
            self._end("it was stopped")
            for task in (tasks := set(self._tasks)):
                task.cancel()
            await self._channel.aclose()
            if tasks:
                await asyncio.wait(tasks)

    def _take(self, message: JsonObject) -> None:
        """A message of the server: an answer, a request, or a notification."""
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
        waiting = self._open.get(number) if isinstance(number, int) else None
        if waiting is None or waiting.answer.done():
            return
        error = message.get("error")
        if error is None:
            waiting.answer.set_result(message.get("result"))
            return
        said = error.get("message") if isinstance(error, dict) else error
        waiting.answer.set_exception(RemoteError(str(said)[:4000]))

    def _reply(self, number: str | int, method: str) -> None:
        if method == "ping":
            answer: JsonObject = {"result": {}}
        elif method == "roots/list":
            from urllib.parse import quote

            root = {"uri": f"file://{quote(self._cwd)}", "name": self._cwd.rpartition("/")[2]}
            answer = {"result": {"roots": [root]}}
        else:
            problem = {"code": METHOD_NOT_FOUND, "message": f"{method[:100]} is not offered."}
            answer = {"error": problem}
        self._tell({"id": number, **answer})

    def _progress(self, params: Any) -> None:
        token = params.get("progressToken") if isinstance(params, dict) else None
        waiting = self._open.get(token) if isinstance(token, int) else None
        if waiting is None or waiting.answer.done() or waiting.clock.expired():
            return
        now = asyncio.get_running_loop().time()
        waiting.clock.reschedule(min(now + waiting.seconds, waiting.until))
        if waiting.on_progress is not None and isinstance(said := params.get("message"), str):
            waiting.on_progress(said)

    def _tell(self, message: JsonObject) -> None:
        """Send something that has no answer, beside everything else."""
        if self.lost is not None or len(self._tasks) > 100:  # it asks faster than it listens
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
        for waiting in self._open.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(ServerProblem(reason, gone=True))
        self.on_lost(reason)


def _future(loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
    """One whose failure need not be looked at: nobody may be waiting any more."""
    future: asyncio.Future[Any] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future
