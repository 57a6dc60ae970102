"""Reads replies in the Messages format, streamed or whole."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.messages import AssistantMessage, Reasoning, ToolCall
from trimtab.contracts.provider import Delta, ReasoningDelta, ReasoningDone, Reply, TextDelta, Usage
from trimtab.providers.errors import from_stream
from trimtab.providers.wires.citations import CitationBuilder, read_citations
from trimtab.providers.wires.encoding import encode
from trimtab.providers.wires.parts import (
    CallBuilder,
    add_counts,
    broken,
    build_calls,
    count,
    decode_frame,
    parse_object,
    refused,
    unreadable,
)

_STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: Any = None
    stop_reason: str | None = None


class _Source(msgspec.Struct, gc=False):
    """The fields of all kinds of blocks; `type` decides which are used."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    input: Any = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    citations: Any = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    content: list[_Source] | None = None
    stop_reason: str | None = None
    error: Any = None


class _Event(msgspec.Struct, gc=False):
    """The fields of all kinds of events; `type` decides which are used."""

    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Source | None = None
    message: _Message | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_EVENT = msgspec.json.Decoder(_Event)
_MESSAGE = msgspec.json.Decoder(_Message)


class MessagesReader:
    """Assembles a streamed reply from its blocks.

    It is complete once the stop reason has arrived. `freeform` names the tools whose input is
    plain text.
    """

    def __init__(self, freeform: frozenset[str] = frozenset()) -> None:
        self.done = False
        self._freeform = freeform
        self._blocks: dict[int, _Block] = {}
        self._message = _Message()
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None

    def feed(self, data: bytes) -> Sequence[Delta]:
        event = decode_frame(_EVENT, data)
        if event.type == "content_block_delta":
            block = self._blocks.get(event.index)
            if block is None or event.delta is None:
                return ()
            delta = block.take(event.delta)
            return () if delta is None else (delta,)
        if event.type == "content_block_stop":
            block = self._blocks.get(event.index)
            thought = _reasoning([block]) if block is not None else None
            return () if thought is None else (ReasoningDone(thought),)
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            handler(self, event)
        elif event.error:
            raise from_stream(event.error)
        return ()

    def finish(self) -> Reply:
        if self._stop is None:
            raise broken("the stream ended too early")
        reason = _STOP_REASONS.get(self._stop, self._stop)
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        text = "".join(block.text for block in blocks if block.kind == "text")
        calls = build_calls((block.call for block in blocks if block.kind == "tool_use"), reason)
        if reason == "refusal" and not text and not calls:
            raise refused("the model refused")
        return Reply(
            message=AssistantMessage(
                text=text,
                tool_calls=tuple(self._restored(call) for call in calls),
                reasoning=_reasoning(blocks),
            ),
            usage=self.usage,
            finish_reason=reason,
            model=self._message.model,
            request_id=self._message.id,
            citations=_citations(blocks),
        )

    @property
    def usage(self) -> Usage:
        return read_usage(self._usage)

    def load(self, message: _Message) -> None:
        """Read a whole message."""
        self._message = message
        self._usage = message.usage or {}
        self._stop = message.stop_reason or "end_turn"
        self._blocks = {index: _Block(source) for index, source in enumerate(message.content or ())}

    def _restored(self, call: ToolCall) -> ToolCall:
        if call.name not in self._freeform:
            return call
        text = (parse_object(call.arguments) or {}).get("input")
        if not isinstance(text, str):
            return call
        return msgspec.structs.replace(call, arguments=text, kind="custom")

    def _start(self, event: _Event) -> None:
        self._message = event.message or _Message()
        self._usage = dict(self._message.usage or {})

    def _start_block(self, event: _Event) -> None:
        self._blocks[event.index] = _Block(event.content_block or _Source())

    def _change(self, event: _Event) -> None:
        if event.delta is not None and event.delta.stop_reason:
            self._stop = event.delta.stop_reason
        known = (event.usage or {}).items()
        self._usage.update((name, value) for name, value in known if value is not None)

    def _end(self, event: _Event) -> None:
        self.done = True


_HANDLERS: dict[str, Callable[[MessagesReader, _Event], None]] = {
    "message_start": MessagesReader._start,
    "content_block_start": MessagesReader._start_block,
    "message_delta": MessagesReader._change,
    "message_stop": MessagesReader._end,
}


class _Block:
    """Assembles a content block from its pieces."""

    __slots__ = ("_opaque", "_pieces", "call", "citations", "kind")

    def __init__(self, source: _Source) -> None:
        self.kind = source.type
        self.call = CallBuilder()
        self.citations = list(source.citations) if isinstance(source.citations, list) else []
        self._opaque = [source.signature or source.data or ""]
        self._pieces = [source.text or source.thinking or ""]
        if self.kind == "tool_use":
            self.call.id = source.id or ""
            self.call.name = source.name or ""
            if source.input:
                self.call.add(encode(source.input).decode())

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def opaque(self) -> str:
        """The signature of a thinking block, or the data of a redacted one."""
        return "".join(self._opaque)

    def take(self, delta: _Delta) -> Delta | None:
        if delta.text:
            self._pieces.append(delta.text)
            return TextDelta(delta.text)
        if delta.thinking:
            self._pieces.append(delta.thinking)
            return ReasoningDelta(delta.thinking)
        if delta.partial_json:
            return self.call.add(delta.partial_json)
        if delta.signature:
            self._opaque.append(delta.signature)
        if delta.citation is not None:
            self.citations.append(delta.citation)
        return None

    def thought(self) -> dict[str, Any]:
        """Return the block in the form that the service expects back."""
        if self.kind == "redacted_thinking":
            return {"type": self.kind, "data": self.opaque}
        return {"type": self.kind, "thinking": self.text, "signature": self.opaque}


def _citations(blocks: list[_Block]) -> dict[str, Any] | None:
    builder, offset = CitationBuilder("anthropic"), 0
    for block in blocks:
        if block.kind == "text":
            end = offset + len(block.text)
            read_citations(builder, block.citations, (offset, end))
            offset = end
    return builder.build()


def _reasoning(blocks: list[_Block]) -> Reasoning | None:
    thoughts = [block for block in blocks if block.kind in {"thinking", "redacted_thinking"}]
    if not thoughts:
        return None
    return Reasoning(
        text="".join(block.text for block in thoughts) or None,
        opaque=thoughts[-1].opaque or None,
        field=thoughts[-1].kind,
        blocks=[block.thought() for block in thoughts],
    )


def read_reply(body: bytes, freeform: frozenset[str] = frozenset()) -> Reply:
    """Read a whole reply."""
    message = decode_frame(_MESSAGE, body)
    if message.error:
        raise from_stream(message.error)
    if message.content is None:
        raise unreadable()
    reader = MessagesReader(freeform)
    reader.load(message)
    return reader.finish()


def read_usage(usage: dict[str, Any]) -> Usage:
    """Return the usage; unlike the service's count, input includes the cached tokens."""
    read = count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=add_counts(count(usage, "input_tokens"), read, written),
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
