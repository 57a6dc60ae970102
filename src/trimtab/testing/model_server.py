"""A model server that answers from a script, records requests and counts tokens."""

import asyncio
import re
from collections.abc import Iterator
from itertools import islice
from types import TracebackType
from typing import Any, Self

import msgspec

from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.contracts.provider import Reply, ServedRequest, ServerWire
from trimtab.providers.http_server import (
    Exchange,
    Headers,
    HttpRequest,
    HttpServer,
    find_remote_host,
    is_local,
)
from trimtab.providers.script import Break, Player, RequestFacts, Script, Step, reply_of
from trimtab.providers.scripted import describe_request
from trimtab.providers.wires import new_server_wire

_WIRES = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/messages": "anthropic-messages",
}


class RecordedRequest:
    """A received request. `json` and `served` parse its body."""

    def __init__(self, number: int, request: HttpRequest, wire: ServerWire) -> None:
        self.number = number
        self.path = request.path
        self.headers = request.headers
        self.body = request.body
        self._wire = wire

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def served(self) -> ServedRequest:
        return self._wire.request(self.body)


class Totals(msgspec.Struct, kw_only=True, rename="camel"):
    """Counts of the server. Tokens are those of answers that were sent completely."""

    requests: int = 0
    answers: int = 0
    errors: int = 0
    broken: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0

    def add(self, reply: Reply) -> None:
        usage = reply.usage
        self.answers += 1
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.cache_read_tokens += usage.cache_read_tokens or 0


