"""The server side of OpenAI's Responses format."""

from collections.abc import Iterator
from typing import Any

from trimtab.contracts.messages import (
    AssistantMessage,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from trimtab.contracts.provider import Reply, ServedRequest, ToolSpec, Usage
from trimtab.providers.wires.encoding import encode
from trimtab.providers.wires.parts import cut, image_from_url, read_body
from trimtab.providers.wires.responses_reader import REASONING_FIELD

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_CALLS = {
    "function": ("function_call", "arguments", "response.function_call_arguments"),
    "custom": ("custom_tool_call", "input", "response.custom_tool_call_input"),
}


class OpenAIResponsesServer:
    name = "openai-responses"
    path = "/responses"

    def request(self, body: bytes) -> ServedRequest:
        value = read_body(body)
        source = value.get("input") or ()
        if isinstance(source, str):
            source = [{"role": "user", "content": source}]
        system = [str(value["instructions"])] if value.get("instructions") else []
        messages = _Messages()
        for item in source:
            if item.get("role") in {"system", "developer"}:
                system.append(_text(item.get("content")))
            else:
                messages.add(item)
        return ServedRequest(
            model=str(value.get("model", "")),
            stream=bool(value.get("stream")),
            system="\n\n".join(system),
            messages=messages.all(),
            tools=tuple(_tool(tool) for tool in value.get("tools") or ()),
            body=value,
        )

    def frames(self, reply: Reply, *, chunk: int = 16) -> Iterator[bytes]:
        frame = _Framer()
        items = _items(reply)
        yield frame("response.created", {"response": _response(reply, [], "in_progress")})
        for index, item in enumerate(items):
            yield from _item_frames(frame, index, item, chunk)
        final = _response(reply, items, _status(reply))
        yield frame(f"response.{final['status']}", {"response": final})

    def body(self, reply: Reply) -> bytes:
        return encode(_response(reply, _items(reply), _status(reply)))

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return encode({"error": {"message": message, "type": kind, "code": code}})


class _Framer:
    """Builds and numbers the events of a reply."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, kind: str, fields: dict[str, Any]) -> bytes:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode(event))


def _item_frames(frame: _Framer, index: int, item: dict[str, Any], chunk: int) -> Iterator[bytes]:
    place = {"output_index": index, "item_id": item.get("id")}
    yield frame("response.output_item.added", {"output_index": index, "item": _opened(item)})
    yield from _CONTENT_FRAMES[item["type"]](frame, place, item, chunk)
    yield frame("response.output_item.done", {"output_index": index, "item": item})


def _summary_frames(
    frame: _Framer, place: dict[str, Any], item: dict[str, Any], chunk: int
) -> Iterator[bytes]:
    for number, part in enumerate(item.get("summary") or ()):
        where = {**place, "summary_index": number}
        empty = {"type": "summary_text", "text": ""}
        yield frame("response.reasoning_summary_part.added", {**where, "part": empty})
        for piece in cut(part["text"], chunk):
            yield frame("response.reasoning_summary_text.delta", {**where, "delta": piece})
        yield frame("response.reasoning_summary_text.done", {**where, "text": part["text"]})
        yield frame("response.reasoning_summary_part.done", {**where, "part": part})


def _message_frames(
    frame: _Framer, place: dict[str, Any], item: dict[str, Any], chunk: int
) -> Iterator[bytes]:
    part = item["content"][0]
    kind, field = ("refusal", "refusal") if "refusal" in part else ("output_text", "text")
    where = {**place, "content_index": 0}
    yield frame("response.content_part.added", {**where, "part": {**part, field: ""}})
    for piece in cut(part[field], chunk):
        yield frame(f"response.{kind}.delta", {**where, "delta": piece})
    yield frame(f"response.{kind}.done", {**where, field: part[field]})
    yield frame("response.content_part.done", {**where, "part": part})


def _call_frames(
    frame: _Framer, place: dict[str, Any], item: dict[str, Any], chunk: int
) -> Iterator[bytes]:
    _, field, event = _CALLS["custom" if item["type"] == "custom_tool_call" else "function"]
    for piece in cut(item[field], chunk):
        yield frame(f"{event}.delta", {**place, "delta": piece})
    yield frame(f"{event}.done", {**place, field: item[field]})


_CONTENT_FRAMES = {
    "reasoning": _summary_frames,
    "message": _message_frames,
    "function_call": _call_frames,
    "custom_tool_call": _call_frames,
}


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without its content."""
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": ""}
    opened = {key: empty.get(key, value) for key, value in item.items()}
    opened.pop("encrypted_content", None)
    return {**opened, "status": "in_progress"}


def _items(reply: Reply) -> list[dict[str, Any]]:
    message = reply.message
    items = list(_reasoning_items(message.reasoning))
    if message.text or not message.tool_calls:
        part: dict[str, Any] = {"type": "output_text", "text": message.text, "annotations": []}
        if reply.finish_reason == "refusal":
            part = {"type": "refusal", "refusal": message.text}
        item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
        items.append(item | ({"phase": message.phase} if message.phase else {}))
    items += [_call(call) for call in message.tool_calls]
    numbered = ({"id": f"item_{number}", **item} for number, item in enumerate(items))
    return [
        item if item["type"] == "reasoning" else {**item, "status": "completed"}
        for item in numbered
    ]


def _reasoning_items(reasoning: Reasoning | None) -> Iterator[dict[str, Any]]:
    if reasoning is None:
        return
    blocks = [block for block in reasoning.blocks or () if block.get("type") == "reasoning"]
    yield from blocks
    if not blocks:
        text = reasoning.text
        item: dict[str, Any] = {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}] if text else [],
        }
        if reasoning.opaque:
            item["id"] = reasoning.opaque
        if reasoning.encrypted:
            item["encrypted_content"] = reasoning.encrypted
        yield item


