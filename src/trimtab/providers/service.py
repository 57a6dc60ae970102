"""A model service over HTTP: combines a wire, an address and a key."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.provider import Delta, Reply, Request, Waiting, Wire, WireReader
from trimtab.providers.addresses import join_url, parse_url
from trimtab.providers.auth import auth_header
from trimtab.providers.breaker import FAILURES, breaker_for
from trimtab.providers.effort import map_effort
from trimtab.providers.errors import from_response, request_id, unknown_model
from trimtab.providers.names import did_you_mean, same_model
from trimtab.providers.sse import EventTooLarge, SseParser
from trimtab.providers.wires import new_wire
from trimtab.version import __version__

if TYPE_CHECKING:
    from trimtab.providers.connection import Timeouts
    from trimtab.providers.endpoints import ProviderChoice
    from trimtab.providers.http import HttpClient, Response

_MAX_WIRES = 8
"""The number of conversations whose encoded messages are kept."""
_MAX_WAIT = 60.0
_POLL_INTERVAL = 0.1
MIN_NEWS = 1024
"""Bytes of an event that has not ended which count as progress."""
MAX_QUIET_EVENTS = 200
"""The events in a row that count as progress although nothing of the answer is in them."""
_PING = re.compile(rb'\s*\{\s*"type"\s*:\s*"ping"')
MAX_STREAM = 256 * 1024 * 1024
"""The bytes of a streamed answer after which it is taken to have no end."""


class Service:
    """The `Provider` for a choice of service."""

    def __init__(self, choice: "ProviderChoice", http: "HttpClient") -> None:
        self.name = choice.name
        self.choice = choice
        self._http = http
        self._origin = parse_url(choice.base_url).origin
        self._breaker = breaker_for(self._origin)
        self._wires: dict[int, Wire] = {}

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        breaker = self._breaker
        request = self._prepare(request)
        async for waiting in self._admit():
            yield waiting
        ticket, ok, pause = breaker.ticket, None, 0.0
        try:
            async with aclosing(self._exchange(request)) as exchange:
                async for item in exchange:
                    # The caller stops after the reply, so code after this yield may not run.
                    ok = True if isinstance(item, Reply) else None
                    yield item
        except ModelError as error:
            ok, pause = error.category not in FAILURES, error.retry_after or 0.0
            if error.category == "not_found":
                raise await self._explain(error, request.model) from None
            raise
        finally:
            breaker.leave(ticket, ok, pause)

    def _prepare(self, request: Request) -> Request:
        choice = self.choice
        return msgspec.structs.replace(
            request,
            model=choice.wire_model or request.model,
            max_output_tokens=request.max_output_tokens or choice.max_output_tokens,
            effort=map_effort(request.effort, choice.efforts),
        )

    def stream_once(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        """Make one call like `stream`, but at once, even if the service keeps failing."""
        return self._exchange(self._prepare(request))

    async def forward(
        self, model: str, target: str, headers: Mapping[str, str], body: Sequence[bytes]
    ) -> "Response":
        """Send a request that another program made in the wire of this service.

        `target` is what follows the wire's path: a path below it, and a query. The program's own
        headers win over those of the service, except for the key.
        """
        choice = self.choice
        path = choice.path or new_wire(choice.wire).path
        address, _, query = join_url(choice.base_url, path, model).partition("?")
        below, _, more = target.partition("?")
        queries = "&".join(part for part in (query, more) if part)
        url = address + below + (f"?{queries}" if queries else "")
        own = {name.lower(): value for name, value in choice.headers.items()}
        key = await choice.key.reveal()
        return await self._http.request(
            "POST", url, {**own, **headers, **auth_header(choice.auth, key)}, body
        )

    async def list_models(self) -> list[str] | None:
        """Return the names of the service's models; None if it does not list them."""
        from trimtab.providers.listing import list_names

        return await list_names(self.choice, self._http)

    async def _admit(self) -> AsyncGenerator[Waiting, None]:
        """Wait while the breaker of the service is open, up to a limit."""
        announced, deadline = False, asyncio.get_running_loop().time() + _MAX_WAIT
        while seconds := self._breaker.enter():
            if not announced:
                announced = True
                yield Waiting(seconds, f"{self._origin} keeps failing; calls to it are delayed.")
            if asyncio.get_running_loop().time() > deadline:
                raise ModelError(
                    f"{self._origin} has been failing for a while; try again later.",
                    category="overloaded",
                )
            await asyncio.sleep(min(seconds, _POLL_INTERVAL))

    async def _explain(self, error: ModelError, model: str) -> ModelError:
        """Return an error with suggestions if the service does not list the model."""
        try:
            names = await self.list_models()
        except ModelError:
            return error
        if not names or model in names:
            return error
        return unknown_model(self._origin, model, did_you_mean(model, names), error.status)

    async def _exchange(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        choice = self.choice
        wire = self._wire(request)
        key = await choice.key.reveal()
        readers: list[WireReader] = []
        response = await self._http.request(
            "POST",
            join_url(choice.base_url, choice.path or wire.path, request.model),
            self._headers(request, key),
            wire.body(request),
            on_sent=lambda: readers.append(wire.reader()),
        )
        ended = False
        try:
            if not 200 <= response.status < 300:
                body = await response.read(1024 * 1024)
                raise from_response(
                    response.status, response.headers, body, secrets=(key,) if key else ()
                )
            answer = _Answer(wire, readers[-1], response, self._http.timeouts)
            while (deltas := await answer.receive()) is not None:
                if request.stream:
                    for delta in deltas:
                        yield delta
            reply = answer.reply()
            ended = True
        finally:
            response.close(expect_end=ended)
        known = request_id(response.headers) or reply.request_id
        substituted = not choice.aliases and reply.model not in (None, request.model)
        if substituted:
            substituted = not same_model(request.model, reply.model)
        yield msgspec.structs.replace(reply, request_id=known, substituted=substituted)

    async def aclose(self) -> None:
        await self._http.aclose()

    def _headers(self, request: Request, key: str) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if request.stream else "application/json",
            "accept-encoding": "identity",
            "user-agent": f"trimtab/{__version__}",
            **auth_header(self.choice.auth, key),
        }
        for source in (self.choice.headers, request.headers):
            headers.update((name.lower(), value) for name, value in source.items())
        return headers

    def _wire(self, request: Request) -> Wire:
        """Return the wire of this conversation, identified by its first message.

        The wire keeps that message alive, so its id cannot be reused.
        """
        first = id(request.messages[0]) if request.messages else 0
        wire = self._wires.pop(first, None)
        if wire is None:
            wire = new_wire(self.choice.wire, limit_field=self.choice.limit_field)
            if len(self._wires) >= _MAX_WIRES:
                del self._wires[next(iter(self._wires))]
        self._wires[first] = wire
        return wire


