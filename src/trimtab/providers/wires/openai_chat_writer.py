"""Writes a streamed answer in OpenAI's Chat Completions format, as it arrives."""

import os
import time
from typing import Any

from trimtab.contracts.messages import Reasoning, ToolCall
from trimtab.contracts.provider import (
    Delta,
    ReasoningDelta,
    ReasoningDone,
    Reply,
    TextDelta,
    ToolCallDelta,
)
from trimtab.providers.wires.encoding import encode
from trimtab.providers.wires.openai_chat_server import error_fields, finish_reason, usage_fields

_REASONING = "reasoning_content"
"""The field in which most clients look for reasoning."""


class ChatWriter:
    """Writes chunks; calls are numbered in the order in which they begin.

    `freeform` names the tools whose input is plain text; their calls are written when they are
    complete.
    """

    def __init__(self, model: str, freeform: frozenset[str], *, with_usage: bool) -> None:
        head = {
            "id": "chatcmpl-" + os.urandom(12).hex(),
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }
        self._head = b"data: " + encode(head)[:-1]
        self._freeform = freeform
        self._with_usage = with_usage
        self._started = False
        self._thought = False
        self._thought_text = False
        self._calls: dict[str, tuple[int, list[str]]] = {}

    def write(self, delta: Delta) -> bytes:
        if isinstance(delta, TextDelta):
            return self._chunk({"content": delta.text})
        if isinstance(delta, ReasoningDelta):
            self._thought_text = True
            return self._chunk({_REASONING: delta.text})
        if isinstance(delta, ReasoningDone):
            return self._end_thought(delta.reasoning)
        if isinstance(delta, ToolCallDelta) and delta.name not in self._freeform:
            return self._write_call(delta.call_id, delta.name, delta.arguments)
        return b""

    def finish(self, reply: Reply) -> bytes:
        message = reply.message
        frames = []
        if message.reasoning is not None and not self._thought:
            frames.append(self._end_thought(message.reasoning))
        frames += [self._complete(call) for call in message.tool_calls]
        frames.append(self._chunk({}, finish_reason(reply)))
        if self._with_usage:
            frames.append(self._frame({"choices": [], "usage": usage_fields(reply.usage)}))
        frames.append(b"data: [DONE]\n\n")
        return b"".join(frames)

    def fail(self, status: int, message: str, code: str | None = None) -> bytes:
        return b"data: %b\n\n" % encode(error_fields(status, message, code))

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        if not self._started:
            self._started = True
            delta = {"role": "assistant", "content": "", **delta}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._frame({"choices": [choice]})

    def _frame(self, tail: dict[str, Any]) -> bytes:
        return b"%b,%b\n\n" % (self._head, encode(tail)[1:])

    def _end_thought(self, reasoning: Reasoning) -> bytes:
        self._thought = True
        delta: dict[str, Any] = {}
        if reasoning.text and not self._thought_text:
            delta[_REASONING] = reasoning.text
        self._thought_text = False
        if reasoning.opaque:
            delta["reasoning_opaque"] = reasoning.opaque
        return self._chunk(delta) if delta else b""

    def _write_call(self, call_id: str, name: str, piece: str) -> bytes:
        known = self._calls.get(call_id)
        if known is None:
            index = len(self._calls)
            self._calls[call_id] = (index, [piece])
            function = {"name": name, "arguments": piece}
            call: dict[str, Any] = {"id": call_id, "type": "function", "function": function}
        else:
            index, pieces = known
            pieces.append(piece)
            call = {"function": {"arguments": piece}}
        return self._chunk({"tool_calls": [{"index": index, **call}]})

    def _complete(self, call: ToolCall) -> bytes:
        """Write what is missing of a call."""
        if call.kind == "custom":
            index = len(self._calls)
            self._calls[call.id] = (index, [call.arguments])
            custom = {"name": call.name, "input": call.arguments}
            entry = {"index": index, "id": call.id, "type": "custom", "custom": custom}
            return self._chunk({"tool_calls": [entry]})
        known = self._calls.get(call.id)
        sent = "".join(known[1]) if known is not None else ""
        rest = call.arguments[len(sent) :] if call.arguments.startswith(sent) else ""
        return self._write_call(call.id, call.name, rest) if rest or known is None else b""
