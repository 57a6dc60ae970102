"""Reads answers in the Messages format, streamed or whole."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.messages import AssistantMessage, Reasoning, ToolCall
from trimtab.contracts.provider import Delta, ReasoningDelta, Reply, TextDelta, Usage
from trimtab.providers.errors import from_stream
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
    stop_reason: str | None = None


class _Event(msgspec.Struct, gc=False):
    """The fields of all events we read; `type` says which of them mean something."""

    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: dict[str, Any] | None = None
    message: Any = None
    usage: dict[str, Any] | None = None
    error: Any = None


_EVENT = msgspec.json.Decoder(_Event)
_MESSAGE = msgspec.json.Decoder(dict[str, Any])


class MessagesReader:
    """Puts a streamed answer together block by block.

    Complete means that the stop reason has come. `freeform` names the tools whose calls are to be
    given as plain text.
    """

    def __init__(self, freeform: frozenset[str] = frozenset()) -> None:
        self.done = False
        self._freeform = freeform
        self._blocks: dict[int, _Block] = {}
        self._message: dict[str, Any] = {}
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
            usage=read_usage(self._usage),
            finish_reason=reason,
            model=self._message.get("model"),
            request_id=self._message.get("id"),
        )

    def load(self, message: dict[str, Any]) -> None:
        """Take a whole message at once."""
        self._message = message
        self._usage = message.get("usage") or {}
        self._stop = message.get("stop_reason") or "end_turn"
        for index, content in enumerate(message["content"]):
            self._blocks[index] = _Block(content)

    def _restored(self, call: ToolCall) -> ToolCall:
        if call.name not in self._freeform:
            return call
        text = (parse_object(call.arguments) or {}).get("input")
        if not isinstance(text, str):
            return call
        return msgspec.structs.replace(call, arguments=text, kind="custom")

    def _start(self, event: _Event) -> None:
        self._message = event.message or {}
        self._usage = dict(self._message.get("usage") or {})

    def _start_block(self, event: _Event) -> None:
        self._blocks[event.index] = _Block(event.content_block or {})

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
    """One content block while its pieces arrive."""

    __slots__ = ("_pieces", "call", "kind", "source")

    def __init__(self, source: dict[str, Any]) -> None:
        self.source = source
        self.kind = str(source.get("type"))
        self.call = CallBuilder()
        self._pieces: list[str] = []
        if self.kind == "tool_use":
            self.call.id = str(source.get("id") or "")
            self.call.name = str(source.get("name") or "")
            if source.get("input"):
                self.call.add(encode(source["input"]).decode())
        elif self.kind in {"text", "thinking"}:
            self._pieces.append(str(source.get(self.kind) or ""))

    @property
    def text(self) -> str:
        return "".join(self._pieces)

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
            self.source["signature"] = self.source.get("signature", "") + delta.signature
        return None

    def thought(self) -> dict[str, Any]:
        """The block as the service wants it back."""
        return {**self.source, "thinking": self.text} if self.kind == "thinking" else self.source


def _reasoning(blocks: list[_Block]) -> Reasoning | None:
    thoughts = [block for block in blocks if block.kind in {"thinking", "redacted_thinking"}]
    if not thoughts:
        return None
    last = thoughts[-1]
    return Reasoning(
        text="".join(block.text for block in thoughts) or None,
        opaque=last.source.get("signature") or last.source.get("data"),
        field=last.kind,
        blocks=[block.thought() for block in thoughts],
    )


def read_reply(body: bytes, freeform: frozenset[str] = frozenset()) -> Reply:
    """Read a whole answer."""
    message = decode_frame(_MESSAGE, body)
    if message.get("error"):
        raise from_stream(message["error"])
    if not isinstance(message.get("content"), list):
        raise unreadable()
    reader = MessagesReader(freeform)
    reader.load(message)
    return reader.finish()


def read_usage(usage: dict[str, Any]) -> Usage:
    """Counts as we give them: input includes what was read from and written to the cache."""
    read = count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=add_counts(count(usage, "input_tokens"), read, written),
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
