"""A model service reached over HTTP: a wire, an address and a key put together."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.provider import Delta, Reply, Request, Wire
from trimtab.providers.auth import auth_header
from trimtab.providers.errors import from_response, request_id
from trimtab.providers.sse import EventTooLarge, SseParser
from trimtab.providers.wires import new_wire
from trimtab.version import __version__

if TYPE_CHECKING:
    from trimtab.providers.endpoints import ProviderChoice
    from trimtab.providers.http import HttpClient, Response

_CONVERSATIONS = 8


class Service:
    """The `Provider` for one choice of service."""

    def __init__(self, choice: "ProviderChoice", http: "HttpClient") -> None:
        self.name = choice.name
        self.choice = choice
        self._http = http
        self._wires: dict[int, Wire] = {}

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        choice = self.choice
        request = msgspec.structs.replace(
            request,
            model=choice.wire_model or request.model,
            max_output_tokens=request.max_output_tokens or choice.max_output_tokens,
        )
        wire = self._wire(request)
        key = await choice.key.reveal()
        response = await self._http.request(
            "POST",
            join_url(choice.base_url, choice.path or wire.path, request.model),
            self._headers(request, key),
            wire.body(request),
        )
        ended = False
        try:
            if not 200 <= response.status < 300:
                body = await response.read(1024 * 1024)
                raise from_response(
                    response.status, response.headers, body, secrets=(key,) if key else ()
                )
            answer = _Answer(wire, response)
            while (deltas := await answer.receive()) is not None:
                if request.stream:
                    for delta in deltas:
                        yield delta
            reply = answer.reply()
            ended = True
        finally:
            response.close(expect_end=ended)
        known = request_id(response.headers) or reply.request_id
        yield msgspec.structs.replace(reply, request_id=known)

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
        """The wire that has seen this conversation, known by its first message.

        The wire holds that message, so its id cannot come to mean another.
        """
        first = id(request.messages[0]) if request.messages else 0
        wire = self._wires.pop(first, None)
        if wire is None:
            wire = new_wire(self.choice.wire, limit_field=self.choice.limit_field)
            if len(self._wires) >= _CONVERSATIONS:
                del self._wires[next(iter(self._wires))]
        self._wires[first] = wire
        return wire


class _Answer:
    """An answer in the form it has, which need not be the one asked for."""

    def __init__(self, wire: Wire, response: "Response") -> None:
        self._wire = wire
        self._response = response
        self._parser = SseParser()
        self._reader = wire.reader()
        self._whole: bytes | None = None
        self._failure: ModelError | None = None
        self._begun = False
        self._over = False

    async def receive(self) -> list[Delta] | None:
        """The deltas of the next bytes that come; None when the answer is over."""
        if self._failure is not None:
            raise self._failure
        if self._over or self._reader.done:
            return None
        data = await self._response.receive()
        if not self._begun and self._is_whole(data):
            self._whole = data + await self._response.read()
            return None
        self._begun = True
        self._over = not data
        deltas: list[Delta] = []
        try:
            for event in self._parser.feed(data) if data else self._parser.end():
                deltas += self._reader.feed(event)
        except ModelError as error:
            # What came before it in the same bytes is given first.
            self._failure = error
        except EventTooLarge:
            self._failure = ModelError(
                "The model service sent one event larger than any answer can be; check that its "
                "address is that of a model service.",
                category="invalid",
            )
        return deltas

    def reply(self) -> Reply:
        return self._reader.finish() if self._whole is None else self._wire.reply(self._whole)

    def _is_whole(self, data: bytes) -> bool:
        kind = self._response.headers.get("content-type", "")
        return "event-stream" not in kind and (bool(kind) or data.lstrip().startswith(b"{"))


def join_url(base: str, path: str, model: str) -> str:
    """The address of a call; a base that already ends with part of the path is taken as it is."""
    base, question, query = base.partition("?")
    base = base.rstrip("/")
    path, _, path_query = path.partition("?")
    if "{model}" in path:
        from urllib.parse import quote

        path = path.replace("{model}", quote(model, safe=""))
    if base.endswith(path):
        path = ""
    elif base.endswith("/v1"):
        path = path.removeprefix("/v1")
    queries = "&".join(part for part in (path_query, query if question else "") if part)
    return base + path + (f"?{queries}" if queries else "")