class ModelServer:
    """Serves all three wires. Use it as an async context manager.

    `requests` are the latest requests, at most `keep` of them with at most `keep_bytes` of bodies;
    `usage` counts all. `answered` is set once a call was answered or has failed.
    """

    def __init__(
        self,
        script: Script,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        keep: int = 10_000,
        keep_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        self.host = host
        self.port = port
        self.requests: list[RecordedRequest] = []
        self.usage = Totals()
        self.answered = asyncio.Event()
        self._asked = asyncio.Event()
        self._player = Player(script)
        self._keep = keep
        self._keep_bytes = keep_bytes
        self._kept_bytes = 0
        self._server = HttpServer(self._handle)
        self._wires: dict[str, ServerWire] = {}

    @property
    def url(self) -> str:
        """The server's address, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def connections(self) -> int:
        """The number of connections accepted so far."""
        return self._server.accepted

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        try:
            self.port = await self._server.start(self.host, self.port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"The model server cannot listen on {self.host}:{self.port} ({reason}); choose "
                "another port."
            ) from None

    async def stop(self) -> None:
        await self._server.stop()

    def load(self, script: Script) -> None:
        """Use another script from the next request on; the counts continue."""
        self._player = Player(script, self._player.requests)

    async def wait_for_requests(self, count: int) -> None:
        """Wait until the model has been called `count` times."""
        while self.usage.requests < count:
            self._asked.clear()
            await self._asked.wait()

    async def _handle(self, exchange: Exchange) -> None:
        request = exchange.request
        if is_local(self.host) and (remote := find_remote_host(request.headers)):
            message = f"The scripted model answers this machine only, not {remote}."
            await exchange.answer(403, self._wire("openai-chat").error(403, message))
            return
        if request.method == "POST":
            suffix = next((end for end in _WIRES if request.path.endswith(end)), None)
            if suffix is not None:
                try:
                    await self._answer_call(exchange, self._wire(_WIRES[suffix]))
                finally:
                    self.answered.set()
                return
        await self._answer_other(exchange)

    async def _answer_other(self, exchange: Exchange) -> None:
        """Answer a request that is not a call to the model."""
        request = exchange.request
        route = (request.method, request.path.removeprefix("/v1"))
        if route == ("GET", "/models"):
            await exchange.answer(200, _models(self._player.script))
        elif route == ("GET", "/copilot_internal/user"):
            await exchange.answer(200, _user(self.url))
        elif route == ("GET", "/_trimtab/stats"):
            await exchange.answer(200, msgspec.json.encode(self.usage))
        elif route == ("POST", "/_trimtab/script"):
            await self._replace_script(exchange)
        else:
            message = f"The scripted model has no {request.method} {request.path}."
            await exchange.answer(404, self._wire("openai-chat").error(404, message))

    async def _replace_script(self, exchange: Exchange) -> None:
        try:
            self.load(Script.parse(exchange.request.body.decode("utf-8", "replace")))
        except ConfigurationError as error:
            await exchange.answer(400, self._wire("openai-chat").error(400, error.message))
        else:
            await exchange.answer(200, b"{}")

    async def _answer_call(self, exchange: Exchange, wire: ServerWire) -> None:
        self.usage.requests += 1
        recorded = RecordedRequest(self.usage.requests, exchange.request, wire)
        self._remember(recorded)
        self._asked.set()
        try:
            head = _read_head(recorded.body)
            step = self._player.next(lambda: _describe(recorded))
        except (msgspec.DecodeError, ModelError, AttributeError, TypeError, ValueError):
            self.usage.errors += 1
            message = "The request body is not in this wire's format."
            await exchange.answer(400, wire.error(400, message))
            return
        number = self._player.requests
        if step.delay:
            await asyncio.sleep(step.delay)
        if step.error is not None:
            self.usage.errors += 1
            await exchange.answer(
                step.error.status, _error_body(step, wire), headers=step.error.headers.items()
            )
            return
        reply = reply_of(step, number, len(recorded.body))
        reply = msgspec.structs.replace(reply, model=step.model or head.model)
        self.usage.broken += step.broken is not None
        await _send(exchange, step, _pieces(step, reply, wire, bool(head.stream)))
        self.usage.add(reply)

    def _remember(self, recorded: RecordedRequest) -> None:
        self.requests.append(recorded)
        self._kept_bytes += len(recorded.body)
        while len(self.requests) > self._keep or (
            self._kept_bytes > self._keep_bytes and len(self.requests) > 1
        ):
            self._kept_bytes -= len(self.requests.pop(0).body)

    def _wire(self, name: str) -> ServerWire:
        if name not in self._wires:
            self._wires[name] = new_server_wire(name)
        return self._wires[name]


class _RequestHead(msgspec.Struct):
    """The two fields of a request that every answer needs."""

    model: str = ""
    stream: bool | None = False


_HEAD_DECODER = msgspec.json.Decoder(_RequestHead)
_USUAL_START = re.compile(rb'\{"model":"([^"\\]*)","stream":(true|false)[,}]')


def _read_head(body: bytes) -> _RequestHead:
    """Read the two fields, without parsing megabytes if they come first, as in our requests."""
    start = _USUAL_START.match(body)
    if start is None:
        return _HEAD_DECODER.decode(body)
    return _RequestHead(start[1].decode("utf-8", "replace"), start[2] == b"true")


class _Answer(msgspec.Struct, frozen=True):
    """The body of an answer in pieces; `length` is None for a stream."""

    pieces: Iterator[bytes]
    headers: Headers
    length: int | None = None


def _pieces(step: Step, reply: Reply, wire: ServerWire, streamed: bool) -> _Answer:
    kind = "text/event-stream" if streamed else "application/json"
    headers = {"content-type": kind, "x-request-id": reply.request_id or "", **step.headers}
    if step.raw is not None:
        return _Answer(iter([step.raw.encode()]), headers.items())
    if streamed:
        return _Answer(wire.frames(reply, chunk=step.chunk), headers.items())
    body = wire.body(reply)
    half = len(body) // 2
    # Two pieces, so that a script can break the connection between them.
    return _Answer(iter([body[:half], body[half:]]), headers.items(), len(body))


async def _send(exchange: Exchange, step: Step, answer: _Answer) -> None:
    broken, pieces = step.broken, answer.pieces
    if broken is not None and broken.at_start:
        await _break_off(exchange, broken)
        broken = None
    await exchange.begin(200, answer.headers, length=answer.length)
    if broken is not None:
        before, pieces = _split(pieces, broken)
        await _send_pieces(exchange, before, step.chunk_delay)
        await _break_off(exchange, broken)
    await _send_pieces(exchange, pieces, step.chunk_delay)
    await exchange.end()


async def _send_pieces(exchange: Exchange, pieces: Iterator[bytes], delay: float) -> None:
    if not delay:
        await exchange.send(pieces)
        return
    for piece in pieces:
        await exchange.send([piece])
        await asyncio.sleep(delay)


def _split(pieces: Iterator[bytes], broken: Break) -> tuple[Iterator[bytes], Iterator[bytes]]:
    if broken.after_bytes is None:
        return iter(list(islice(pieces, broken.after))), pieces
    body = b"".join(pieces)
    return iter([body[: broken.after_bytes]]), iter([body[broken.after_bytes :]])


async def _break_off(exchange: Exchange, broken: Break) -> None:
    """Break the connection as the script says. Returns only after a silence of limited length."""
    if broken.how == "close":
        exchange.close()
    elif broken.how == "reset":
        exchange.reset()
    elif broken.how == "half":
        await exchange.half_close()
    elif broken.seconds is None:
        await exchange.silence()
    else:
        await asyncio.sleep(broken.seconds)


def _describe(recorded: RecordedRequest) -> RequestFacts:
    served = recorded.served
    return describe_request(served.model, served.system, served.messages)


def _error_body(step: Step, wire: ServerWire) -> bytes:
    error = step.error
    assert error is not None
    if error.body is None:
        return wire.error(error.status, error.message, error.code)
    return error.body.encode() if isinstance(error.body, str) else msgspec.json.encode(error.body)


def _models(script: Script) -> bytes:
    limits = {"max_context_window_tokens": 128_000, "max_output_tokens": 16_384}
    supports = {"streaming": True, "tool_calls": True, "parallel_tool_calls": True, "vision": True}
    named = [{"id": model} if isinstance(model, str) else model for model in script.models]
    data = [
        {
            "id": (name := str(model.get("id"))),
            "name": name,
            "object": "model",
            "vendor": "trimtab",
            "version": name,
            "preview": False,
            "model_picker_enabled": True,
            "policy": {"state": "enabled", "terms": ""},
            "supported_endpoints": ["/chat/completions", "/responses", "/v1/messages"],
            "capabilities": {
                "type": "chat",
                "family": name,
                "tokenizer": "o200k_base",
                "limits": limits,
                "supports": supports,
            },
            **model,
        }
        for model in named
    ]
    return msgspec.json.encode({"object": "list", "data": data})


def _user(url: str) -> bytes:
    return msgspec.json.encode(
        {
            "login": "scripted",
            "copilot_plan": "individual",
            "endpoints": {"api": url},
            "is_mcp_enabled": True,
        }
    )
