"""The bridge: an HTTP server on loopback that answers with the models that Trimtab has."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

import msgspec

from trimtab.bridge.journal import Call, Journal
from trimtab.bridge.pass_through import (
    PassThrough,
    prepare,
    request_headers,
    response_headers,
)
from trimtab.bridge.protocols import (
    NO_RETRY,
    PROTOCOLS,
    Adapter,
    Failure,
    Protocol,
    new_adapter,
)
from trimtab.bridge.targets import ModelTargets, Target
from trimtab.bridge.translation import Translation, build_request, read_request
from trimtab.contracts.errors import ConfigurationError, ModelError, TrimtabError
from trimtab.contracts.options import LimitOptions
from trimtab.contracts.provider import ServedRequest
from trimtab.models.limits import check_limits
from trimtab.providers.http_server import (
    Exchange,
    Headers,
    HttpRequest,
    HttpServer,
    ServerLimits,
    find_remote_host,
)
from trimtab.providers.tokens import counter_for
from trimtab.providers.wires.parts import read_body

HOST = "127.0.0.1"
_COUNT = "/count_tokens"
_MESSAGES = "/v1/messages"
_MODELS = "/v1/models"
_REFUSALS = {
    400: "The request is not HTTP; send an HTTP/1.1 request.",
    408: "The request did not arrive in time; send it again.",
    413: "The request is larger than the bridge accepts; send a smaller one.",
    503: "The bridge has too many connections; close some and try again.",
}


class _Head(msgspec.Struct):
    """The fields of a request that the bridge itself reads."""

    model: str = ""
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None


_HEAD = msgspec.json.Decoder(_Head)


class Bridge:
    """Serves other programs. Every run has a key of its own, and one session.

    `protocols` says which paths are served, in which format.
    """

    def __init__(
        self,
        targets: ModelTargets,
        limits: LimitOptions,
        protocols: Mapping[str, Protocol] = PROTOCOLS,
    ) -> None:
        self.key = f"trimtab-lm-{uuid4()}"
        self.port = 0
        self.default_model = ""
        self.targets = targets
        self.journal: Journal
        """Set before the first request is served, as soon as there is a session."""
        self._limits = limits
        self._protocols = protocols
        limited = ServerLimits(refuse=_refuse, knows=self._has_key)
        self._server = HttpServer(self._handle, limited)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def start(self, port: int = 0) -> None:
        """Listen on a port of this machine; 0 chooses a free one."""
        self.default_model = (await self.targets.default()).chosen.model
        try:
            self.port = await self._server.start(HOST, port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"The bridge cannot listen on {HOST}:{port} ({reason}); choose another --port, or "
                "leave it out for a free one."
            ) from None

    async def stop(self) -> None:
        await self._server.stop()

    async def _handle(self, exchange: Exchange) -> None:
        request = exchange.request
        adapter = new_adapter(request.path, self._protocols)
        try:
            if (failure := self._refuse_stranger(request)) is not None:
                await _answer_failure(exchange, adapter, failure)
            elif (request.method, request.path) == ("HEAD", "/"):
                await exchange.answer(200, b"")
            else:
                await self._route(exchange, adapter)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            # Found while the request is taken apart, so nothing of it has been sent on.
            message = "The request body is not valid JSON; send a JSON object in UTF-8."
            await _answer_failure(exchange, adapter, Failure(400, message, None, ()))
        except ModelError as error:
            await _answer_failure(exchange, adapter, adapter.describe(error))
        except TrimtabError as error:
            await _answer_failure(exchange, adapter, Failure(400, error.message, None, ()))

    def _refuse_stranger(self, request: HttpRequest) -> Failure | None:
        """Return why a request is not served: web pages and other programs can reach the port."""
        if remote := find_remote_host(request.headers):
            return Failure(403, f"The bridge serves this machine only, not {remote}.", None, ())
        if request.headers.get("upgrade"):
            headers = (("connection", "close"),)
            return Failure(426, "The bridge has no WebSockets; use HTTP.", None, headers)
        if (request.method, request.path) == ("HEAD", "/") or self._has_key(request.headers):
            return None
        message = "The key is missing or wrong; use the key that the bridge printed at its start."
        return Failure(401, message, None, (NO_RETRY,))

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = [headers.get("x-api-key", "")]
        given.append(token.strip() if scheme.lower() == "bearer" else "")
        expected = self.key.encode()
        matches = [hmac.compare_digest(key.encode("utf-8", "replace"), expected) for key in given]
        return any(matches)

    async def _route(self, exchange: Exchange, adapter: Adapter) -> None:
        request = exchange.request
        path = request.path.rstrip("/")
        if path == _MODELS or path.startswith(_MODELS + "/"):
            await self._only(exchange, adapter, "GET", self._answer_models)
        elif path in self._protocols:
            await self._only(exchange, adapter, "POST", self._answer_call)
        elif path == _MESSAGES + _COUNT:
            await self._only(exchange, adapter, "POST", self._answer_count)
        else:
            message = f"The bridge has no {request.path[:200]}; see `trimtab bridge --help`."
            await _answer_failure(exchange, adapter, Failure(404, message, None, ()))

    async def _only(
        self,
        exchange: Exchange,
        adapter: Adapter,
        method: str,
        answer: Callable[[Exchange, Adapter], Awaitable[None]],
    ) -> None:
        if exchange.request.method == method:
            await answer(exchange, adapter)
            return
        message = f"{exchange.request.path[:200]} takes {method} only."
        failure = Failure(405, message, None, (("allow", method),))
        await _answer_failure(exchange, adapter, failure)

    async def _answer_call(self, exchange: Exchange, adapter: Adapter) -> None:
        request = exchange.request
        head = _read_head(request.body)
        target = await self._find_target(head.model, adapter)
        call = Call(
            client=_client_name(request),
            route=adapter.path,
            target=target,
            prompt=len(request.body) // 4,
        )
        try:
            if target.wire == adapter.protocol.wire:
                await self._pass_on(exchange, adapter, call, head)
            else:
                served = read_request(adapter, request.body)
                await self._translate(exchange, adapter, call, served)
        finally:
            if call.request_id is not None:
                self.journal.close_call(call, "aborted")

    async def _pass_on(self, exchange: Exchange, adapter: Adapter, call: Call, head: _Head) -> None:
        body = exchange.request.body
        service = call.target.service
        assert service is not None
        model = service.choice.wire_model or call.target.chosen.model
        own = prepare(body, model, adapter.protocol.wire)
        self.journal.open_call(call, body, _output_limit(head))
        query = exchange.request.target.partition("?")[2]
        passing = PassThrough(exchange, adapter, call, self.journal)
        await passing.answer(own, f"?{query}" if query else "")

    async def _translate(
        self, exchange: Exchange, adapter: Adapter, call: Call, served: ServedRequest
    ) -> None:
        request, left_out = build_request(served, call.target)
        self.journal.open_call(call, exchange.request.body, request.max_output_tokens)
        wire = call.target.wire or call.target.chosen.provider.name
        self.journal.tell_left_out(adapter.path, wire, left_out)
        translation = Translation(exchange, adapter, call, self.journal)
        await translation.answer(served, request)

    async def _find_target(self, name: str, adapter: Adapter) -> Target:
        found = await self.targets.find(name, adapter.protocol.wire)
        target = found.target
        if found.replaced:
            self.journal.tell_replaced(name, target.chosen.model)
        check_limits(target.chosen.model, self._limits, target.chosen.price)
        return target

    async def _answer_count(self, exchange: Exchange, adapter: Adapter) -> None:
        """Count tokens: at the service if it speaks this protocol, else here."""
        request = exchange.request
        head = _read_head(request.body)
        target = await self._find_target(head.model, adapter)
        if target.service is not None and target.wire == adapter.protocol.wire:
            model = target.service.choice.wire_model or target.chosen.model
            own = prepare(request.body, model, adapter.protocol.wire)
            query = request.target.partition("?")[2]
            below = _COUNT + (f"?{query}" if query else "")
            headers = request_headers(request.headers)
            response = await target.service.forward(target.chosen.model, below, headers, [own.body])
            try:
                body = await response.read()
            finally:
                response.close(expect_end=True)
            if 200 <= response.status < 300:
                kept = [pair for pair in response_headers(response) if pair[0] != "content-type"]
                await exchange.answer(response.status, body, headers=kept)
                return
        served = read_request(adapter, request.body)
        tokens = await asyncio.to_thread(_count_tokens, target.chosen.model, served)
        await exchange.answer(200, msgspec.json.encode({"input_tokens": tokens}))

    async def _answer_models(self, exchange: Exchange, adapter: Adapter) -> None:
        """List the models, or show one, in the shape of the client's vendor."""
        request = exchange.request
        is_anthropic = "anthropic-version" in request.headers
        names = await self.targets.names()
        wanted = request.path[len(_MODELS) :].strip("/")
        if wanted:
            if wanted not in names:
                shape = new_adapter(_MESSAGES) if is_anthropic else adapter
                message = f"Unknown model {wanted[:200]!r}; GET {_MODELS} lists the models."
                await _answer_failure(exchange, shape, Failure(404, message, None, ()))
                return
            await exchange.answer(200, msgspec.json.encode(_model(wanted, is_anthropic)))
            return
        data = [_model(name, is_anthropic) for name in names]
        listed: dict[str, Any] = {"object": "list", "data": data}
        if is_anthropic:
            listed = {"data": data, "has_more": False}
            listed |= {"first_id": names[0], "last_id": names[-1]}
        await exchange.answer(200, msgspec.json.encode(listed))


