"""The server side of Anthropic's Messages format."""

from collections.abc import Iterator
from typing import Any

from trimtab.contracts.messages import (
    AssistantMessage,
    Image,
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
from trimtab.providers.wires.parts import call_arguments, cut, read_body

_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "pause": "pause_turn",
}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicMessagesServer:
    name = "anthropic-messages"
    path = "/v1/messages"

    def request(self, body: bytes) -> ServedRequest:
        value = read_body(body)
        messages: list[Message] = []
        for message in value.get("messages") or ():
            blocks = _list(message.get("content"))
            if message.get("role") == "assistant":
                messages.append(_assistant(blocks))
            else:
                messages += _user(blocks)
        return ServedRequest(
            model=str(value.get("model", "")),
            stream=bool(value.get("stream")),
            system="\n\n".join(str(part.get("text", "")) for part in _list(value.get("system"))),
            messages=tuple(messages),
            tools=tuple(_tool(tool) for tool in value.get("tools") or ()),
            body=value,
        )

    def frames(self, reply: Reply, *, chunk: int = 16) -> Iterator[bytes]:
        usage = _usage(reply.usage)
        start = {**_message(reply), "content": [], "stop_reason": None}
        start["usage"] = {**usage, "output_tokens": 0}
        yield _frame("message_start", {"message": start})
        for index, block in enumerate(_blocks(reply)):
            yield _frame("content_block_start", {"index": index, "content_block": _opened(block)})
            for delta in _deltas(block, chunk):
                yield _frame("content_block_delta", {"index": index, "delta": delta})
            yield _frame("content_block_stop", {"index": index})
        stop = {"stop_reason": _stop(reply), "stop_sequence": None}
        yield _frame("message_delta", {"delta": stop, "usage": usage})
        yield _frame("message_stop", {})

    def body(self, reply: Reply) -> bytes:
        return encode(
            {
                **_message(reply),
                "content": [_closed(block) for block in _blocks(reply)],
                "stop_reason": _stop(reply),
                "usage": _usage(reply.usage),
            }
        )

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        kind = code or _ERROR_TYPES.get(status, "api_error")
        return encode({"type": "error", "error": {"type": kind, "message": message}})


def _frame(kind: str, fields: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **fields}))


def _message(reply: Reply) -> dict[str, Any]:
    return {
        "id": reply.request_id or "msg_0",
        "type": "message",
        "role": "assistant",
        "model": reply.model or "",
        "stop_sequence": None,
    }


def _stop(reply: Reply) -> str:
    reason = reply.finish_reason or ("tool_calls" if reply.message.tool_calls else "stop")
    return _STOP_REASONS.get(reason, reason)


def _usage(usage: Usage) -> dict[str, Any]:
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    encoded = {
        "input_tokens": max(0, (usage.input_tokens or 0) - read - written),
        "output_tokens": usage.output_tokens or 0,
    }
    if usage.cache_read_tokens is not None:
        encoded["cache_read_input_tokens"] = read
    if usage.cache_write_tokens is not None:
        encoded["cache_creation_input_tokens"] = written
    return encoded


def _blocks(reply: Reply) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a reply; the `input` of a call stays text, to be sent in pieces."""
    message = reply.message
    if message.reasoning is not None:
        yield from _thinking(message.reasoning)
    if message.text:
        yield {"type": "text", "text": message.text}
    for call in message.tool_calls:
        text = call.arguments
        if call.kind == "custom":
            text = encode({"input": call.arguments}).decode()
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": text}


def _thinking(reasoning: Reasoning) -> Iterator[dict[str, Any]]:
    known = {"thinking", "redacted_thinking"}
    blocks = [block for block in reasoning.blocks or () if block.get("type") in known]
    yield from blocks
    if not blocks and reasoning.text:
        signature = reasoning.opaque or "scripted"
        yield {"type": "thinking", "thinking": reasoning.text, "signature": signature}
    elif not blocks and reasoning.opaque:
        yield {"type": "redacted_thinking", "data": reasoning.opaque}


def _opened(block: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "tool_use":
        return block
    call = ToolCall(id=block["id"], name=block["name"], arguments=block["input"])
    return {**block, "input": call_arguments(call)}


def _deltas(block: dict[str, Any], chunk: int) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    if kind == "text":
        for piece in cut(block["text"], chunk):
            yield {"type": "text_delta", "text": piece}
    elif kind == "tool_use":
        for piece in cut(block["input"], chunk):
            yield {"type": "input_json_delta", "partial_json": piece}
    elif kind == "thinking":
        for piece in cut(block["thinking"], chunk):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block.get("signature", "")}


def _assistant(blocks: list[dict[str, Any]]) -> AssistantMessage:
    thoughts = [block for block in blocks if block.get("type") in {"thinking", "redacted_thinking"}]
    reasoning = None
    if thoughts:
        last = thoughts[-1]
        reasoning = Reasoning(
            text="".join(str(block.get("thinking", "")) for block in thoughts) or None,
            opaque=last.get("signature") or last.get("data"),
            field=str(last["type"]),
            blocks=thoughts,
        )
    return AssistantMessage(
        text="".join(str(block["text"]) for block in blocks if block.get("type") == "text"),
        tool_calls=tuple(
            ToolCall(
                id=str(block.get("id", "")),
                name=str(block.get("name", "")),
                arguments=encode(block.get("input") or {}).decode(),
            )
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        reasoning=reasoning,
    )


def _user(blocks: list[dict[str, Any]]) -> Iterator[Message]:
    parts: list[Part] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            content = _list(block.get("content"))
            yield ToolMessage(
                call_id=str(block.get("tool_use_id", "")),
                text="".join(str(part.get("text", "")) for part in content),
                failed=bool(block.get("is_error")),
            )
        elif kind == "image":
            source = block.get("source") or {}
            parts.append(
                Image(data=str(source.get("data", "")), mime_type=str(source.get("media_type", "")))
            )
        else:
            parts.append(Text(text=str(block.get("text", ""))))
    if parts:
        yield UserMessage(parts=tuple(parts))


def _list(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, list):
        return content
    return [] if content is None else [{"type": "text", "text": str(content)}]


def _tool(tool: dict[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=str(tool.get("name", "")),
        description=str(tool.get("description", "")),
        parameters=tool.get("input_schema") or {},
    )
