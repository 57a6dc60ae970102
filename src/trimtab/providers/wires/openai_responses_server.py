"""The server side of OpenAI's Responses format."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
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
from trimtab.providers.wires.openai_chat_server import error_fields
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
            if item.get("type") == _MORE_TOOLS:
                continue
            if item.get("role") in {"system", "developer"} and messages.empty:
                system.append(_text(item.get("content")))
            else:
                messages.add(item)
        tools, hosted = _read_tools(_all_tools(value))
        options, left_out = _read_options(value)
        return ServedRequest(
            model=str(value.get("model", "")),
            stream=bool(value.get("stream")),
            system="\n\n".join(system),
            messages=messages.all(),
            tools=tools,
            body=value,
            options=options,
            left_out=(*left_out, *hosted, *messages.left_out),
        )

    def frames(self, reply: Reply, *, chunk: int = 16) -> Iterator[bytes]:
        frame = EventFramer()
        items = _items(reply)
        yield frame("response.created", {"response": response_fields(reply, [], "in_progress")})
        for index, item in enumerate(items):
            yield from _item_frames(frame, index, item, chunk)
        final = response_fields(reply, items, response_status(reply))
        yield frame(f"response.{final['status']}", {"response": final})

    def body(self, reply: Reply, request: ServedRequest | None = None) -> bytes:
        items = _items(reply)
        if request is not None:
            names = namespaced_names(request.body)
            items = [restore_name(item, names) for item in items]
        return encode(response_fields(reply, items, response_status(reply)))

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        return encode(error_fields(status, message, code))


# The fields that every wire can express; others are told to be left out.
_KNOWN = frozenset(
    (
        *("model", "input", "instructions", "tools", "stream", "tool_choice", "store", "include"),
        *("max_output_tokens", "reasoning", "text", "parallel_tool_calls", "temperature", "top_p"),
        *("prompt_cache_key", "user", "stream_options", "safety_identifier", "background"),
    )
)
_CHOICES = ("auto", "none", "required")


def _read_options(value: dict[str, Any]) -> tuple[RequestOptions, list[str]]:
    choice = value.get("tool_choice")
    named = choice if isinstance(choice, dict) else {}
    form = (value.get("text") or {}).get("format") or {}
    left_out = [name for name, item in value.items() if name not in _KNOWN and item is not None]
    if named.get("type") not in {None, "function", "custom"}:
        left_out.append(f"tool_choice {named['type']}")
        named = {}
    options = RequestOptions(
        effort=(value.get("reasoning") or {}).get("effort"),
        max_output_tokens=value.get("max_output_tokens"),
        tool_choice=choice if choice in _CHOICES else None,
        required_tool=named.get("name"),
        parallel_calls=value.get("parallel_tool_calls"),
        answer_schema=_schema(form),
        cache_key=value.get("prompt_cache_key"),
        sampling=Sampling(temperature=value.get("temperature"), top_p=value.get("top_p")),
    )
    return options, left_out


def _schema(form: dict[str, Any]) -> AnswerSchema | None:
    if form.get("type") != "json_schema":
        return None
    return AnswerSchema(
        schema=dict(form.get("schema") or {}),
        name=str(form.get("name") or "response"),
        strict=bool(form.get("strict", False)),
    )


_MORE_TOOLS = "additional_tools"
"""An item that defines tools; Codex uses it for its newest models."""


def _all_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    tools = list(body.get("tools") or ())
    source = body.get("input")
    for item in source if isinstance(source, list) else ():
        if item.get("type") == _MORE_TOOLS:
            tools += item.get("tools") or ()
    return tools


def _read_tools(tools: Sequence[dict[str, Any]]) -> tuple[tuple[ToolSpec, ...], list[str]]:
    """Return the tools that every wire can express, and the names of the others."""
    specs: list[ToolSpec] = []
    hosted: list[str] = []
    for tool in tools:
        kind = tool.get("type")
        if kind == "namespace":
            for inner in tool.get("tools") or ():
                name = join_name(str(tool.get("name", "")), str(inner.get("name", "")))
                specs.append(_tool({**inner, "name": name}))
        elif kind in {"function", "custom"}:
            specs.append(_tool(tool))
        else:
            hosted.append(f"tool {kind}")
    return tuple(specs), hosted


_MAX_NAME = 64


def join_name(namespace: str, name: str) -> str:
    """Return the name of a namespaced tool for services without namespaces."""
    joined = f"{namespace}__{name}" if namespace else name
    if len(joined) <= _MAX_NAME:
        return joined
    digest = sha256(joined.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{joined[: _MAX_NAME - 9]}_{digest}"


def namespaced_names(body: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the namespaces and names of a request's tools, by their joined names."""
    names: dict[str, tuple[str, str]] = {}
    for tool in _all_tools(body):
        if tool.get("type") == "namespace":
            namespace = str(tool.get("name", ""))
            for inner in tool.get("tools") or ():
                name = str(inner.get("name", ""))
                names[join_name(namespace, name)] = (namespace, name)
    return names


