"""Reads replies in the Responses format, streamed or whole."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import AssistantMessage, Reasoning
from trimtab.contracts.provider import Delta, ReasoningDelta, ReasoningDone, Reply, TextDelta, Usage
from trimtab.providers.errors import from_stream
from trimtab.providers.wires.citations import CitationBuilder, read_annotations
from trimtab.providers.wires.parts import (
    CallBuilder,
    broken,
    build_calls,
    count,
    decode_frame,
    read_as,
    refused,
    unreadable,
)

REASONING_FIELD = "reasoning_summary"

_CALL_TYPES = {"function_call": "function", "custom_tool_call": "custom"}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _Part(msgspec.Struct, gc=False):
    text: str | None = None
    refusal: str | None = None
    annotations: Any = None


class _Item(msgspec.Struct, gc=False):
    """The fields of all kinds of items; `type` decides which are used."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    phase: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None


class _IncompleteDetails(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    """A whole response. Items stay unparsed, since reasoning must be sent back unchanged."""

    id: str | None = None
    model: str | None = None
    error: Any = None
    status: str | None = None
    incomplete_details: _IncompleteDetails | None = None
    usage: dict[str, Any] | None = None
    output: list[dict[str, Any]] | None = None


class _Event(msgspec.Struct, gc=False):
    """The fields of all kinds of events; `type` decides which are used."""

    type: str = ""
    delta: Any = None
    output_index: int | None = None
    item: dict[str, Any] | None = None
    response: _Response | None = None
    error: Any = None
    code: Any = None
    message: Any = None


_EVENT = msgspec.json.Decoder(_Event)


class ResponsesReader:
    """Assembles a streamed reply from its items; deltas are only for display.

    It is complete after the event `response.completed` or `response.incomplete`.
    """

    def __init__(self) -> None:
        self.done = False
        self._response = _Response()
        self._items: dict[int, dict[str, Any]] = {}
        self._calls: dict[int | None, CallBuilder] = {}
        self._text_item: int | None = None
        self._thought = False

    def feed(self, data: bytes) -> Sequence[Delta]:
        if data.startswith(b"[DONE]"):
            return ()
        event = decode_frame(_EVENT, data)
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            return handler(self, event)
        if event.type == "error" or event.error:
            raise from_stream(event.error or {"code": event.code, "message": event.message})
        return ()

    def finish(self) -> Reply:
        if not self.done:
            raise broken("the stream ended too early")
        items = [self._items[index] for index in sorted(self._items)]
        return _reply(self._response, items or self._response.output or [])

    @property
    def usage(self) -> Usage:
        return _usage(self._response.usage)

    def _take_text(self, event: _Event) -> Sequence[Delta]:
        if not isinstance(event.delta, str) or not event.delta:
            return ()
        index = event.output_index or 0
        is_new_item = self._text_item is not None and self._text_item != index
        self._text_item = index
        if is_new_item:
            return (TextDelta(_GAP), TextDelta(event.delta))
        return (TextDelta(event.delta),)

    def _take_thought(self, event: _Event) -> Sequence[Delta]:
        if not isinstance(event.delta, str) or not event.delta:
            return ()
        self._thought = True
        return (ReasoningDelta(event.delta),)

    def _begin_thought(self, event: _Event) -> Sequence[Delta]:
        return (ReasoningDelta(_GAP),) if self._thought else ()

    def _take_arguments(self, event: _Event) -> Sequence[Delta]:
        call = self._calls.get(event.output_index)
        delta = call.add(event.delta) if call and isinstance(event.delta, str) else None
        return () if delta is None else (delta,)

    def _begin_item(self, event: _Event) -> Sequence[Delta]:
        item = read_as(event.item or {}, _Item)
        if item.type in _CALL_TYPES:
            self._calls[event.output_index] = _call(item)
        return ()

    def _end_item(self, event: _Event) -> Sequence[Delta]:
        if event.item is not None:
            index = len(self._items) if event.output_index is None else event.output_index
            self._items[index] = event.item
            if event.item.get("type") == "reasoning":
                thought = _reasoning(read_as([event.item], list[_Item]), [event.item])
                return () if thought is None else (ReasoningDone(thought),)
        return ()

    def _begin(self, event: _Event) -> Sequence[Delta]:
        self._response = event.response or _Response()
        return ()

    def _end(self, event: _Event) -> Sequence[Delta]:
        self._response = event.response or _Response()
        if self._response.status in _FAILED:
            return self._fail(event)
        self.done = True
        return ()

    def _fail(self, event: _Event) -> Sequence[Delta]:
        raise _failure(event.response or _Response())


_Handler = Callable[[ResponsesReader, _Event], Sequence[Delta]]

_HANDLERS: dict[str, _Handler] = {
    "response.created": ResponsesReader._begin,
    "response.output_item.added": ResponsesReader._begin_item,
    "response.output_item.done": ResponsesReader._end_item,
    "response.output_text.delta": ResponsesReader._take_text,
    "response.refusal.delta": ResponsesReader._take_text,
    "response.reasoning_summary_part.added": ResponsesReader._begin_thought,
    "response.reasoning_summary_text.delta": ResponsesReader._take_thought,
    "response.reasoning_text.delta": ResponsesReader._take_thought,
    "response.function_call_arguments.delta": ResponsesReader._take_arguments,
    "response.custom_tool_call_input.delta": ResponsesReader._take_arguments,
    "response.completed": ResponsesReader._end,
    "response.incomplete": ResponsesReader._end,
    "response.failed": ResponsesReader._fail,
    "response.cancelled": ResponsesReader._fail,
}

_FAILED = ("failed", "cancelled")
# Separates several messages, or parts of a summary.
_GAP = "\n\n"


def read_reply(body: bytes) -> Reply:
    """Read a whole reply."""
    response = decode_frame(_RESPONSE, body)
    if response.error or response.status in _FAILED:
        raise _failure(response)
    if response.output is None:
        raise unreadable()
    return _reply(response, response.output)


_RESPONSE = msgspec.json.Decoder(_Response)


def _failure(response: _Response) -> ModelError:
    return from_stream(response.error or {"message": f"the response {response.status or 'failed'}"})


def _reply(response: _Response, raw: list[dict[str, Any]]) -> Reply:
    items = read_as(raw, list[_Item])
    texts, refusals, phase = _messages(items)
    details = response.incomplete_details
    cut = _INCOMPLETE.get(details.reason or "") if details is not None else None
    calls = build_calls((_call(item) for item in items if item.type in _CALL_TYPES), cut)
    if cut == "content_filter" and not texts and not calls:
        raise refused("a filter blocked the reply")
    reason = cut or ("tool_calls" if calls else "refusal" if refusals else "stop")
    return Reply(
        message=AssistantMessage(
            text=_GAP.join(texts + refusals),
            tool_calls=calls,
            reasoning=_reasoning(items, raw),
            phase=phase,
        ),
        usage=_usage(response.usage),
        finish_reason=reason,
        model=response.model,
        request_id=response.id,
        citations=_citations(items),
    )


def _citations(items: list[_Item]) -> dict[str, Any] | None:
    builder, offset = CitationBuilder("openai"), 0
    for item in items:
        if item.type != "message" or not any(part.text for part in item.content or ()):
            continue
        for part in item.content or ():
            length = len(part.text or "")
            read_annotations(builder, part.annotations, offset, length)
            offset += length
        offset += len(_GAP)
    return builder.build()


def _usage(usage: dict[str, Any] | None) -> Usage:
    return Usage(
        input_tokens=count(usage, "input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=count(usage, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=count(usage, "input_tokens_details", "cache_write_tokens"),
        reasoning_tokens=count(usage, "output_tokens_details", "reasoning_tokens"),
    )


def _messages(items: list[_Item]) -> tuple[list[str], list[str], str | None]:
    """Return the texts and refusals of all messages, and the phase of the last message."""
    texts: list[str] = []
    refusals: list[str] = []
    phase = None
    for item in items:
        if item.type == "message":
            phase = item.phase
            texts.append("".join(part.text or "" for part in item.content or ()))
            refusals += [part.refusal for part in item.content or () if part.refusal]
    return [text for text in texts if text], refusals, phase


def _call(item: _Item) -> CallBuilder:
    call = CallBuilder()
    call.kind = _CALL_TYPES[item.type]
    call.id = item.call_id or ""
    call.name = item.name or ""
    call.add((item.input if call.kind == "custom" else item.arguments) or "")
    return call


def _reasoning(items: list[_Item], raw: list[dict[str, Any]]) -> Reasoning | None:
    thoughts = [item for item in items if item.type == "reasoning"]
    if not thoughts:
        return None
    texts = [
        part.text for item in thoughts for part in item.summary or item.content or () if part.text
    ]
    return Reasoning(
        text=_GAP.join(texts) or None,
        opaque=thoughts[-1].id,
        encrypted=thoughts[-1].encrypted_content,
        field=REASONING_FIELD,
        blocks=[block for block in raw if block.get("type") == "reasoning"],
    )
