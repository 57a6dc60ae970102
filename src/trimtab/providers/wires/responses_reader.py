"""Reads answers in the Responses format, streamed or whole."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.messages import AssistantMessage, Reasoning
from trimtab.contracts.provider import Delta, ReasoningDelta, Reply, TextDelta, Usage
from trimtab.providers.errors import from_stream
from trimtab.providers.wires.parts import (
    CallBuilder,
    broken,
    build_calls,
    count,
    decode_frame,
    refused,
    unreadable,
)

REASONING_FIELD = "reasoning_summary"

_CALL_TYPES = {"function_call": "function", "custom_tool_call": "custom"}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _Event(msgspec.Struct, gc=False):
    """The fields of all events we read; `type` says which of them mean something."""

    type: str = ""
    delta: Any = None
    output_index: int | None = None
    item: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    error: Any = None
    code: Any = None
    message: Any = None


_EVENT = msgspec.json.Decoder(_Event)


class ResponsesReader:
    """Puts a streamed answer together from its items; deltas are for showing only.

    Complete means that the service said so (`response.completed` or `response.incomplete`).
    """

    def __init__(self) -> None:
        self.done = False
        self._response: dict[str, Any] = {}
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
        return _reply(self._response, items or self._response.get("output") or [])

    def _take_text(self, event: _Event) -> Sequence[Delta]:
        if not isinstance(event.delta, str) or not event.delta:
            return ()
        index = event.output_index or 0
        another = self._text_item is not None and self._text_item != index
        self._text_item = index
        if another:
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
        item = event.item or {}
        if item.get("type") in _CALL_TYPES:
            call = CallBuilder()
            call.id = str(item.get("call_id") or "")
            call.name = str(item.get("name") or "")
            self._calls[event.output_index] = call
        return ()

    def _end_item(self, event: _Event) -> Sequence[Delta]:
        if event.item is not None:
            index = len(self._items) if event.output_index is None else event.output_index
            self._items[index] = event.item
        return ()

    def _begin(self, event: _Event) -> Sequence[Delta]:
        self._response = event.response or {}
        return ()

    def _end(self, event: _Event) -> Sequence[Delta]:
        self._response = event.response or {}
        self.done = True
        return ()

    def _fail(self, event: _Event) -> Sequence[Delta]:
        response = event.response or {}
        raise from_stream(response.get("error") or {"message": "the response failed"})


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
}

# Several messages, or parts of a summary, stand apart as paragraphs.
_GAP = "\n\n"


def read_reply(body: bytes) -> Reply:
    """Read a whole answer."""
    response = decode_frame(_RESPONSE, body)
    if response.get("error") or response.get("status") == "failed":
        raise from_stream(response.get("error") or {"message": "the response failed"})
    if not isinstance(response.get("output"), list):
        raise unreadable()
    return _reply(response, response["output"])


_RESPONSE = msgspec.json.Decoder(dict[str, Any])


def _reply(response: dict[str, Any], items: list[dict[str, Any]]) -> Reply:
    texts, refusals, phase = _messages(items)
    why = (response.get("incomplete_details") or {}).get("reason")
    cut = _INCOMPLETE.get(str(why)) if response.get("status") == "incomplete" or why else None
    calls = build_calls(_calls(items), cut)
    if cut == "content_filter" and not texts and not calls:
        raise refused("a filter blocked the answer")
    reason = cut or ("tool_calls" if calls else "refusal" if refusals else "stop")
    usage = response.get("usage")
    return Reply(
        message=AssistantMessage(
            text=_GAP.join(texts + refusals),
            tool_calls=calls,
            reasoning=_reasoning(items),
            phase=phase,
        ),
        usage=Usage(
            input_tokens=count(usage, "input_tokens"),
            output_tokens=count(usage, "output_tokens"),
            cache_read_tokens=count(usage, "input_tokens_details", "cached_tokens"),
            reasoning_tokens=count(usage, "output_tokens_details", "reasoning_tokens"),
        ),
        finish_reason=reason,
        model=response.get("model"),
        request_id=response.get("id"),
    )


def _messages(items: list[dict[str, Any]]) -> tuple[list[str], list[str], str | None]:
    """The texts and refusals of the message items, and the phase of the last."""
    texts: list[str] = []
    refusals: list[str] = []
    phase = None
    for item in items:
        if item.get("type") != "message":
            continue
        phase = item.get("phase")
        parts = item.get("content") or ()
        texts.append("".join(str(part.get("text") or "") for part in parts))
        refusals += [str(part["refusal"]) for part in parts if part.get("refusal")]
    return [text for text in texts if text], refusals, phase


def _calls(items: list[dict[str, Any]]) -> list[CallBuilder]:
    builders = []
    for item in items:
        kind = _CALL_TYPES.get(str(item.get("type")))
        if kind is None:
            continue
        call = CallBuilder()
        call.kind = kind
        call.id = str(item.get("call_id") or "")
        call.name = str(item.get("name") or "")
        call.add(str(item.get("input" if kind == "custom" else "arguments") or ""))
        builders.append(call)
    return builders


def _reasoning(items: list[dict[str, Any]]) -> Reasoning | None:
    blocks = [item for item in items if item.get("type") == "reasoning"]
    if not blocks:
        return None
    texts = [
        str(part.get("text") or "")
        for block in blocks
        for part in block.get("summary") or block.get("content") or ()
    ]
    last = blocks[-1]
    return Reasoning(
        text=_GAP.join(text for text in texts if text) or None,
        opaque=last.get("id"),
        encrypted=last.get("encrypted_content"),
        field=REASONING_FIELD,
        blocks=blocks,
    )
