"""The client side of OpenAI's Chat Completions format, which most services support."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trimtab.contracts.messages import (
    AssistantMessage,
    Image,
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolMessage,
)
from trimtab.contracts.provider import Reply, Request, ToolSpec
from trimtab.providers.wires.encoding import EncodedMessages, encode
from trimtab.providers.wires.parts import REASONING_FIELDS, arguments_text, data_url

if TYPE_CHECKING:
    from trimtab.providers.wires.chat_reader import ChatReader


_SAMPLING = ("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty")


class OpenAIChat:
    """Chat Completions. `limit_field` is the service's name of the output limit."""

    name = "openai-chat"
    path = "/chat/completions"

    def __init__(self, *, limit_field: str = "max_tokens") -> None:
        self._limit_field = limit_field
        self._messages = EncodedMessages(lambda _, message: b"," + encode(chat_message(message)))
        self._system: tuple[str, bytes] = ("", b"")
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def body(self, request: Request) -> list[bytes]:
        if request.system is not self._system[0]:
            system = {"role": "system", "content": request.system}
            self._system = (request.system, encode(system) if request.system else b"")
        if request.tools is not self._tools[0]:
            tools = b',"tools":' + encode([chat_tool(spec) for spec in request.tools])
            self._tools = (request.tools, tools)
        pieces = self._messages.pieces(request.messages)
        if pieces and not self._system[1]:
            pieces[0] = pieces[0][1:]  # every message begins with the comma before it
        return [
            encode(self._options(request))[:-1] + b',"messages":[',
            self._system[1],
            *pieces,
            b"]",
            self._tools[1] if request.tools else b"",
            b"}",
        ]

    def reader(self) -> "ChatReader":
        # Imported here and below: the first request is sent before a reply can be read.
        from trimtab.providers.wires.chat_reader import ChatReader

        return ChatReader()

    def reply(self, body: bytes) -> Reply:
        from trimtab.providers.wires.chat_reader import read_reply

        return read_reply(body)

    def _options(self, request: Request) -> dict[str, Any]:
        options: dict[str, Any] = {"model": request.model, "stream": request.stream}
        if request.stream:
            options["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            options[self._limit_field] = request.max_output_tokens
        if request.effort is not None:
            options["reasoning_effort"] = request.effort
        if request.required_tool is not None:
            options["tool_choice"] = _named_choice(request)
        elif request.tool_choice is not None and request.tools:
            options["tool_choice"] = request.tool_choice
        if request.parallel_calls is not None and request.tools:
            options["parallel_tool_calls"] = request.parallel_calls
        sampling = request.sampling
        for name in _SAMPLING:
            if (value := getattr(sampling, name)) is not None:
                options[name] = value
        if request.answer_schema is not None:
            schema = request.answer_schema
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        return options


def chat_message(message: Message) -> dict[str, Any]:
    """Return a message in the format of this wire."""
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if isinstance(message, AssistantMessage):
        return _assistant(message)
    parts, role = message.parts, "system" if message.system else "user"
    if len(parts) == 1 and not isinstance(parts[0], Image):
        return {"role": role, "content": parts[0].text}
    return {"role": role, "content": [_part(part) for part in parts]}


def _named_choice(request: Request) -> dict[str, Any]:
    name = request.required_tool
    is_custom = any(spec.name == name and spec.format is not None for spec in request.tools)
    kind = "custom" if is_custom else "function"
    return {"type": kind, kind: {"name": name}}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    return {"type": "text", "text": part.text}


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    encoded: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        encoded["content"] = message.text or None
        encoded["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.reasoning is not None:
        encoded.update(_reasoning(message.reasoning))
    return encoded


def _reasoning(reasoning: Reasoning) -> Iterator[tuple[str, Any]]:
    """Yield reasoning in the fields it arrived in; that of other wires is not sent."""
    # Logs of other programs do not name the field; their service uses this default.
    field = reasoning.field or "reasoning_text"
    if field in REASONING_FIELDS:
        if reasoning.text:
            yield field, reasoning.text
        if reasoning.opaque:
            yield "reasoning_opaque", reasoning.opaque
    details = [
        block for block in reasoning.blocks or () if str(block.get("type")).startswith("reasoning.")
    ]
    if details:
        yield "reasoning_details", details


def _call(call: ToolCall) -> dict[str, Any]:
    encoded: dict[str, Any] = {"id": call.id}
    if call.kind == "custom":
        encoded |= {"type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    else:
        function = {"name": call.name, "arguments": arguments_text(call)}
        encoded |= {"type": "function", "function": function}
    return encoded | (call.extra or {})


def chat_tool(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool definition in the format of this wire."""
    if spec.format is not None:
        custom = {
            "name": spec.name,
            "description": spec.description,
            "format": _format(spec.format),
        }
        return {"type": "custom", "custom": custom}
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}


def _format(definition: dict[str, Any]) -> dict[str, Any]:
    """Nest a grammar one level deeper than the Responses format, in which we store it."""
    if definition.get("type") != "grammar" or "grammar" in definition:
        return definition
    return {"type": "grammar", "grammar": {k: v for k, v in definition.items() if k != "type"}}