class _Answer:
    """An answer, streamed or whole, whichever the service chose to send."""

    def __init__(
        self, wire: Wire, reader: WireReader, response: "Response", timeouts: "Timeouts"
    ) -> None:
        self._wire = wire
        self._response = response
        self._parser = SseParser()
        self._reader = reader
        self._whole: bytes | None = None
        self._failure: ModelError | None = None
        self._started = False
        self._ended = False
        self._received = 0
        self._seen_pending = 0
        self._last_quiet = b""
        self._quiet_events = 0
        self._timeouts = timeouts
        self._silent_limit = timeouts.first_byte
        self._last_event = time.monotonic()

    async def receive(self) -> list[Delta] | None:
        """Return the deltas of the next bytes; None when the answer is complete."""
        if self._failure is not None:
            raise self._failure
        if self._ended or self._reader.done:
            return None
        data = await self._response.receive()
        if not self._started and self._is_whole(data):
            self._whole = data + await self._response.read()
            return None
        self._started = True
        self._ended = not data
        self._received += len(data)
        deltas: list[Delta] = []
        heard = False
        try:
            events = self._parser.feed(data) if data else self._parser.end()
            self._check_size()
            for event in filter(bytes.strip, events):  # an empty one is no event
                found = self._reader.feed(event)
                heard = self._is_news(event, found) or heard
                deltas += found
            self._check_silence(heard)
        except ModelError as error:
            # Deltas that came before it in the same bytes are returned first.
            self._failure = error
        except EventTooLarge:
            self._failure = ModelError(
                "The model service sent one event larger than any answer can be; check that its "
                "address is that of a model service.",
                category="invalid",
            )
        return deltas

    def _check_size(self) -> None:
        if self._received > MAX_STREAM:
            raise ModelError(
                f"The model service sent an answer of more than {MAX_STREAM >> 20} MB without an "
                "end; check that its address is that of a model service.",
                category="invalid",
            )

    def _is_news(self, event: bytes, found: Sequence[Delta]) -> bool:
        """Return False for an event that only keeps the line open.

        Such events are the same again and again, or carry nothing of the answer for long.
        """
        if found:
            self._quiet_events = 0
            return True
        repeated, self._last_quiet = event == self._last_quiet, event
        self._quiet_events += 1
        is_ping = repeated or _PING.match(event) is not None
        return not is_ping and self._quiet_events <= MAX_QUIET_EVENTS

    def _check_silence(self, heard: bool) -> None:
        """Raise `ModelError` if nothing of an answer came for long: a proxy keeps a dead line open.

        A long event may come in many pieces, so it counts as news that more of it is there.
        """
        now, pending = time.monotonic(), self._parser.pending
        self._seen_pending = min(self._seen_pending, pending)  # an event has ended
        growing = pending >= self._seen_pending + MIN_NEWS
        if heard or growing:
            self._seen_pending = pending
            self._last_event = now
            self._silent_limit = self._timeouts.between_bytes
        elif now - self._last_event > self._silent_limit:
            raise ModelError(
                f"The model service sent nothing but pings for {self._silent_limit:g} s; try "
                "again, or check that the service is up.",
                category="transport",
                code="stalled",
            )

    def reply(self) -> Reply:
        return self._reader.finish() if self._whole is None else self._wire.reply(self._whole)

    def _is_whole(self, data: bytes) -> bool:
        kind = self._response.headers.get("content-type", "")
        return "event-stream" not in kind and (bool(kind) or data.lstrip().startswith(b"{"))
