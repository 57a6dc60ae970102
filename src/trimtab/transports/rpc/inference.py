"""An HTTP client whose requests are made by an SDK client."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.ids import new_id
from trimtab.host.ports import ClientGone
from trimtab.providers.connection import Timeouts
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.protocol import RpcError

CALLER = {
    "x-interaction-type": "interactionType",
    "x-agent-task-id": "agentId",
    "x-parent-agent-id": "parentAgentId",
}
"""Headers that identify the calling agent → their names in the protocol."""


SWITCHING = 101
"""The status of a response that opens a WebSocket."""
LAST_EVENTS = frozenset(("response.completed", "response.failed", "response.incomplete", "error"))


class Head(msgspec.Struct, frozen=True):
    """Status and headers of a response."""

    status: int
    headers: dict[str, str]


EVENTS = Head(200, {"content-type": "text/event-stream"})


class Exchange:
    """A request that a client makes for us, and the part of the response that has arrived."""

    def __init__(self) -> None:
        self.head: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self._pieces: asyncio.Queue[bytes | ModelError] = asyncio.Queue()
        self._ended = False

    def start(self, head: Head) -> None:
        if not self.head.done():
            self.head.set_result(head)

    def add(self, data: bytes) -> None:
        if data:
            self._pieces.put_nowait(data)

    def end(self, error: str | None = None) -> None:
        """End the response. An error after the head is raised by `receive`."""
        failure = ModelError(
            f"The client could not make the model call: {error}; check its handler.",
            category="transport",
        )
        if not self.head.done():
            self.head.set_exception(failure)
        self._pieces.put_nowait(failure if error else b"")

    async def receive(self) -> bytes:
        if self._ended:
            return b""
        piece = await self._pieces.get()
        if isinstance(piece, ModelError):
            raise piece
        self._ended = not piece
        return piece


class ClientResponse:
    """A response with the interface that providers read."""

    def __init__(self, http: "ClientHttp", request_id: str, exchange: Exchange, head: Head) -> None:
        self._http = http
        self._request_id = request_id
        self._exchange = exchange
        self.status = head.status
        self.headers = head.headers

    async def receive(self) -> bytes:
        return await self._exchange.receive()

    async def read(self, limit: int = 256 * 1024 * 1024) -> bytes:
        pieces = []
        while limit > 0 and (data := await self.receive()):
            pieces.append(data)
            limit -= len(data)
        return b"".join(pieces)

    def close(self, *, expect_end: bool = False) -> None:
        self._http.forget(self._request_id, cancel=not expect_end)


class ClientHttp:
    """Sends every request to one SDK client, with the interface of `HttpClient`."""

    timeouts = Timeouts()

    def __init__(self, peer: Peer, exchanges: dict[str, Exchange], session_id: str) -> None:
        self._peer = peer
        self._exchanges = exchanges
        self._session_id = session_id

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Sequence[bytes] = (),
        on_sent: Callable[[], object] | None = None,
    ) -> ClientResponse:
        """Have the client make a request; `on_sent` is called first."""
        if on_sent is not None:
            on_sent()
        request_id = new_id()
        exchange = self._exchanges[request_id] = Exchange()
        start: dict[str, object] = {
            "requestId": request_id,
            "sessionId": self._session_id,
            "method": method,
            "url": url,
            "headers": {name: [value] for name, value in headers.items()},
            "transport": "http",
            **{field: headers[name] for name, field in CALLER.items() if name in headers},
        }
        try:
            return await self._exchange(start, exchange, b"".join(body))
        except BaseException as error:
            self.forget(request_id, cancel=isinstance(error, asyncio.CancelledError))
            if isinstance(error, (ClientGone, RpcError)):
                raise ModelError(
                    f"The client that makes the model calls did not answer ({error}); try again.",
                    category="transport",
                ) from None
            raise

    async def _exchange(
        self, start: dict[str, object], exchange: Exchange, body: bytes
    ) -> ClientResponse:
        await self._peer.ask("llmInference.httpRequestStart", start)
        request_id = str(start["requestId"])
        await self.send(request_id, {"data": body.decode("utf-8", "replace"), "end": True})
        return ClientResponse(self, request_id, exchange, await exchange.head)

    async def aclose(self) -> None:
        """Do nothing: no connection is kept between requests."""

    def forget(self, request_id: str, *, cancel: bool) -> None:
        """Drop a response, and tell the client to cancel the request."""
        exchange = self._exchanges.pop(request_id, None)
        if exchange is None:
            return
        if exchange.head.done() and not exchange.head.cancelled():
            exchange.head.exception()  # retrieve it, or asyncio reports it as never retrieved
        exchange.head.cancel()
        if cancel:
            params = {"requestId": request_id, "data": "", "cancel": True}
            asyncio.ensure_future(self._cancel(params))  # noqa: RUF006 - the peer's writes are kept

    async def send(self, request_id: str, part: dict[str, object]) -> None:
        await self._peer.ask("llmInference.httpRequestChunk", {"requestId": request_id, **part})

    async def _cancel(self, params: dict[str, object]) -> None:
        try:
            await self._peer.ask("llmInference.httpRequestChunk", params)
        except (ClientGone, RpcError):
            return


class ClientSockets(ClientHttp):
    """Sends every request as the first message of a WebSocket that the client opens."""

    async def _exchange(
        self, start: dict[str, object], exchange: Exchange, body: bytes
    ) -> ClientResponse:
        request_id, url = str(start["requestId"]), str(start["url"])
        address = url.replace("http", "ws", 1)
        opening = {**start, "method": "GET", "url": address, "transport": "websocket"}
        await self._peer.ask("llmInference.httpRequestStart", opening)
        head = await exchange.head
        if head.status != SWITCHING:
            return ClientResponse(self, request_id, exchange, head)
        message = {"type": "response.create", **msgspec.json.decode(body)}
        message.pop("stream", None)  # a WebSocket always streams
        text = msgspec.json.encode(message).decode()
        await self.send(request_id, {"data": text, "end": False})
        return SocketResponse(self, request_id, exchange, EVENTS)


class SocketResponse(ClientResponse):
    """The messages of a WebSocket as server-sent events, up to the event that ends the answer."""

    def __init__(self, http: "ClientHttp", request_id: str, exchange: Exchange, head: Head) -> None:
        super().__init__(http, request_id, exchange, head)
        self._over = False

    async def receive(self) -> bytes:
        if self._over:
            return b""
        message = await super().receive()
        self._over = not message or _event_type(message) in LAST_EVENTS
        return b"data: %b\n\n" % message if message else b""


class _SocketEvent(msgspec.Struct):
    type: str = ""


def _event_type(message: bytes) -> str:
    try:
        return msgspec.json.decode(message, type=_SocketEvent).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
