"""The client side of the protocol: sends requests, matches answers, replies to the server."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    INTERNAL_ERROR,
    LOG_LEVEL_KEY,
    MAX_REQUEST_SECONDS,
    METHOD_NOT_FOUND,
    SERVER_KEY,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    VERSIONS,
    Progress,
    RemoteError,
    ServerProblem,
    read_error,
    read_id,
)
from trimtab.mcp.server_requests import Answers
from trimtab.mcp.transport import NO_HEADERS, Channel
from trimtab.version import __version__

MAX_PENDING_MESSAGES = 100
PROBE_SECONDS = 3.0
"""The time that a server has to say which version it speaks before it is greeted the older way."""
MAX_ROUNDS = 10
"""The number of times that a server may ask for more before it answers one request."""
STATE_DELAYS = (0.05, 0.1, 0.25)
"""The seconds before a request is repeated that asks for nothing but to be repeated."""
UNCANCELLED = ("initialize", "server/discover", "subscriptions/listen")
Notice = Callable[[str, JsonObject], None]
"""Called with the method and the parameters of a notification."""
CLIENT_INFO = {"name": "trimtab", "version": __version__}


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A server's description of itself."""

    version: str
    instructions: str = ""
    capabilities: Mapping[str, Any] = {}
    implementation: Mapping[str, Any] = {}
    """The server's own name and version."""
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

    def __init__(self, channel: Channel, requests: Answers, on_notice: Notice) -> None:
        self._channel = channel
        self._requests = requests
        self._on_notice = on_notice
        self._count = 0
        self._open: dict[int, _PendingRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies: dict[str | int, asyncio.Task[None]] = {}
        """The answers to requests of the server that are being found, by its ids."""
        self._asking: dict[str | int, asyncio.Task[None]] = {}
        """Those of them that somebody must decide about, asked while calls were open."""
        self._version = ""
        self.lost: str | None = None
        """The reason why the connection ended; None while it lasts."""
        self.on_lost: Callable[[str], None] = lambda _: None
        self.log_level = ""
        """The lowest level of log lines that the server may send; set before the connection."""

    @property
    def noise(self) -> str:
        """The beginning of what the server wrote that is not a message."""
        return self._channel.noise

    @property
    def is_stateless(self) -> bool:
        return self._version == STATELESS

    async def start(self, seconds: float, version: str = "") -> ServerInfo:
        """Connect and agree on a version. Raises `ServerProblem`, `RemoteError`, `TimeoutError`.

        `version` is the one that the server spoke before, if that is known. A server that does not
        say in time which versions it speaks is greeted the older way as well: the first answer
        counts.
        """
        self._channel.open(self._receive, self._end)
        if version in VERSIONS:
            return await self._initialize(seconds)
        probe = asyncio.ensure_future(self._discover(seconds))
        greeting: asyncio.Future[ServerInfo] | None = None
        try:
            await asyncio.wait((probe,), timeout=PROBE_SECONDS)
            if probe.done():
                return probe.result() or await self._initialize(seconds)
            greeting = asyncio.ensure_future(self._initialize(seconds))
            await asyncio.wait((probe, greeting), return_when=asyncio.FIRST_COMPLETED)
            if probe.done() and (info := probe.result()) is not None:
                return info
            return await greeting
        finally:
            for task in (probe, greeting):
                if task is not None and not task.done():
                    task.cancel()
                    await asyncio.wait((task,))

    async def _discover(self, seconds: float) -> ServerInfo | None:
        """Ask which versions the server speaks; None if it does not speak the stateless one."""
        params = {"_meta": self._stateless_meta()}
        for attempt in range(2):
            try:
                answer = await self.request("server/discover", params, seconds)
            except RemoteError as error:
                supported = error.data.get("supported") if isinstance(error.data, dict) else None
                named = isinstance(supported, list) and STATELESS in supported
                if error.code == UNSUPPORTED_VERSION and named and attempt == 0:
                    continue
                return None
            except ServerProblem as problem:
                if problem.status and not problem.needs_auth:
                    return None
                raise
            break
        versions = answer.get("supportedVersions")
        if not isinstance(versions, list) or STATELESS not in versions:
            return None
        return self._agree(STATELESS, answer)

    async def _initialize(self, seconds: float) -> ServerInfo:
        params = {
            "protocolVersion": VERSIONS[0],
            "capabilities": self._requests.capabilities,
            "clientInfo": CLIENT_INFO,
        }
        answer = await self.request("initialize", params, seconds)
        version = answer.get("protocolVersion")
        if not isinstance(version, str):
            raise ServerProblem(
                "it answered initialize without a version of MCP; check its address"
            )
        if version not in VERSIONS:
            known = f"{VERSIONS[-1]} to {STATELESS}"
            raise ServerProblem(
                f"it uses version {version!r:.40} of the protocol; {known} are supported"
            )
        info = self._agree(version, answer)
        await self._channel.send({"method": "notifications/initialized"})
        return info

    def _agree(self, version: str, answer: JsonObject) -> ServerInfo:
        self._version = version
        self._channel.ready(version)
        instructions, capabilities = answer.get("instructions"), answer.get("capabilities")
        return ServerInfo(
            version=version,
            instructions=instructions if isinstance(instructions, str) else "",
            capabilities=_as_object(capabilities),
            implementation=_as_object(
                answer.get("serverInfo") or _as_object(answer.get("_meta")).get(SERVER_KEY)
            ),
            has_tools=not isinstance(capabilities, dict) or "tools" in capabilities,
        )

    def _stateless_meta(self) -> JsonObject:
        meta = {
            VERSION_KEY: STATELESS,
            CLIENT_KEY: CLIENT_INFO,
            CAPABILITIES_KEY: self._requests.capabilities,
        }
        return meta | {LOG_LEVEL_KEY: self.log_level} if self.log_level else meta

    async def request(
        self,
        method: str,
        params: JsonObject,
        seconds: float,
        on_progress: Progress | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> JsonObject:
        """Send a request and wait for its answer; each report of progress extends the time.

        If the server asks for something first, that is answered. Raises `ServerProblem`,
        `RemoteError`, or `TimeoutError`. If the request times out or is cancelled, the server is
        notified.
        """
        given = params
        for round_number in range(MAX_ROUNDS + 1):
            answer = await self.request_once(method, given, seconds, on_progress, headers)
            kind = answer.get("resultType", "complete") if self.is_stateless else "complete"
            if kind == "complete":
                if round_number:
                    answer.pop("ttlMs", None)  # it holds for these answers only
                return answer
            if kind != "input_required":
                raise ServerProblem(f"its answer is of the unknown type {kind!r:.60}; check it")
            given = {**params, **await self._gather_input(answer, round_number)}
        raise ServerProblem(f"it asked for input more than {MAX_ROUNDS} times in one call")

    async def _gather_input(self, answer: JsonObject, round_number: int) -> JsonObject:
        """Return what a server asked for, and the state it wants back with it."""
        asked = answer.get("inputRequests")
        given: JsonObject = {}
        if isinstance(asked, dict) and asked:
            given["inputResponses"] = {
                str(name): await self._requests.answer(
                    str(wanted.get("method")), _as_object(wanted.get("params")), str(name)
                )
                for name, wanted in asked.items()
                if isinstance(wanted, dict)
            }
        else:
            await asyncio.sleep(STATE_DELAYS[min(round_number, len(STATE_DELAYS) - 1)])
        if "requestState" in answer:
            given["requestState"] = answer["requestState"]
        return given

    async def request_once(
        self,
        method: str,
        params: JsonObject,
        seconds: float,
        on_progress: Progress | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> JsonObject:
        """Send a request and return its answer as it is, also if the server asks for something."""
        if self.lost is not None:
            raise ServerProblem(self.lost, gone=True)
        self._count += 1
        number, loop = self._count, asyncio.get_running_loop()
        params = self._with_meta(params, number if on_progress is not None else None)
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
                return await self._exchange(message, headers, pending)
        except (TimeoutError, asyncio.CancelledError):
            if method not in UNCANCELLED and not self._channel.cancels_by_closing:
                cancelled = {"requestId": number, "reason": "It timed out or was cancelled."}
                self._notify({"method": "notifications/cancelled", "params": cancelled})
            if len(self._open) == 1:
                self._drop_moot_requests()
            raise
        finally:
            del self._open[number]

    def _drop_moot_requests(self) -> None:
        """End what the server asked during its calls, the last of which was cancelled.

        A request does not say which call it is for, so the others may still need it before that.
        """
        for number, asking in list(self._asking.items()):
            asking.cancel()
            error = {"code": INTERNAL_ERROR, "message": "The call that needed it was cancelled."}
            self._notify({"id": number, "error": error})

    def _with_meta(self, params: JsonObject, token: int | None) -> JsonObject:
        """Return parameters with the metadata that the version and a report of progress need.

        A hook that removes all metadata (None) removes the progress token as well.
        """
        meta = params.get("_meta", {})
        own = self._stateless_meta() if self.is_stateless else {}
        if meta is None:
            params = {name: value for name, value in params.items() if name != "_meta"}
            return {**params, "_meta": own} if own else params
        if token is not None:
            own["progressToken"] = token
        return {**params, "_meta": {**meta, **own}} if own else params

    async def _exchange(
        self, message: JsonObject, headers: Mapping[str, str], pending: _PendingRequest
    ) -> JsonObject:
        sending = asyncio.ensure_future(self._channel.send(message, headers))
        try:
            await asyncio.wait((sending, pending.answer), return_when=asyncio.FIRST_COMPLETED)
            if not pending.answer.done() and not sending.result():
                raise ServerProblem("its answer contained no result; check it", gone=True)
            answer = await pending.answer
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait((sending,))
            elif not sending.cancelled():
                sending.exception()
        return answer if isinstance(answer, dict) else {}

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification. Raises `ServerProblem`."""
        await self._channel.send({"method": method, "params": params})

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
            work = self._reply(number, method, _as_object(message.get("params")))
            if (task := self._run(work)) is not None:
                self._replies[number] = task
                task.add_done_callback(lambda _: self._replies.pop(number, None))
                if self._open and self._requests.asks(method):
                    self._asking[number] = task
                    task.add_done_callback(lambda _: self._asking.pop(number, None))
        else:
            self._take_notice(method, _as_object(message.get("params")))

    def _take_notice(self, method: str, params: JsonObject) -> None:
        if method == "notifications/progress":
            self._progress(params)
        elif method == "notifications/cancelled":
            number = params.get("requestId")
            task = self._replies.get(number) if isinstance(number, str | int) else None
            if task is not None:
                task.cancel()
        self._on_notice(method, params)

    def _answer(self, number: Any, message: JsonObject) -> None:
        pending = self._find_pending(number)
        if pending is None or pending.answer.done():
            return
        error = message.get("error")
        if error is None:
            pending.answer.set_result(message.get("result"))
        else:
            pending.answer.set_exception(read_error(error))

    def _find_pending(self, number: Any) -> _PendingRequest | None:
        found = read_id(number)
        return None if found is None else self._open.get(found)

    async def _reply(self, number: str | int, method: str, params: JsonObject) -> None:
        """Answer a request of the server; the time of calls stands still while somebody decides."""
        try:
            if self.is_stateless:
                raise RemoteError(f"Method not found: {method[:100]}", METHOD_NOT_FOUND)
            if self._requests.asks(method):
                self._pause()
            answer: JsonObject = {"result": await self._requests.answer(method, params, number)}
        except RemoteError as error:
            answer = {"error": {"code": error.code or METHOD_NOT_FOUND, "message": str(error)}}
        finally:
            if self._requests.asks(method):
                self._pause(ended=True)
        await self._send({"id": number, **answer})

    def _pause(self, *, ended: bool = False) -> None:
        """Give open requests all the time there is, or, once `ended`, their usual time again."""
        now = asyncio.get_running_loop().time()
        for pending in self._open.values():
            if not pending.answer.done() and not pending.clock.expired():
                usual = min(now + pending.seconds, pending.deadline)
                pending.clock.reschedule(usual if ended else pending.deadline)

    def _progress(self, params: JsonObject) -> None:
        pending = self._find_pending(params.get("progressToken"))
        if pending is None or pending.answer.done() or pending.clock.expired():
            return
        now = asyncio.get_running_loop().time()
        pending.clock.reschedule(min(now + pending.seconds, pending.deadline))
        if pending.on_progress is not None and isinstance(text := params.get("message"), str):
            pending.on_progress(text)

    def _notify(self, message: JsonObject) -> None:
        """Send a message without an answer, in the background."""
        self._run(self._send(message))

    def _run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None] | None:
        """Do something in the background, unless far too much waits there already."""
        # A server that asks faster than it reads would otherwise fill the memory.
        if self.lost is not None or len(self._tasks) > MAX_PENDING_MESSAGES:
            work.close()
            return None
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send(self, message: JsonObject) -> None:
        try:
            async with asyncio.timeout(10):
                await self._channel.send(message)
        except (ServerProblem, RemoteError, TimeoutError):
            return

    def _end(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        for pending in self._open.values():
            if not pending.answer.done():
                pending.answer.set_exception(ServerProblem(reason, gone=True))
        self.on_lost(reason)


def _as_object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _future(loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
    """Return a future whose exception may stay unretrieved: its waiter may be gone."""
    future: asyncio.Future[Any] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future