def _call(call: ToolCall) -> dict[str, Any]:
    kind, field, _ = _CALLS[call.kind]
    return {"type": kind, "call_id": call.id, "name": call.name, field: call.arguments}


def _status(reply: Reply) -> str:
    return "incomplete" if reply.finish_reason in _INCOMPLETE else "completed"


def _response(reply: Reply, items: list[dict[str, Any]], status: str) -> dict[str, Any]:
    reason = _INCOMPLETE.get(reply.finish_reason or "")
    details = {"reason": reason} if status == "incomplete" else None
    return {
        "id": reply.request_id or "resp_0",
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": details,
        "model": reply.model or "",
        "output": items,
        "usage": None if status == "in_progress" else _usage(reply.usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "input_tokens": usage.input_tokens or 0,
        "output_tokens": usage.output_tokens or 0,
        "total_tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }
    details = {
        "cached_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    known = {name: value for name, value in details.items() if value is not None}
    if known:
        encoded["input_tokens_details"] = known
    if usage.reasoning_tokens is not None:
        encoded["output_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return encoded


class _Messages:
    """Groups items into messages; the items of an assistant turn form one message."""

    def __init__(self) -> None:
        self._done: list[Message] = []
        self._turn: _Turn | None = None

    def add(self, item: dict[str, Any]) -> None:
        kind = item.get("type") or "message"
        if kind.endswith("_call_output"):
            self._close()
            custom = kind == "custom_tool_call_output"
            self._done.append(
                ToolMessage(
                    call_id=str(item.get("call_id", "")),
                    text=_text(item.get("output")),
                    kind="custom" if custom else "function",
                )
            )
        elif kind == "message" and item.get("role") != "assistant":
            self._close()
            self._done.append(UserMessage(parts=_parts(item.get("content"))))
        else:
            self._turn = self._turn or _Turn()
            if not self._turn.take(kind, item):
                self._close()
                self._turn = _Turn()
                self._turn.take(kind, item)

    def all(self) -> tuple[Message, ...]:
        self._close()
        return tuple(self._done)

    def _close(self) -> None:
        if self._turn is not None:
            self._done.append(self._turn.build())
            self._turn = None


class _Turn:
    """Collects the items of an assistant message, in the order reasoning, text, calls."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, Any]] = []
        self._text: str | None = None
        self._phase: str | None = None
        self._calls: list[ToolCall] = []

    def take(self, kind: str, item: dict[str, Any]) -> bool:
        """Add an item; return False if it belongs to the next message."""
        if kind == "reasoning":
            if self._text is not None or self._calls:
                return False
            self._blocks.append(item)
        elif kind == "message":
            if self._text is not None or self._calls:
                return False
            self._text = _text(item.get("content"))
            self._phase = item.get("phase")
        else:
            custom = kind == "custom_tool_call"
            self._calls.append(
                ToolCall(
                    id=str(item.get("call_id", "")),
                    name=str(item.get("name", "")),
                    arguments=str(item.get("input" if custom else "arguments") or ""),
                    kind="custom" if custom else "function",
                )
            )
        return True

    def build(self) -> AssistantMessage:
        reasoning = None
        if self._blocks:
            last = self._blocks[-1]
            texts = [part["text"] for block in self._blocks for part in block.get("summary") or ()]
            reasoning = Reasoning(
                text="\n\n".join(texts) or None,
                opaque=last.get("id"),
                encrypted=last.get("encrypted_content"),
                field=REASONING_FIELD,
                blocks=self._blocks,
            )
        return AssistantMessage(
            text=self._text or "",
            tool_calls=tuple(self._calls),
            reasoning=reasoning,
            phase=self._phase,
        )


def _parts(content: Any) -> tuple[Part, ...]:
    if not isinstance(content, list):
        return (Text(text=_text(content)),)
    parts: list[Part] = []
    for part in content:
        url = str(part.get("image_url") or "")
        image = image_from_url(url) if part.get("type") == "input_image" else None
        parts.append(image or Text(text=str(part.get("text", "") or url)))
    return tuple(parts)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def _tool(tool: dict[str, Any]) -> ToolSpec:
    custom = tool.get("type") == "custom"
    return ToolSpec(
        name=str(tool.get("name", "")),
        description=str(tool.get("description", "")),
        parameters={} if custom else tool.get("parameters") or {},
        format=(tool.get("format") or {"type": "text"}) if custom else None,
    )
