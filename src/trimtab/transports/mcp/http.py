"""Serves MCP over HTTP on this machine: `/mcp`, with sessions or without."""

import asyncio
import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import new_id
from trimtab.mcp.http import NAMED
from trimtab.mcp.messages import (
    METHOD_NOT_FOUND,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    VERSIONS,
    RemoteError,
    decode,
    encode,
)
from trimtab.mcp.parameter_headers import decode_header
from trimtab.providers.http_server import Exchange, HttpServer
from trimtab.transports.mcp.conversation import Conversation, check_stateless
from trimtab.transports.mcp.open_call import INPUT_REQUIRED
from trimtab.transports.mcp.service import NewService

PATH = "/mcp"
SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
HOSTS = ("localhost", "127.0.0.1", "::1")
HEADER_MISMATCH = -32020
MAX_SESSIONS = 100
ANSWER_SECONDS = 600.0
"""The time a client without a session has to answer what its request asked for."""
MAX_WAITING = 1000
"""The number of messages that wait for a client to open a stream."""
STREAMED = ("tools/call", "prompts/get", "resources/read", "completion/complete")
"""Methods whose answers are streams, because more may come before them."""
EVENTS = [("content-type", "text/event-stream"), ("cache-control", "no-cache")]


class _Client:
    """A client with a session: its conversation, and its open streams."""

    def __init__(self, new_service: NewService) -> None:
        self.conversation = Conversation(new_service, self.send)
        self.calls: list[asyncio.Queue[JsonObject]] = []
        self.stream: asyncio.Queue[JsonObject] | None = None
        self._waiting: list[JsonObject] = []

    def send(self, message: JsonObject) -> None:
        """Send a message on the stream of a running call, else on the client's own stream."""
        if self.calls:
            self.calls[-1].put_nowait(message)
        elif self.stream is not None:
            self.stream.put_nowait(message)
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(message)

    def open_stream(self) -> "asyncio.Queue[JsonObject]":
        self.stream = asyncio.Queue()
        for message in self._waiting:
            self.stream.put_nowait(message)
        self._waiting.clear()
        return self.stream


