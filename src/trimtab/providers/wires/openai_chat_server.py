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
from trimtab.providers.wires.parts import (
    REASONING_FIELDS,
    cut,
    image_from_url,
    read_body,
)


class OpenAIChatServer:
    name = "openai-chat"
    path = "/chat/completions"

    def request(self, body: bytes) -> ServedRequest:
        value = read_body(body)
        system: list[str] = []
        messages: list[Message] = []
        images: list[Part] = []
        for message in value.get("messages") or ():
            if message.get("role") == "tool":
                images += _images(message.get("content"))
            elif images:
                messages.append(UserMessage(parts=tuple(images)))
                images = []
            if message.get("role") not in {"system", "developer"}:
                messages.append(_message(message))
            elif messages:
                text = Text(text=_text(message.get("content")))
                messages.append(UserMessage(parts=(text,), system=True))
            else:
                system.append(_text(message.get("content")))
        if images:
            messages.append(UserMessage(parts=tuple(images)))
        tools = list(value.get("tools") or ())
        options, left_out = _read_options(value)
        hosted = [f"tool {tool.get('type')}" for tool in tools if not _is_function(tool)]
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
        yield frame({}, finish_reason(reply))
        yield frame(None)
        yield b"data: [DONE]\n\n"

    def body(self, reply: Reply, request: ServedRequest | None = None) -> bytes:
        message = reply.message
        encoded: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if reply.finish_reason == "refusal":
            encoded |= {"content": None, "refusal": message.text}
        if message.tool_calls:
            encoded["tool_calls"] = [_call(call, arguments=None) for call in message.tool_calls]
        for delta in _reasoning_deltas(message.reasoning, 0):
            encoded |= delta
        choice = {"index": 0, "message": encoded, "finish_reason": finish_reason(reply)}
        return encode({**_head(reply, ""), "choices": [choice], "usage": usage_fields(reply.usage)})

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        return encode(error_fields(status, message, code))


_ERROR_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    429: "rate_limit_error",
}


def error_fields(status: int, message: str, code: str | None = None) -> dict[str, Any]:
    """Return an error in OpenAI's formats, for a body or in a stream."""
    kind = _ERROR_TYPES.get(status, "invalid_request_error")
    if status >= 500 or code == "insufficient_quota":
        kind = code or "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


# The fields that every wire can express; others are told to be left out.
_KNOWN = frozenset(
    (
        *("model", "messages", "tools", "stream", "stream_options", "tool_choice", "stop", "seed"),
        *("max_tokens", "max_completion_tokens", "reasoning_effort", "parallel_tool_calls"),
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "response_format"),
        *("prompt_cache_key", "user", "store", "n", "top_k"),
    )
)


def _is_function(tool: dict[str, Any]) -> bool:
    return tool.get("type") in {None, "function", "custom"}


def _read_options(value: dict[str, Any]) -> tuple[RequestOptions, list[str]]:
    choice = value.get("tool_choice")
    named = choice if isinstance(choice, dict) else {}
    target = named.get("function") or named.get("custom") or {}
    stop = value.get("stop")
    left_out = [name for name, item in value.items() if name not in _KNOWN and item is not None]
    if (value.get("n") or 1) != 1:
        left_out.append("n")
    form = value.get("response_format") or {}
    if form.get("type") == "json_object":
        left_out.append("response_format json_object")
    options = RequestOptions(
        effort=value.get("reasoning_effort"),
        max_output_tokens=value.get("max_completion_tokens") or value.get("max_tokens"),
        tool_choice=choice if choice in ("auto", "none", "required") else None,
        required_tool=target.get("name"),
        parallel_calls=value.get("parallel_tool_calls"),
        answer_schema=_schema(form.get("json_schema")),
        cache_key=value.get("prompt_cache_key"),
        sampling=Sampling(
            temperature=value.get("temperature"),
            top_p=value.get("top_p"),
            top_k=value.get("top_k"),
            stop=((stop,) if isinstance(stop, str) else tuple(map(str, stop))) if stop else None,
            seed=value.get("seed"),
            presence_penalty=value.get("presence_penalty"),
            frequency_penalty=value.get("frequency_penalty"),
        ),
    )
    return options, left_out


def _schema(definition: dict[str, Any] | None) -> AnswerSchema | None:
    if not definition:
        return None
    return AnswerSchema(
        schema=dict(definition.get("schema") or {}),
        name=str(definition.get("name") or "response"),
        strict=bool(definition.get("strict", False)),
    )


class _Framer:
    """Builds the chunks of a reply; the fields they share are encoded once."""

    def __init__(self, reply: Reply) -> None:
        self._head = b"data: " + encode(_head(reply, ".chunk"))[:-1]
        self._usage = reply.usage

    def __call__(self, delta: dict[str, Any] | None, finish: str | None = None) -> bytes:
        if delta is None:
            tail: dict[str, Any] = {"choices": [], "usage": usage_fields(self._usage)}
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


def finish_reason(reply: Reply) -> str:
    reason = reply.finish_reason or ("tool_calls" if reply.message.tool_calls else "stop")
    return "stop" if reason == "refusal" else reason


def usage_fields(usage: Usage) -> dict[str, Any]:
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


def _images(content: Any) -> list[Part]:
    """Return the images of a tool result, which other formats do not allow there."""
    parts = _parts(content) if isinstance(content, list) else ()
    return [part for part in parts if isinstance(part, Image)]


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
