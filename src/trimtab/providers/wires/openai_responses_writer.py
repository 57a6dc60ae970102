"""Writes a streamed answer in OpenAI's Responses format, as it arrives."""

import os
import time
from typing import Any

import msgspec

from trimtab.contracts.messages import AssistantMessage, Reasoning, ToolCall
from trimtab.contracts.provider import (
    Delta,
    ReasoningDelta,
    ReasoningDone,
    Reply,
    TextDelta,
    ToolCallDelta,
)
from trimtab.providers.wires.openai_chat_server import error_fields
from trimtab.providers.wires.openai_responses_server import (
    EventFramer,
    call_item,
    response_fields,
    response_status,
    restore_name,
)
from trimtab.providers.wires.parts import parse_object


class ResponsesWriter:
    """Writes items one after another, each with its content as it arrives.

    `freeform` names the tools whose input is plain text; their calls are written when they are
    complete. `names` maps joined names of tools to their namespace and name.
    """

    def __init__(
        self, model: str, freeform: frozenset[str], names: dict[str, tuple[str, str]]
    ) -> None:
        self._frame = EventFramer()
        self._freeform = freeform
        self._names = names
        message = AssistantMessage(text="")
        response_id = "resp_" + os.urandom(12).hex()
        self._reply = Reply(message=message, model=model, request_id=response_id)
        self._created = int(time.time())
        self._started = False
        self._items: list[dict[str, Any]] = []
        self._open: int | None = None
        """The index of the open message or reasoning item."""
        self._calls: dict[str, int] = {}
        self._thought = False

    def write(self, delta: Delta) -> bytes:
        if isinstance(delta, TextDelta):
            return self._write_text(delta.text)
        if isinstance(delta, ReasoningDelta):
            return self._write_thought(delta.text)
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
        frames.append(self._close())
        frames += [self._complete(call) for call in message.tool_calls]
        final = msgspec.structs.replace(
            reply, model=self._reply.model, request_id=self._reply.request_id
        )
        response = self._response(final, self._items, response_status(reply))
        frames.append(self._frame(f"response.{response['status']}", {"response": response}))
        return b"".join(frames)

    def fail(self, status: int, message: str, code: str | None = None) -> bytes:
        error = error_fields(status, message, code)["error"]
        failed = self._response(self._reply, self._items, "failed")
        failed["error"] = {"code": error["code"] or error["type"], "message": message}
        return self._frame("response.failed", {"response": failed})

    def _response(self, reply: Reply, items: list[dict[str, Any]], status: str) -> dict[str, Any]:
        return {**response_fields(reply, items, status), "created_at": self._created}

    def _start(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        begun = {"response": self._response(self._reply, [], "in_progress")}
        return self._frame("response.created", begun) + self._frame("response.in_progress", begun)

    def _begin(self, item: dict[str, Any], opened: dict[str, Any]) -> bytes:
        """Begin an item; `opened` is the item without its content."""
        start = self._start() + self._close()
        self._items.append(item)
        fields = {"output_index": len(self._items) - 1, "item": opened}
        return start + self._frame("response.output_item.added", fields)

    def _place(self, index: int) -> dict[str, Any]:
        return {"output_index": index, "item_id": self._items[index]["id"]}

    def _end(self, index: int) -> bytes:
        item = self._items[index]
        return self._frame("response.output_item.done", {"output_index": index, "item": item})

    def _write_text(self, text: str) -> bytes:
        frames = b""
        if self._open is None or self._items[self._open]["type"] != "message":
            item: dict[str, Any] = {
                "id": "msg_" + os.urandom(12).hex(),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "", "annotations": []}],
            }
            frames = self._begin(item, {**item, "content": [], "status": "in_progress"})
            self._open = len(self._items) - 1
            part = {"type": "output_text", "text": "", "annotations": []}
            where = {**self._place(self._open), "content_index": 0, "part": part}
            frames += self._frame("response.content_part.added", where)
        assert self._open is not None
        self._items[self._open]["content"][0]["text"] += text
        fields = {**self._place(self._open), "content_index": 0, "delta": text}
        return frames + self._frame("response.output_text.delta", fields)

    def _write_thought(self, text: str) -> bytes:
        frames = b""
        if self._open is None or self._items[self._open]["type"] != "reasoning":
            frames = self._begin_thought()
            assert self._open is not None
            self._items[self._open]["summary"] = [{"type": "summary_text", "text": ""}]
            part = {"type": "summary_text", "text": ""}
            where = {**self._place(self._open), "summary_index": 0, "part": part}
            frames += self._frame("response.reasoning_summary_part.added", where)
        assert self._open is not None
        self._items[self._open]["summary"][0]["text"] += text
        fields = {**self._place(self._open), "summary_index": 0, "delta": text}
        return frames + self._frame("response.reasoning_summary_text.delta", fields)

    def _begin_thought(self) -> bytes:
        item: dict[str, Any] = {
            "id": "rs_" + os.urandom(12).hex(),
            "type": "reasoning",
            "summary": [],
        }
        frames = self._begin(item, {**item, "status": "in_progress"})
        self._open = len(self._items) - 1
        return frames

    def _end_thought(self, reasoning: Reasoning) -> bytes:
        """Close the reasoning item with its opaque part, or write what has no readable text."""
        self._thought = True
        frames = b""
        if self._open is None or self._items[self._open]["type"] != "reasoning":
            if not reasoning.text and not reasoning.opaque:
                return b""
            frames = self._write_thought(reasoning.text) if reasoning.text else b""
            frames = frames or self._begin_thought()
        assert self._open is not None
        if reasoning.opaque:
            self._items[self._open]["encrypted_content"] = reasoning.opaque
        return frames + self._close()

    def _close(self) -> bytes:
        """Close the open message or reasoning item."""
        index, self._open = self._open, None
        if index is None:
            return b""
        item, place = self._items[index], self._place(index)
        frames = b""
        if item["type"] == "message":
            part = item["content"][0]
            where = {**place, "content_index": 0}
            frames = self._frame("response.output_text.done", {**where, "text": part["text"]})
            frames += self._frame("response.content_part.done", {**where, "part": part})
        elif item["summary"]:
            part = item["summary"][0]
            where = {**place, "summary_index": 0}
            done = {**where, "text": part["text"]}
            frames = self._frame("response.reasoning_summary_text.done", done)
            frames += self._frame("response.reasoning_summary_part.done", {**where, "part": part})
        return frames + self._end(index)

    def _write_call(self, call_id: str, name: str, piece: str) -> bytes:
        index = self._calls.get(call_id)
        frames = b""
        if index is None:
            frames = self._start() + self._close() + self._end_complete_calls()
            call = ToolCall(id=call_id, name=name, arguments="")
            item = {"id": "fc_" + os.urandom(12).hex(), **call_item(call), "status": "completed"}
            item = restore_name(item, self._names)
            frames += self._begin(item, {**item, "status": "in_progress"})
            index = self._calls[call_id] = len(self._items) - 1
        self._items[index]["arguments"] += piece
        delta = {**self._place(index), "delta": piece}
        return frames + self._frame("response.function_call_arguments.delta", delta)

    def _end_complete_calls(self) -> bytes:
        """Close calls whose arguments are complete; services may send pieces of several in turn."""
        frames = b""
        for call_id, index in list(self._calls.items()):
            if index >= 0 and parse_object(self._items[index]["arguments"]) is not None:
                frames += self._end_call(call_id, index)
        return frames

    def _end_call(self, call_id: str, index: int) -> bytes:
        self._calls[call_id] = -1
        fields = {**self._place(index), "arguments": self._items[index]["arguments"]}
        done = self._frame("response.function_call_arguments.done", fields)
        return done + self._end(index)

    def _complete(self, call: ToolCall) -> bytes:
        """Write what is missing of a call, and its end."""
        if call.kind == "custom":
            return self._write_custom(call)
        index = self._calls.get(call.id)
        if index == -1:
            return b""
        sent = "" if index is None else self._items[index]["arguments"]
        rest = call.arguments[len(sent) :] if call.arguments.startswith(sent) else ""
        frames = self._write_call(call.id, call.name, rest) if rest or index is None else b""
        return frames + self._end_call(call.id, self._calls[call.id])

    def _write_custom(self, call: ToolCall) -> bytes:
        item = {"id": "ctc_" + os.urandom(12).hex(), **call_item(call), "status": "completed"}
        item = restore_name(item, self._names)
        frames = self._begin(item, {**item, "input": "", "status": "in_progress"})
        index = len(self._items) - 1
        place = self._place(index)
        event = "response.custom_tool_call_input"
        frames += self._frame(f"{event}.delta", {**place, "delta": call.arguments})
        frames += self._frame(f"{event}.done", {**place, "input": call.arguments})
        return frames + self._end(index)