class HttpService:
    """Handles the requests to `/mcp`. Without a token, everybody on this machine is a client."""

    def __init__(self, new_service: NewService, token: str = "") -> None:
        self._new_service = new_service
        self._token = token
        self._clients: dict[str, _Client] = {}
        self._suspended: dict[str, tuple[Conversation, asyncio.TimerHandle]] = {}
        """Requests without a session that wait for their clients' answers, by their state."""
        self._closing: set[asyncio.Task[None]] = set()
        self._server = HttpServer(self.handle)

    async def start(self, port: int) -> int:
        return await self._server.start("127.0.0.1", port)

    async def aclose(self) -> None:
        await self._server.stop()
        for client in self._clients.values():
            await client.conversation.aclose()
        for state in tuple(self._suspended):
            self._drop(state)
        if self._closing:
            await asyncio.wait(self._closing)

    async def handle(self, exchange: Exchange) -> None:
        request = exchange.request
        if not is_local(request.headers):
            await _refuse(exchange, 403, "Only clients on this machine are served.")
        elif request.path != PATH:
            await _refuse(exchange, 404, f"There is nothing at this address; use {PATH}.")
        elif not self._is_allowed(request.headers):
            await _refuse(exchange, 401, "Send the token as Authorization: Bearer TOKEN.")
        elif request.method == "POST":
            await self._post(exchange)
        elif request.method == "GET":
            await self._listen(exchange)
        elif request.method == "DELETE":
            await self._end(exchange)
        else:
            await _refuse(exchange, 405, "Use POST, GET or DELETE.")

    def _is_allowed(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("authorization", "").removeprefix("Bearer ").encode()
        return not self._token or hmac.compare_digest(given, self._token.encode())

    async def _post(self, exchange: Exchange) -> None:
        request = exchange.request
        messages = list(decode(request.body))
        if len(messages) != 1:
            await _refuse(exchange, 400, "The body is not one JSON-RPC message.", -32700)
            return
        message = messages[0]
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        stated = isinstance(meta, dict) and VERSION_KEY in meta
        if stated or request.headers.get(VERSION, VERSIONS[0]) not in VERSIONS:
            await self._post_stateless(exchange, message)
            return
        if message.get("method") == "initialize":
            await self._greet(exchange, message)
            return
        client = await self._find(exchange)
        if client is None:
            return
        if message.get("method") in STREAMED and message.get("id") is not None:
            await self._stream_answer(exchange, client, message)
            return
        answer = await client.conversation.receive(message)
        if answer is None:
            await exchange.answer(202, b"")
        else:
            await exchange.answer(200, encode(answer))

    async def _greet(self, exchange: Exchange, message: JsonObject) -> None:
        client = _Client(self._new_service)
        answer = await client.conversation.receive(message)
        headers = []
        if answer is not None and "result" in answer:
            while len(self._clients) >= MAX_SESSIONS:
                oldest = self._clients.pop(next(iter(self._clients)))
                await oldest.conversation.aclose()
            session = new_id()
            self._clients[session] = client
            headers = [(SESSION, session)]
        await exchange.answer(200, encode(answer or {}), headers=headers)

    async def _find(self, exchange: Exchange) -> _Client | None:
        session = exchange.request.headers.get(SESSION)
        client = self._clients.get(session or "")
        if client is None:
            status = 404 if session else 400
            await _refuse(exchange, status, "Send initialize first, and its session id.", -32000)
        return client

    async def _stream_answer(
        self, exchange: Exchange, client: _Client, message: JsonObject
    ) -> None:
        queue: asyncio.Queue[JsonObject] = asyncio.Queue()
        client.calls.append(queue)
        work = asyncio.ensure_future(client.conversation.receive(message, queue.put_nowait))
        await exchange.begin(200, EVENTS)
        try:
            await _pump(exchange, queue, work)
            if (answer := work.result()) is not None:
                await exchange.send([_event(answer)])
            await exchange.end()
        finally:
            client.calls.remove(queue)
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))

    async def _post_stateless(self, exchange: Exchange, message: JsonObject) -> None:
        number = message.get("id")
        try:
            check_headers(exchange.request.headers, message)
        except RemoteError as error:
            await _refuse(exchange, 400, str(error), error.code, error.data, number)
            return
        queue: asyncio.Queue[JsonObject] = asyncio.Queue()
        state = ""
        conversation = self._take_suspended(message) or Conversation(
            self._new_service, queue.put_nowait
        )
        work = asyncio.ensure_future(conversation.receive(message, queue.put_nowait))
        try:
            if message.get("method") == "subscriptions/listen":
                await exchange.begin(200, EVENTS)
                await _pump(exchange, queue, work)
            answer = await work
            if answer is None:
                await exchange.answer(202, b"")
                return
            state = self._find_state(answer)
            code = answer.get("error", {}).get("code")
            status = {METHOD_NOT_FOUND: 404, UNSUPPORTED_VERSION: 400, -32602: 400}.get(code, 200)
            if queue.empty():
                await exchange.answer(status, encode(answer))
                return
            await exchange.begin(200, EVENTS)
            pieces = [_event(queue.get_nowait()) for _ in range(queue.qsize())]
            await exchange.send([*pieces, _event(answer)])
            await exchange.end()
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))
            if state:
                self._suspend(state, conversation)
            else:
                await conversation.aclose()

    def _find_state(self, answer: JsonObject) -> str:
        """Return the state by which a client goes on with a request that asked it for input."""
        result = answer.get("result")
        if not isinstance(result, dict) or result.get("resultType") != INPUT_REQUIRED:
            return ""
        return str(result.get("requestState") or "")

    def _suspend(self, state: str, conversation: Conversation) -> None:
        """Keep a conversation for the client's answers, for a limited time."""
        if len(self._suspended) >= MAX_SESSIONS:
            self._drop(next(iter(self._suspended)))
        timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._drop, state)
        self._suspended[state] = (conversation, timer)

    def _take_suspended(self, message: JsonObject) -> Conversation | None:
        params = message.get("params")
        state = params.get("requestState") if isinstance(params, dict) else None
        conversation, timer = self._suspended.pop(str(state), (None, None))
        if timer is not None:
            timer.cancel()
        return conversation

    def _drop(self, state: str) -> None:
        conversation, timer = self._suspended.pop(state)
        timer.cancel()
        task = asyncio.get_running_loop().create_task(conversation.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _listen(self, exchange: Exchange) -> None:
        if exchange.request.headers.get(VERSION) == STATELESS:
            await _refuse(exchange, 405, "This version has no stream of its own; use POST.")
            return
        client = await self._find(exchange)
        if client is None:
            return
        queue = client.open_stream()
        await exchange.begin(200, EVENTS)
        await exchange.send([b": open\n\n"])
        try:
            while True:
                await exchange.send([_event(await queue.get())])
        finally:
            if client.stream is queue:
                client.stream = None

    async def _end(self, exchange: Exchange) -> None:
        client = await self._find(exchange)
        if client is not None:
            del self._clients[exchange.request.headers[SESSION]]
            await client.conversation.aclose()
            await exchange.answer(200, b"")


async def _pump(exchange: Exchange, queue: "asyncio.Queue[JsonObject]", work: Any) -> None:
    """Send what comes before the answer, until the answer is there."""
    while not work.done() or not queue.empty():
        following = asyncio.ensure_future(queue.get())
        try:
            await asyncio.wait((following, work), return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                await exchange.send([_event(following.result())])
        finally:
            following.cancel()


def is_local(headers: Mapping[str, str]) -> bool:
    """Return True for requests of this machine: a page of another host must not reach us."""
    host = urlsplit(f"//{headers.get('host', '')}").hostname
    origin = headers.get("origin")
    return host in HOSTS and (origin is None or urlsplit(origin).hostname in HOSTS)


def check_headers(headers: Mapping[str, str], message: JsonObject) -> None:
    """Raise `RemoteError` unless the headers of a stateless request agree with its body."""
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    check = {**params, "_meta": {**(params.get("_meta") or {})}}
    version = check["_meta"].get(VERSION_KEY)
    if headers.get(VERSION) is None:
        raise RemoteError("The header MCP-Protocol-Version is missing", HEADER_MISMATCH)
    if version is not None and headers[VERSION] != version:
        raise RemoteError("MCP-Protocol-Version and _meta differ", HEADER_MISMATCH)
    check_stateless(params)
    method = message.get("method")
    if message.get("id") is None:
        return
    if headers.get("mcp-method") != method:
        raise RemoteError("The header Mcp-Method is not the method", HEADER_MISMATCH)
    if method in NAMED:
        subject = params.get(NAMED[str(method)])
        if decode_header(headers.get("mcp-name", "")) != subject:
            raise RemoteError("The header Mcp-Name is not the name", HEADER_MISMATCH)


async def _refuse(
    exchange: Exchange,
    status: int,
    text: str,
    code: int = -32600,
    data: Any = None,
    number: Any = None,
) -> None:
    error: JsonObject = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    body = {"jsonrpc": "2.0", "id": number, "error": error}
    await exchange.answer(status, msgspec.json.encode(body))


def _event(message: JsonObject) -> bytes:
    return b"event: message\ndata: " + encode(message) + b"\n\n"