def restore_name(item: dict[str, Any], names: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return a call with the namespace and name of its tool."""
    found = names.get(str(item.get("name", ""))) if names else None
    return item if found is None else {**item, "namespace": found[0], "name": found[1]}


class EventFramer:
    """Builds and numbers the events of a reply."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, kind: str, fields: dict[str, Any]) -> bytes:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode(event))


def _item_frames(
    frame: EventFramer, index: int, item: dict[str, Any], chunk: int
) -> Iterator[bytes]:
    place = {"output_index": index, "item_id": item.get("id")}
    yield frame("response.output_item.added", {"output_index": index, "item": _opened(item)})
    yield from _CONTENT_FRAMES[item["type"]](frame, place, item, chunk)
    yield frame("response.output_item.done", {"output_index": index, "item": item})


def _summary_frames(
    frame: EventFramer, place: dict[str, Any], item: dict[str, Any], chunk: int
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
    frame: EventFramer, place: dict[str, Any], item: dict[str, Any], chunk: int
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
    frame: EventFramer, place: dict[str, Any], item: dict[str, Any], chunk: int
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
    items = list(reasoning_items(message.reasoning))
    if message.text or not message.tool_calls:
        part: dict[str, Any] = {"type": "output_text", "text": message.text, "annotations": []}
        if reply.finish_reason == "refusal":
            part = {"type": "refusal", "refusal": message.text}
        item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
        items.append(item | ({"phase": message.phase} if message.phase else {}))
    items += [call_item(call) for call in message.tool_calls]
    numbered = ({"id": f"item_{number}", **item} for number, item in enumerate(items))
    return [
        item if item["type"] == "reasoning" else {**item, "status": "completed"}
        for item in numbered
    ]


def reasoning_items(reasoning: Reasoning | None) -> Iterator[dict[str, Any]]:
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


def call_item(call: ToolCall) -> dict[str, Any]:
    kind, field, _ = _CALLS[call.kind]
    return {"type": kind, "call_id": call.id, "name": call.name, field: call.arguments}


def response_status(reply: Reply) -> str:
    return "incomplete" if reply.finish_reason in _INCOMPLETE else "completed"


def response_fields(reply: Reply, items: list[dict[str, Any]], status: str) -> dict[str, Any]:
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


_ITEMS = frozenset(
    (
        *("message", "reasoning", "function_call", "custom_tool_call"),
        *("function_call_output", "custom_tool_call_output"),
    )
)


class _Messages:
    """Groups items into messages; the items of an assistant turn form one message."""

    def __init__(self) -> None:
        self._done: list[Message] = []
        self._turn: _Turn | None = None
        self._images: list[Part] = []
        self.left_out: list[str] = []

    @property
    def empty(self) -> bool:
        return not self._done and self._turn is None

    def add(self, item: dict[str, Any]) -> None:
        kind = item.get("type") or "message"
        if kind not in _ITEMS:
            self.left_out.append(f"item {kind}")
            return
        if not kind.endswith("_call_output"):
            self._add_images()
        if kind.endswith("_call_output"):
            self._close()
            custom = kind == "custom_tool_call_output"
            output = item.get("output")
            if isinstance(output, list):
                parts = _parts(output)
                self._images += [part for part in parts if not isinstance(part, Text)]
            self._done.append(
                ToolMessage(
                    call_id=str(item.get("call_id", "")),
                    text=_text(item.get("output")),
                    kind="custom" if custom else "function",
                )
            )
        elif kind == "message" and item.get("role") != "assistant":
            self._close()
            system = item.get("role") in {"system", "developer"}
            self._done.append(UserMessage(parts=_parts(item.get("content")), system=system))
        else:
            self._turn = self._turn or _Turn()
            if not self._turn.take(kind, item):
                self._close()
                self._turn = _Turn()
                self._turn.take(kind, item)

    def all(self) -> tuple[Message, ...]:
        self._close()
        self._add_images()
        return tuple(self._done)

    def _add_images(self) -> None:
        """Add the images of tool results, after the last result: other formats need it so."""
        if self._images:
            self._done.append(UserMessage(parts=tuple(self._images)))
            self._images = []

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
                    name=join_name(str(item.get("namespace") or ""), str(item.get("name", ""))),
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
