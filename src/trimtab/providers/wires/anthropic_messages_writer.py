"""Writes a streamed answer in Anthropic's Messages format, as it arrives."""

import os
from typing import Any

from trimtab.contracts.messages import Reasoning, ToolCall
from trimtab.contracts.provider import (
    Delta,
    ReasoningDelta,
    ReasoningDone,
    Reply,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from trimtab.providers.wires.anthropic_messages_server import (
    error_fields,
    frame,
    stop_reason,
    usage_fields,
)
from trimtab.providers.wires.parts import parse_object


class MessagesWriter:
    """Writes blocks one after another.

    A block stays open while the next begins only if it is a call whose arguments are incomplete:
    some services send the pieces of several calls in turn. `freeform` names the tools whose input
    is plain text; their calls are written when they are complete.
    """

    def __init__(self, model: str, freeform: frozenset[str]) -> None:
        self._model = model
        self._freeform = freeform
        self._started = False
        self._count = 0
        self._open: tuple[str, int] | None = None
        self._calls: dict[str, _Call] = {}
        self._thought = False

    def write(self, delta: Delta) -> bytes:
        if isinstance(delta, TextDelta):
            return self._write("text", {"text": ""}, {"type": "text_delta", "text": delta.text})
        if isinstance(delta, ReasoningDelta):
            piece = {"type": "thinking_delta", "thinking": delta.text}
            return self._write("thinking", {"thinking": "", "signature": ""}, piece)
        if isinstance(delta, ReasoningDone):
            return self._end_thought(delta.reasoning)
        if isinstance(delta, ToolCallDelta) and delta.name not in self._freeform:
            return self._write_call(delta.call_id, delta.name, delta.arguments)
        return self._start()

    def finish(self, reply: Reply) -> bytes:
        message = reply.message
        frames = [self._start()]
        if message.reasoning is not None and not self._thought:
            frames.append(self._end_thought(message.reasoning))
        frames += [self._complete(call) for call in message.tool_calls]
        frames.append(self._close())
        frames += [self._stop(call.index) for call in self._calls.values() if call.open]
        usage = usage_fields(reply.usage)
        stop = {"stop_reason": stop_reason(reply), "stop_sequence": None}
        frames.append(frame("message_delta", {"delta": stop, "usage": usage}))
        frames.append(frame("message_stop", {}))
        return b"".join(frames)

    def fail(self, status: int, message: str, code: str | None = None) -> bytes:
        fields = error_fields(status, message, code)
        return frame("error", {"error": fields["error"]})

    def _start(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        message: dict[str, Any] = {
            "id": "msg_" + os.urandom(12).hex(),
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_fields(Usage()),
        }
        return frame("message_start", {"message": message})

    def _write(self, kind: str, block: dict[str, Any], delta: dict[str, Any]) -> bytes:
        opening = b""
        if self._open is None or self._open[0] != kind:
            opening = self._start() + self._close() + self._begin({"type": kind, **block})
            self._open = (kind, self._count - 1)
        assert self._open is not None
        return opening + frame("content_block_delta", {"index": self._open[1], "delta": delta})

    def _begin(self, block: dict[str, Any]) -> bytes:
        self._count += 1
        return frame("content_block_start", {"index": self._count - 1, "content_block": block})

    def _close(self) -> bytes:
        """Close the open block, unless it is a call whose arguments are incomplete."""
        if self._open is None:
            return b""
        kind, index = self._open
        call = self._calls.get(kind)
        if call is not None:
            if parse_object("".join(call.pieces)) is None:
                self._open = None
                return b""
            call.open = False
        self._open = None
        return self._stop(index)

    def _stop(self, index: int) -> bytes:
        return frame("content_block_stop", {"index": index})

    def _end_thought(self, reasoning: Reasoning) -> bytes:
        """Close the thinking block with its signature, or write what has no readable text."""
        self._thought = True
        opaque = reasoning.opaque or ""
        if self._open is not None and self._open[0] == "thinking":
            delta = {"type": "signature_delta", "signature": opaque}
            return self._write("thinking", {}, delta) + self._close()
        if reasoning.text:
            piece = {"type": "thinking_delta", "thinking": reasoning.text}
            opening = self._write("thinking", {"thinking": "", "signature": ""}, piece)
            return opening + self._end_thought(reasoning)
        if not opaque:
            return b""
        block = {"type": "redacted_thinking", "data": opaque}
        frames = self._start() + self._close() + self._begin(block)
        return frames + self._stop(self._count - 1)

    def _write_call(self, call_id: str, name: str, piece: str) -> bytes:
        call = self._calls.get(call_id)
        opening = b""
        if call is None:
            opening = self._start() + self._close()
            call = self._calls[call_id] = _Call(self._count)
            block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
            opening += self._begin(block)
            self._open = (call_id, call.index)
        call.pieces.append(piece)
        delta = {"type": "input_json_delta", "partial_json": piece}
        return opening + frame("content_block_delta", {"index": call.index, "delta": delta})

    def _complete(self, call: ToolCall) -> bytes:
        """Write what is missing of a call."""
        known = self._calls.get(call.id)
        sent = "".join(known.pieces) if known is not None else ""
        rest = call.arguments[len(sent) :] if call.arguments.startswith(sent) else ""
        return self._write_call(call.id, call.name, rest) if rest or known is None else b""


class _Call:
    __slots__ = ("index", "open", "pieces")

    def __init__(self, index: int) -> None:
        self.index = index
        self.open = True
        self.pieces: list[str] = []
