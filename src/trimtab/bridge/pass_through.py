"""Passes a request on to a service that speaks the client's own format, with all its fields."""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.bridge.journal import Call, Journal
from trimtab.bridge.protocols import NO_RETRY, Adapter
from trimtab.bridge.reasoning import MARK
from trimtab.contracts.errors import ModelError
from trimtab.contracts.provider import Reply, Usage, Wire
from trimtab.providers.errors import redact
from trimtab.providers.http import Response
from trimtab.providers.http_server import Exchange
from trimtab.providers.service import Service
from trimtab.providers.sse import EventTooLarge, SseParser
from trimtab.providers.wires import new_wire, new_writer
from trimtab.providers.wires.encoding import encode

_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "content-length", "proxy-connection"),
    )
)
_OWN = frozenset(
    ("host", "authorization", "x-api-key", "api-key", "accept-encoding", "cookie", "origin")
)
_KEPT_BACK = frozenset(("set-cookie", "content-encoding"))
_MAX_ERROR = 1024 * 1024
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a client that its service needs: all but the bridge's own."""
    kept = {
        name: value
        for name, value in headers.items()
        if name not in _HOP and name not in _OWN and name != "expect"
    }
    return {**kept, "accept-encoding": "identity"}


def response_headers(response: Response) -> list[tuple[str, str]]:
    return [
        (name, value)
        for name, value in response.headers.items()
        if name not in _HOP and name not in _KEPT_BACK
    ]


class OwnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a service of the same wire; `added_usage` if only we want the usage."""

    body: bytes
    added_usage: bool = False


def prepare(body: bytes, model: str, wire: str) -> OwnRequest:
    """Return the request with the model's name at the service; all else stays as it is."""
    if MARK.encode() in body:
        body = _without_sealed(body)
    fields = _FIELDS.decode(body)
    fields["model"] = msgspec.Raw(encode(model))
    added = wire == "openai-chat" and _lacks_usage(fields)
    if added:
        fields["stream_options"] = msgspec.Raw(_with_usage(fields.get("stream_options")))
    pairs = (encode(name) + b":" + bytes(value) for name, value in fields.items())
    return OwnRequest(body=b"{" + b",".join(pairs) + b"}", added_usage=added)


def _lacks_usage(fields: Mapping[str, msgspec.Raw]) -> bool:
    """Return True if a stream would not report its tokens, without which no limit holds."""
    if bytes(fields.get("stream", b"")) != b"true":
        return False
    return not _decode_object(fields.get("stream_options")).get("include_usage")


def _with_usage(options: msgspec.Raw | None) -> bytes:
    return encode({**_decode_object(options), "include_usage": True})


def _decode_object(raw: msgspec.Raw | None) -> dict[str, Any]:
    value = msgspec.json.decode(raw) if raw is not None else None
    return value if isinstance(value, dict) else {}


def _without_sealed(body: bytes) -> bytes:
    """Remove the reasoning of other services, which this one cannot read."""
    return encode(_clean(msgspec.json.decode(body)))


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(item) for item in value if not _is_sealed(item)]
    if isinstance(value, dict):
        return {
            name: _clean(item)
            for name, item in value.items()
            if not (isinstance(item, str) and item.startswith(MARK))
        }
    return value


def _is_sealed(item: Any) -> bool:
    fields = ("signature", "data", "encrypted_content")
    return isinstance(item, dict) and any(
        isinstance(item.get(name), str) and item[name].startswith(MARK) for name in fields
    )


