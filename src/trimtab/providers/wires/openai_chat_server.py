"""The server side of OpenAI's Chat Completions format."""

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
from trimtab.providers.wires.parts import REASONING_FIELDS, cut, image_from_url, read_body


class OpenAIChatServer:
    name = "openai-chat"
    path = "/chat/completions"

    def request(self, body: bytes) -> ServedRequest:
        value = read_body(body)
        system: list[str] = []
        messages: list[Message] = []
        for message in value.get("messages") or ():
            if message.get("role") in {"system", "developer"}:
                system.append(_text(message.get("content")))
            else:
                messages.append(_message(message))
        return ServedRequest(
            model=str(value.get("model", "")),
            stream=bool(value.get("stream")),
            system="\n\n".join(system),
            messages=tuple(messages),
            tools=tuple(_tool(tool) for tool in value.get("tools") or ()),
            body=value,
        )

    def frames(self, reply: Reply, *, chunk: int = 16) -> Iterator[bytes]:
        message = reply.message
        frame = _Framer(reply)
        yield frame({"role": "assistant", "content": ""})
        for delta in _reasoning_deltas(message.reasoning, chunk):
            yield frame(delta)
        field = "refusal" if reply.finish_reason == "refusal" else "content"
        for piece in cut(message.text, chunk):
            yield frame({field: piece})
        for index, call in enumerate(message.tool_calls):
            yield frame({"tool_calls": [{"index": index, **_call(call, arguments="")}]})
            key, part = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
            for piece in cut(call.arguments, chunk):
                yield frame({"tool_calls": [{"index": index, key: {part: piece}}]})
        yield frame({}, _finish(reply))
        yield frame(None)
        yield b"data: [DONE]\n\n"

    def body(self, reply: Reply) -> bytes:
        message = reply.message
        encoded: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if reply.finish_reason == "refusal":
            encoded |= {"content": None, "refusal": message.text}
        if message.tool_calls:
            encoded["tool_calls"] = [_call(call, arguments=None) for call in message.tool_calls]
        for delta in _reasoning_deltas(message.reasoning, 0):
            encoded |= delta
        choice = {"index": 0, "message": encoded, "finish_reason": _finish(reply)}
        return encode({**_head(reply, ""), "choices": [choice], "usage": _usage(reply.usage)})

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return encode({"error": {"message": message, "type": kind, "code": code}})


class _Framer:
    """Builds the chunks of a reply; the fields they share are encoded once."""

    def __init__(self, reply: Reply) -> None:
        self._head = b"data: " + encode(_head(reply, ".chunk"))[:-1]
        self._usage = reply.usage

    def __call__(self, delta: dict[str, Any] | None, finish: str | None = None) -> bytes:
        if delta is None:
            tail: dict[str, Any] = {"choices": [], "usage": _usage(self._usage)}
        else:
            tail = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        return b"%b,%b\n\n" % (self._head, encode(tail)[1:])


def _head(reply: Reply, suffix: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.request_id or '0'}",
        "object": f"chat.completion{suffix}",
        "created": 0,
        "model": reply.model or "",
    }


def _finish(reply: Reply) -> str:
    reason = reply.finish_reason or ("tool_calls" if reply.message.tool_calls else "stop")
    return "stop" if reason == "refusal" else reason


def _usage(usage: Usage) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens or 0,
        "completion_tokens": usage.output_tokens or 0,
        "total_tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }
    details = {
        "cached_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    known = {name: value for name, value in details.items() if value is not None}
    if known:
        encoded["prompt_tokens_details"] = known
    if usage.reasoning_tokens is not None:
        encoded["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return encoded


def _reasoning_deltas(reasoning: Reasoning | None, chunk: int) -> Iterator[dict[str, Any]]:
    if reasoning is None:
        return
    field = reasoning.field if reasoning.field in REASONING_FIELDS else "reasoning_text"
    for piece in cut(reasoning.text or "", chunk):
        yield {field: piece}
    if reasoning.opaque:
        yield {"reasoning_opaque": reasoning.opaque}
    details = [
        block for block in reasoning.blocks or () if str(block.get("type")).startswith("reasoning.")
    ]
    if details:
        yield {"reasoning_details": details}


def _call(call: ToolCall, *, arguments: str | None) -> dict[str, Any]:
    text = call.arguments if arguments is None else arguments
    if call.kind == "custom":
        encoded: dict[str, Any] = {"custom": {"name": call.name, "input": text}}
    else:
        encoded = {"function": {"name": call.name, "arguments": text}}
    return {"id": call.id, "type": call.kind, **encoded, **(call.extra or {})}


def _message(message: dict[str, Any]) -> Message:
    role = message.get("role")
    content = message.get("content")
    if role == "tool":
        return ToolMessage(call_id=str(message.get("tool_call_id", "")), text=_text(content))
    if role == "assistant":
        return AssistantMessage(
            text=_text(content),
            tool_calls=tuple(_read_call(call) for call in message.get("tool_calls") or ()),
            reasoning=_read_reasoning(message),
        )
    return UserMessage(parts=_parts(content))


def _read_call(call: dict[str, Any]) -> ToolCall:
    known = {"id", "type", "function", "custom", "index"}
    extra = {key: value for key, value in call.items() if key not in known} or None
    custom = call.get("custom")
    source = custom or call.get("function") or {}
    return ToolCall(
        id=str(call.get("id", "")),
        name=str(source.get("name", "")),
        arguments=str(source.get("input" if custom else "arguments") or ""),
        kind="custom" if custom else "function",
        extra=extra,
    )


def _read_reasoning(message: dict[str, Any]) -> Reasoning | None:
    field = next((name for name in REASONING_FIELDS if message.get(name)), None)
    reasoning = Reasoning(
        text=message[field] if field else None,
        opaque=message.get("reasoning_opaque"),
        field=field,
        blocks=message.get("reasoning_details"),
    )
    return None if reasoning == Reasoning() else reasoning


def _parts(content: Any) -> tuple[Part, ...]:
    if not isinstance(content, list):
        return (Text(text=_text(content)),)
    parts: list[Part] = []
    for part in content:
        url = (part.get("image_url") or {}).get("url", "")
        image: Image | None = image_from_url(url) if part.get("type") == "image_url" else None
        parts.append(image or Text(text=str(part.get("text", "") or url)))
    return tuple(parts)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def _tool(tool: dict[str, Any]) -> ToolSpec:
    if tool.get("type") == "custom":
        custom = tool.get("custom") or {}
        return ToolSpec(
            name=str(custom.get("name", "")),
            description=str(custom.get("description", "")),
            format=_read_format(custom.get("format") or {"type": "text"}),
        )
    function = tool.get("function") or {}
    return ToolSpec(
        name=str(function.get("name", "")),
        description=str(function.get("description", "")),
        parameters=function.get("parameters") or {},
    )


def _read_format(definition: dict[str, Any]) -> dict[str, Any]:
    grammar = definition.get("grammar")
    if not isinstance(grammar, dict):
        return definition
    return {"type": "grammar", **grammar}
