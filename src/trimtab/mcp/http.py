"""HTTP transports of MCP: streamable HTTP, and the older HTTP with server-sent events."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import EventReader, HttpAnswer, ServerAccess
from trimtab.mcp.codec import decode, encode
from trimtab.mcp.http_requests import EVENT_STREAM, VERSION_HEADER, HttpRequests
from trimtab.mcp.messages import STATELESS, VERSION_KEY, RemoteError, ServerProblem, read_id
from trimtab.mcp.parameter_headers import encode_header
from trimtab.mcp.transport import NO_HEADERS, Deliver

SESSION = "mcp-session-id"
ACCEPT = {"Accept": f"application/json, {EVENT_STREAM}", "Content-Type": "application/json"}
DELETE_SECONDS = 2.0
RECONNECT_DELAYS = (1.0, 2.0, 5.0, 15.0, 60.0)
"""The seconds before each attempt to reopen the server's stream."""
MAX_RESUMPTIONS = 20
"""The number of times that the stream of one answer is taken up again."""
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods whose subject is repeated in a header, and the parameter that is their subject."""


class HttpChannel:
    """Streamable HTTP: messages are posted, and an answer is JSON or a stream of events.

    A stream that ends before the answer is taken up again where it ended, if the server gave its
    events ids. Requests of the stateless version have headers of their own and no session.
    """

    def __init__(self, server: McpServer, access: ServerAccess) -> None:
        self._requests = HttpRequests(server, access)
        self._deliver: Deliver = lambda _: None
        self._session_headers: dict[str, str] = {}
        self._stateless = False
        self._listening: asyncio.Task[None] | None = None

    noise = ""

    @property
    def cancels_by_closing(self) -> bool:
        return self._stateless

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver = deliver

    async def send(self, message: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> bool:
        requests, reader = self._requests, self._requests.new_reader()
        own = describe_stateless(message) or self._session_headers
        request_id = message.get("id") if "method" in message else None
        answer = await requests.request(
            "POST", requests.url, {**ACCEPT, **own, **headers}, encode(message)
        )
        if message.get("method") == "initialize" and SESSION in answer.headers:
            self._session_headers["Mcp-Session-Id"] = answer.headers[SESSION]
        answered = await self._read(answer, reader, request_id)
        if not answered and request_id is not None:
            await self._resume(reader, request_id)
        return False

    async def _read(self, answer: HttpAnswer, reader: EventReader, request_id: Any) -> bool:
        """Deliver messages until the answer to a request; return False if it did not come."""
        answered = False
        try:
            expected = request_id is not None
            async for received in self._requests.messages(answer, reader, expected=expected):
                self._deliver(received)
                if request_id is not None and _answers(received, request_id):
                    answered = True
                    break
        except ServerProblem:
            if not reader.last_id:
                raise
        finally:
            answer.close(expect_end=answered)
        return answered

    async def _resume(self, reader: EventReader, request_id: Any) -> None:
        """Take the stream of an answer up again, as often as it ends without the answer."""
        requests = self._requests
        for _ in range(MAX_RESUMPTIONS):
            if not reader.last_id:
                return
            await asyncio.sleep(RECONNECT_DELAYS[0] if reader.retry is None else reader.retry)
            resumed = {"Accept": EVENT_STREAM, "Last-Event-ID": reader.last_id}
            try:
                answer = await requests.request(
                    "GET", requests.url, {**resumed, **self._session_headers}
                )
            except ServerProblem as problem:
                if problem.status:
                    return
                continue
            if await self._read(answer, reader, request_id):
                return

    def ready(self, version: str) -> None:
        self._stateless = version == STATELESS
        if not self._stateless:
            self._session_headers[VERSION_HEADER] = version
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        """Receive messages that the server initiates, if it offers a stream; most do not."""
        reader = self._requests.new_reader()
        for delay in RECONNECT_DELAYS:
            try:
                await self._read_stream(reader)
            except RemoteError:
                return
            except ServerProblem as problem:
                if not problem.gone:
                    return
            await asyncio.sleep(delay if reader.retry is None else reader.retry)

    async def _read_stream(self, reader: EventReader) -> None:
        requests, headers = self._requests, {"Accept": EVENT_STREAM} | self._session_headers
        if reader.last_id:
            headers["Last-Event-ID"] = reader.last_id
        answer = await requests.request("GET", requests.url, headers)
        try:
            async for message in requests.messages(answer, reader):
                self._deliver(message)
        finally:
            answer.close()

    async def aclose(self) -> None:
        await _cancel(self._listening)
        if "Mcp-Session-Id" in self._session_headers:
            with suppress(TimeoutError, ServerProblem):
                async with asyncio.timeout(DELETE_SECONDS):
                    url, headers = self._requests.url, self._session_headers
                    (await self._requests.request("DELETE", url, headers)).close()


def describe_stateless(message: JsonObject) -> dict[str, str]:
    """Return the headers of a request of the stateless version; {} for other messages."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(meta, dict) or VERSION_KEY not in meta:
        return {}
    method = message["method"]
    headers = {VERSION_HEADER: meta[VERSION_KEY], "Mcp-Method": method}
    if method in NAMED and isinstance(subject := params.get(NAMED[method]), str):
        headers["Mcp-Name"] = encode_header(subject)
    return headers


def _answers(message: JsonObject, request_id: Any) -> bool:
    """Return True for the answer to a request, whose number may have become text or a float."""
    return "method" not in message and read_id(message.get("id")) == request_id


class SseChannel:
    """HTTP with server-sent events, used by protocol versions before 2025-03-26.

    One stream carries all messages of the server; its first event is the address to post to.
    """

    cancels_by_closing = False
    noise = ""

    def __init__(self, server: McpServer, access: ServerAccess) -> None:
        self._requests = HttpRequests(server, access)
        self._deliver: Deliver = lambda _: None
        self._lost: Callable[[str], None] = lambda _: None
        self._target: asyncio.Future[str] | None = None
        self._stream: asyncio.Task[None] | None = None

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver, self._lost = deliver, lost
        loop = asyncio.get_running_loop()
        self._target = loop.create_future()
        self._stream = loop.create_task(self._read())

    async def send(self, message: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> bool:
        assert self._target is not None
        url = await asyncio.shield(self._target)
        given = {"Content-Type": "application/json"}
        (await self._requests.request("POST", url, given, encode(message))).close()
        return True

    def ready(self, version: str) -> None:
        pass

    async def aclose(self) -> None:
        await _cancel(self._stream)
        if self._target is not None:
            self._target.cancel()

    async def _read(self) -> None:
        problem = ServerProblem("its event stream ended", gone=True)
        try:
            await self._read_stream()
        except ServerProblem as error:
            problem = error
        assert self._target is not None
        if not self._target.done():
            self._target.set_exception(problem)
            self._target.exception()  # mark it as retrieved: nobody may be waiting for it
        self._lost(str(problem))

    async def _read_stream(self) -> None:
        assert self._target is not None
        requests = self._requests
        answer = await requests.request("GET", requests.url, {"Accept": EVENT_STREAM})
        try:
            async for event in requests.events(answer, requests.new_reader()):
                if not self._target.done():
                    target = urljoin(requests.url, event.decode("utf-8", "replace").strip())
                    self._target.set_result(requests.same_origin(target))
                    continue
                for message in decode(event):
                    self._deliver(message)
        finally:
            answer.close()


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait((task,))
