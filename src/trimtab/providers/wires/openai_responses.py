"""The client side of OpenAI's Responses format."""

from collections.abc import Iterator
from typing import Any

import msgspec

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
from trimtab.providers.wires.parts import arguments_text, data_url
from trimtab.providers.wires.responses_reader import REASONING_FIELD, ResponsesReader, read_reply

# These models reject requests for reasoning, which they do not have.
_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt")


class OpenAIResponses:
    """Responses, stateless: the service stores nothing, and reasoning is sent back encrypted."""

    name = "openai-responses"
    path = "/responses"

    def __init__(self) -> None:
        self._messages = EncodedMessages(lambda _, message: _separated_items(message))
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def body(self, request: Request) -> list[bytes]:
        if request.tools is not self._tools[0]:
            tools = b',"tools":' + encode([_tool(spec) for spec in request.tools])
            self._tools = (request.tools, tools)
        pieces = self._messages.pieces(request.messages)
        if pieces:
            # Every item starts with a comma, which the first does not need.
            pieces[0] = pieces[0][1:]
        return [
            encode(_options(request))[:-1] + b',"input":[',
            *pieces,
            b"]",
            self._tools[1] if request.tools else b"",
            b"}",
        ]

    def reader(self) -> ResponsesReader:
        return ResponsesReader()

    def reply(self, body: bytes) -> Reply:
        return read_reply(body)


def _options(request: Request) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": request.model,
        "stream": request.stream,
        "store": False,
        "instructions": request.system,
    }
    if not request.model.startswith(_WITHOUT_REASONING):
        options["include"] = ["reasoning.encrypted_content"]
    if request.effort is not None:
        options["reasoning"] = {"effort": request.effort, "summary": "auto"}
    elif request.reasoning_summary:
        options["reasoning"] = {"summary": "auto"}
    if request.max_output_tokens is not None:
        options["max_output_tokens"] = request.max_output_tokens
    options |= _tool_options(request)
    for name in ("temperature", "top_p"):
        if (value := getattr(request.sampling, name)) is not None:
            options[name] = value
    if request.answer_schema is not None:
        schema = msgspec.structs.asdict(request.answer_schema)
        options["text"] = {"format": {"type": "json_schema", **schema}}
    if request.cache_key is not None:
        options["prompt_cache_key"] = request.cache_key
    return options


def _separated_items(message: Message) -> bytes:
    return b"".join(b"," + encode(item) for item in _items(message))


def _items(message: Message) -> Iterator[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        kind = "custom_tool_call" if message.kind == "custom" else "function_call"
        yield {"type": f"{kind}_output", "call_id": message.call_id, "output": message.text}
    elif isinstance(message, AssistantMessage):
        yield from _assistant_items(message)
    else:
        content = [_part(part) for part in message.parts]
        role = "developer" if message.system else "user"
        yield {"type": "message", "role": role, "content": content}


def _tool_options(request: Request) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if not request.tools:
        return options
    if request.required_tool is not None:
        options["tool_choice"] = _named_choice(request)
    elif request.tool_choice is not None:
        options["tool_choice"] = request.tool_choice
    if request.parallel_calls is not None:
        options["parallel_tool_calls"] = request.parallel_calls
    return options


def _named_choice(request: Request) -> dict[str, Any]:
    name = request.required_tool
    is_custom = any(spec.name == name and spec.format is not None for spec in request.tools)
    return {"type": "custom" if is_custom else "function", "name": name}


def _assistant_items(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    if message.reasoning is not None:
        yield from _reasoning_items(message.reasoning)
    if message.text or not message.tool_calls:
        content = [{"type": "output_text", "text": message.text}]
        item: dict[str, Any] = {"type": "message", "role": "assistant", "content": content}
        if message.phase is not None:
            item["phase"] = message.phase
        yield item
    for call in message.tool_calls:
        yield _call(call)


def _reasoning_items(reasoning: Reasoning) -> Iterator[dict[str, Any]]:
    """Yield reasoning items unchanged, except those without an encrypted form."""
    items = [block for block in reasoning.blocks or () if block.get("type") == "reasoning"]
    for item in items:
        if item.get("encrypted_content"):
            yield {
                key: value for key, value in item.items() if value is not None and key != "status"
            }
    if not items and reasoning.encrypted:
        summary = reasoning.text if reasoning.field == REASONING_FIELD else None
        rebuilt: dict[str, Any] = {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": summary}] if summary else [],
            "encrypted_content": reasoning.encrypted,
        }
        yield rebuilt | ({"id": reasoning.opaque} if reasoning.opaque else {})


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": data_url(part)}
    return {"type": "input_text", "text": part.text}


def _call(call: ToolCall) -> dict[str, Any]:
    item: dict[str, Any] = {"call_id": call.id, "name": call.name}
    if call.kind == "custom":
        return {"type": "custom_tool_call", **item, "input": call.arguments}
    return {"type": "function_call", **item, "arguments": arguments_text(call)}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": spec.name, "description": spec.description}
    if spec.format is not None:
        return {"type": "custom", **tool, "format": spec.format}
    parameters = spec.parameters or {"type": "object", "properties": {}}
    return {"type": "function", **tool, "parameters": parameters, "strict": False}