class PassThrough:
    """The answer of a service, passed on as it arrives and read on the way."""

    def __init__(self, exchange: Exchange, adapter: Adapter, call: Call, journal: Journal) -> None:
        self._exchange = exchange
        self._adapter = adapter
        self._call = call
        self._journal = journal
        service = call.target.service
        assert service is not None
        self._service: Service = service

    async def answer(self, own: OwnRequest, target: str) -> None:
        """Answer as the service answers. Raises `ModelError` if it cannot be reached."""
        chosen = self._call.target
        headers = {
            **request_headers(self._exchange.request.headers),
            **chosen.headers(own.body),
        }
        try:
            response = await self._service.forward(chosen.chosen.model, target, headers, [own.body])
        except ModelError as error:
            failure = self._adapter.describe(error)
            self._journal.close_call(self._call, "error", code=failure.status)
            raise
        ended = False
        try:
            if not 200 <= response.status < 300:
                await self._pass_error(response)
            elif "event-stream" in response.headers.get("content-type", ""):
                await self._pass_stream(response, own)
            else:
                await self._pass_whole(response)
            ended = True
        finally:
            response.close(expect_end=ended)

    async def _pass_error(self, response: Response) -> None:
        body = await response.read(_MAX_ERROR)
        self._journal.close_call(self._call, "error", code=response.status)
        key = await self._service.choice.key.reveal()
        text = redact(body.decode("utf-8", "replace"), (key,) if key else ())
        kept = [pair for pair in response_headers(response) if pair[0] != "content-type"]
        if response.status == 401 and "x-should-retry" not in response.headers:
            kept.append(NO_RETRY)
        kind = response.headers.get("content-type", "application/json")
        await self._exchange.answer(response.status, text.encode(), kind=kind, headers=kept)

    async def _pass_whole(self, response: Response) -> None:
        try:
            body = await response.read()
        except ModelError as error:
            self._journal.close_call(self._call, "error", code=502)
            raise error
        reply = _read_whole(new_wire(self._adapter.protocol.wire), body)
        usage = reply.usage if reply is not None else None
        model = reply.model if reply is not None else None
        self._journal.close_call(self._call, "success", usage, model=model)
        kept = [pair for pair in response_headers(response) if pair[0] != "content-type"]
        kind = response.headers.get("content-type", "application/json")
        await self._exchange.answer(response.status, body, kind=kind, headers=kept)

    async def _pass_stream(self, response: Response, own: OwnRequest) -> None:
        watch = _Watch(new_wire(self._adapter.protocol.wire), drops_usage=own.added_usage)
        await self._exchange.begin(response.status, response_headers(response))
        try:
            while data := await response.receive():
                self._call.received += len(data) // 8
                data = watch.feed(data)
                if watch.status:
                    # A client may leave after the last frame, so the call is recorded before.
                    self._journal.close_call(self._call, watch.status, watch.usage)
                if data:
                    await self._exchange.send((data,))
            watch.end()
            self._journal.close_call(self._call, watch.status, watch.usage)
        except ModelError as error:
            if not watch.status:
                await self._fail(error)
        await self._exchange.end()

    async def _fail(self, error: ModelError) -> None:
        """End a stream that broke off with the vendor's error, so that nobody takes it as whole."""
        failure = self._adapter.describe(error)
        self._journal.close_call(self._call, "error", code=failure.status)
        wire = self._adapter.wire
        writer = new_writer(wire.name, wire.request(b"{}"))
        frames = writer.fail(failure.status, failure.message, failure.code)
        await self._exchange.send((b"\n\n" + frames,))


class _Watch:
    """Reads a stream that passes by: its end, its usage, its errors."""

    def __init__(self, wire: Wire, *, drops_usage: bool) -> None:
        self._parser = SseParser()
        self._reader = wire.reader()
        self._drops_usage = drops_usage
        self.status = ""
        """`success` or `error` once the service has ended its answer."""

    @property
    def usage(self) -> Usage | None:
        usage = self._reader.usage
        return None if usage == Usage() else usage

    def feed(self, data: bytes) -> bytes:
        """Read the next bytes; return those for the client."""
        if self.status == "error":
            return data
        passed = []
        try:
            for event in self._parser.feed(data):
                self._reader.feed(event)
                if self._drops_usage and not _is_usage(event):
                    passed.append(b"data: %b\n\n" % event)
            if self._reader.done:
                self.status = "success"
        except (ModelError, EventTooLarge):
            self.status = "error"
            return data
        return b"".join(passed) if self._drops_usage else data

    def end(self) -> None:
        """Handle the end of the stream. Raises `ModelError` if it came too early."""
        if not self.status:
            for event in self._parser.end():
                self._reader.feed(event)
            if not self._reader.done:
                self._reader.finish()
            self.status = "success"


def _is_usage(event: bytes) -> bool:
    return b'"choices":[]' in event or b'"choices": []' in event


def _read_whole(wire: Wire, body: bytes) -> Reply | None:
    try:
        return wire.reply(body)
    except ModelError:
        return None
