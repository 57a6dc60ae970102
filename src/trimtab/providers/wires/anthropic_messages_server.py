"""The server side of Anthropic's Messages format."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal

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
from trimtab.contracts.provider import (
    AnswerSchema,
    Reply,
    RequestOptions,
    Sampling,
    ServedRequest,
    ToolSpec,
    Usage,
)
from trimtab.providers.wires.encoding import encode
from trimtab.providers.wires.parts import call_arguments, cut, read_body

STOP_REASONS = {
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
        system = [_text_of(part) for part in _list(value.get("system"))]
        messages: list[Message] = []
        for message in value.get("messages") or ():
            blocks, role = _list(message.get("content")), message.get("role")
            if role == "assistant":
                messages.append(_assistant(blocks))
            elif role != "system":
                messages += _user(blocks)
            elif messages:
                parts = tuple(Text(text=_text_of(block)) for block in blocks)
                messages.append(UserMessage(parts=parts, system=True))
            else:
                system += [_text_of(block) for block in blocks]
        tools = list(value.get("tools") or ())
        options, left_out = _read_options(value)
        hosted = [f"tool {tool['type']}" for tool in tools if not _is_function(tool)]
        return ServedRequest(
            model=str(value.get("model", "")),
            stream=bool(value.get("stream")),
            system="\n\n".join(system),
            messages=tuple(messages),
            tools=tuple(_tool(tool) for tool in tools if _is_function(tool)),
            body=value,
            options=options,
            left_out=(*left_out, *hosted),
        )

    def frames(self, reply: Reply, *, chunk: int = 16) -> Iterator[bytes]:
        usage = usage_fields(reply.usage)
        start = {**_message(reply), "content": [], "stop_reason": None}
        start["usage"] = {**usage, "output_tokens": 0}
        yield frame("message_start", {"message": start})
        for index, block in enumerate(_blocks(reply)):
            yield frame("content_block_start", {"index": index, "content_block": _opened(block)})
            for delta in _deltas(block, chunk):
                yield frame("content_block_delta", {"index": index, "delta": delta})
            yield frame("content_block_stop", {"index": index})
        stop = {"stop_reason": stop_reason(reply), "stop_sequence": None}
        yield frame("message_delta", {"delta": stop, "usage": usage})
        yield frame("message_stop", {})

    def body(self, reply: Reply, request: ServedRequest | None = None) -> bytes:
        return encode(
            {
                **_message(reply),
                "content": [_closed(block) for block in _blocks(reply)],
                "stop_reason": stop_reason(reply),
                "usage": usage_fields(reply.usage),
            }
        )

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        return encode(error_fields(status, message, code))


def error_fields(status: int, message: str, code: str | None = None) -> dict[str, Any]:
    """Return an error in this format, for a body or in a stream."""
    kind = code or _ERROR_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _is_function(tool: dict[str, Any]) -> bool:
    return tool.get("type") in {None, "custom"}


def _text_of(block: dict[str, Any]) -> str:
    return str(block.get("text", ""))


# The fields that every wire can express; others are told to be left out.
_KNOWN = frozenset(
    (
        *("model", "messages", "system", "tools", "stream", "max_tokens", "temperature", "top_p"),
        *("top_k", "stop_sequences", "tool_choice", "thinking", "output_config", "metadata"),
        "output_format",
    )
)
_CHOICES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto",
    "none": "none",
    "any": "required",
}
_EFFORTS = ((1024, "minimal"), (4096, "low"), (10_000, "medium"))
"""Efforts by the largest token budget for thinking that they stand for; above it is `high`."""


def _read_options(value: dict[str, Any]) -> tuple[RequestOptions, list[str]]:
    choice = value.get("tool_choice") or {}
    output = value.get("output_config") or {}
    user = (value.get("metadata") or {}).get("user_id")
    stop = value.get("stop_sequences")
    options = RequestOptions(
        effort=output.get("effort") or _effort(value.get("thinking") or {}),
        max_output_tokens=value.get("max_tokens"),
        tool_choice=_CHOICES.get(choice.get("type", "")),
        required_tool=choice.get("name") if choice.get("type") == "tool" else None,
        parallel_calls=False if choice.get("disable_parallel_tool_use") else None,
        answer_schema=_schema(output.get("format") or value.get("output_format")),
        cache_key=sha256(str(user).encode("utf-8", "replace")).hexdigest()[:32] if user else None,
        sampling=Sampling(
            temperature=value.get("temperature"),
            top_p=value.get("top_p"),
            top_k=value.get("top_k"),
            stop=tuple(map(str, stop)) if stop else None,
        ),
    )
    return options, [name for name in value if name not in _KNOWN]


def _effort(thinking: dict[str, Any]) -> str | None:
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled" or not isinstance(budget, int):
        return None
    return next((effort for limit, effort in _EFFORTS if budget <= limit), "high")


def _schema(definition: dict[str, Any] | None) -> AnswerSchema | None:
    if not definition or definition.get("type") != "json_schema":
        return None
    return AnswerSchema(schema=dict(definition["schema"]), name="response")


def frame(kind: str, fields: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **fields}))


def _message(reply: Reply) -> dict[str, Any]:
    return {
        "id": reply.request_id or "msg_0",
        "type": "message",
        "role": "assistant",
        "model": reply.model or "",
        "stop_sequence": None,
    }


def stop_reason(reply: Reply) -> str:
    reason = reply.finish_reason or ("tool_calls" if reply.message.tool_calls else "stop")
    return STOP_REASONS.get(reason, reason)


def usage_fields(usage: Usage) -> dict[str, Any]:
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
    images: list[Part] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            content = _list(block.get("content"))
            images += [_image(part) for part in content if part.get("type") == "image"]
            yield ToolMessage(
                call_id=str(block.get("tool_use_id", "")),
                text="".join(str(part.get("text", "")) for part in content),
                failed=bool(block.get("is_error")),
            )
        elif kind == "image":
            parts.append(_image(block))
        elif kind == "text":
            parts.append(Text(text=_text_of(block)))
        else:
            parts.append(Text(text=_describe(block)))
    if images or parts:
        yield UserMessage(parts=(*images, *parts))


def _image(block: dict[str, Any]) -> Part:
    source = block.get("source") or {}
    if source.get("type", "base64") != "base64":
        return Text(text=str(source.get("url") or "[An image that is stored at another service.]"))
    return Image(data=str(source.get("data", "")), mime_type=str(source.get("media_type", "")))


def _describe(block: dict[str, Any]) -> str:
    """Return the text of a block that other formats do not have: a document, a search result."""
    source = block.get("source")
    if isinstance(source, dict) and source.get("type") == "text":
        return str(source.get("data", ""))
    return _text_of(block) or f"[A part of type {block.get('type')} that this model cannot read.]"


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