async def _answer_failure(exchange: Exchange, adapter: Adapter, failure: Failure) -> None:
    body = b"" if exchange.request.method == "HEAD" else adapter.error(failure)
    await exchange.answer(failure.status, body, headers=failure.headers)


def _refuse(status: int, path: str) -> tuple[bytes, Headers]:
    adapter = new_adapter(path)
    return adapter.error(Failure(status, _REFUSALS[status], None, ())), [
        ("content-type", "application/json")
    ]


def _read_head(body: bytes) -> _Head:
    try:
        return _HEAD.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read_body(body)  # says so if it is not an object at all
        raise ModelError(
            "The model's name is not a text; send the name of a model.",
            category="invalid",
            status=400,
        ) from None


def _output_limit(head: _Head) -> int | None:
    for value in (head.max_tokens, head.max_completion_tokens, head.max_output_tokens):
        if isinstance(value, int) and value > 0:
            return value
    return None


def _client_name(request: HttpRequest) -> str:
    name = "".join(c for c in request.headers.get("user-agent", "") if c.isprintable())
    return name[:100] or "unknown"


def _count_tokens(model: str, served: ServedRequest) -> int:
    counter = counter_for(model)
    total = counter.text(served.system) + counter.of_tools(served.tools)
    return total + sum(map(counter.of, served.messages))


def _model(name: str, is_anthropic: bool) -> dict[str, Any]:
    if is_anthropic:
        created = "1970-01-01T00:00:00Z"
        return {"type": "model", "id": name, "display_name": name, "created_at": created}
    return {"id": name, "object": "model", "created": 0, "owned_by": "trimtab"}
