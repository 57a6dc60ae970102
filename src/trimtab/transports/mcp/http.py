"""Serves MCP over HTTP on this machine: `/mcp`, with sessions or without."""

import asyncio
import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import new_id
from trimtab.host.connection_owner import can_find_owner, is_own
from trimtab.mcp.codec import decode, encode
from trimtab.mcp.http import NAMED
from trimtab.mcp.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    VERSIONS,
    RemoteError,
)
from trimtab.mcp.parameter_headers import decode_header
from trimtab.providers.http_server import Exchange, Headers, HttpServer, ServerLimits
from trimtab.transports.mcp.conversation import Conversation, check_stateless
from trimtab.transports.mcp.service import NewService
from trimtab.transports.mcp.warm import WarmConversations

PATH = "/mcp"
SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
GATEWAY = "x-trimtab-gateway"
HOSTS = ("localhost", "127.0.0.1", "::1")
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
MAX_SESSIONS = 100
MAX_WAITING = 1000
"""The number of messages that wait for a client to open a stream."""
STREAMED = ("tools/call", "prompts/get", "resources/read", "completion/complete")
"""Methods whose answers are streams, because more may come before them."""
STATUSES = {
    METHOD_NOT_FOUND: 404,
    UNSUPPORTED_VERSION: 400,
    INVALID_PARAMS: 400,
    MISSING_CAPABILITY: 400,
}
"""The statuses of answers without a session that are errors; 200 for other errors."""
REFUSALS = {
    400: "The request is not HTTP.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    503: "There are too many connections.",
}
Work = asyncio.Future[JsonObject | None]
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
    """Handles the requests to `/mcp`. Without a token, only our own user is served."""

    def __init__(self, new_service: NewService, token: str = "") -> None:
        self._new_service = new_service
        self._token = token
        self._clients: dict[str, _Client] = {}
        self._warm = WarmConversations(new_service)
        admits = is_own if not token and can_find_owner() else None
        limits = ServerLimits(refuse=_describe_refusal, admits=admits, knows=self._is_allowed)
        self._server = HttpServer(self.handle, limits)

    async def start(self, port: int) -> int:
        return await self._server.start("127.0.0.1", port)

    async def aclose(self) -> None:
        await self._server.stop()
        for client in self._clients.values():
            await client.conversation.aclose()
        await self._warm.aclose()

    async def handle(self, exchange: Exchange) -> None:
        request = exchange.request
        if not is_local(request.headers):
            await _refuse(exchange, 403, "Only clients on this machine are served.")
        elif request.path != PATH:
            await _refuse(exchange, 404, f"There is nothing at this address; use {PATH}.")
        elif not self._is_allowed(request.headers):
            await _refuse(exchange, 401, "Send the token as Authorization: Bearer TOKEN.")
        elif GATEWAY in request.headers:
            await _refuse(exchange, 508, "A gateway does not serve another, or itself.")
        elif request.method == "POST":
            await self._post(exchange)
        elif request.method == "GET":
            await self._listen(exchange)
        elif request.method == "DELETE":
            await self._end(exchange)
        else:
            await _refuse(exchange, 405, "Use POST, GET or DELETE.")

    def describe_access(self) -> str:
        if self._token:
            return "Clients need the token."
        if can_find_owner():
            return "Only clients of this user are served."
        return (
            "Every user of this machine is served, since the system does not say whose a "
            "connection is."
        )

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
        try:
            check_headers(exchange.request.headers, message)
        except RemoteError as error:
            number = message.get("id")
            await _refuse(exchange, 400, str(error), error.code, error.data, number)
            return
        queue: asyncio.Queue[JsonObject] = asyncio.Queue()
        conversation = self._warm.take(message)
        conversation.send = queue.put_nowait
        work = asyncio.ensure_future(conversation.receive(message, queue.put_nowait))
        try:
            await self._answer_stateless(exchange, queue, work)
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))
            answer = None if work.cancelled() or work.exception() else work.result()
            self._warm.give_back(conversation, answer)

    async def _answer_stateless(
        self, exchange: Exchange, queue: "asyncio.Queue[JsonObject]", work: Work
    ) -> None:
        """Send the answer: a stream if anything comes before it, else a document."""
        first = asyncio.ensure_future(queue.get())
        await asyncio.wait((first, work), return_when=asyncio.FIRST_COMPLETED)
        if first.done():
            await exchange.begin(200, EVENTS)
            await exchange.send([_event(first.result())])
            await _pump(exchange, queue, work)
            if (answer := work.result()) is not None:
                await exchange.send([_event(answer)])
            await exchange.end()
            return
        first.cancel()
        answer = work.result()
        if answer is None:
            await exchange.answer(202, b"")
        else:
            status = STATUSES.get(answer.get("error", {}).get("code"), 200)
            await exchange.answer(status, encode(answer))

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


async def _pump(exchange: Exchange, queue: "asyncio.Queue[JsonObject]", work: Work) -> None:
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
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
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


def _describe_refusal(status: int, _path: str) -> tuple[bytes, Headers]:
    """Return the answer to a request that was not read to its end."""
    error = {"code": -32600, "message": REFUSALS[status]}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    return body, [("content-type", "application/json")]


def _event(message: JsonObject) -> bytes:
    return b"event: message\ndata: " + encode(message) + b"\n\n"
