"""The client side of Anthropic's Messages format."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.contracts.messages import (
    AssistantMessage,
    Image,
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from trimtab.contracts.provider import Reply, Request, ToolSpec
from trimtab.providers.wires.anthropic_reader import MessagesReader, read_reply
from trimtab.providers.wires.encoding import EncodedMessages, encode
from trimtab.providers.wires.parts import call_arguments

# The format requires a limit; these models have a smaller one than the others.
_OUTPUT_LIMITS = (("claude-3-opus", 4096), ("claude-3-haiku", 4096), ("claude-3-5", 8192))
_OUTPUT_LIMIT = 32_000

# The token budget for thinking, by effort; it must be less than the output limit.
_THINKING = {
    "minimal": 1024,
    "low": 4096,
    "medium": 10_000,
    "high": 20_000,
    "xhigh": 31_000,
    "max": 31_000,
}
_MIN_THINKING = 1024

_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}

# The service rejects blocks without text.
_EMPTY = "(empty)"


class AnthropicMessages:
    """Messages. Sets cache marks after the tools, the system prompt and the conversation."""

    name = "anthropic-messages"
    path = "/v1/messages"

    def __init__(self) -> None:
        self._messages = EncodedMessages(_separated)
        self._system: tuple[str, bytes] = ("", b"")
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")
        self._freeform: frozenset[str] = frozenset()

    def body(self, request: Request) -> list[bytes]:
        if request.system is not self._system[0]:
            block = {"type": "text", "text": request.system, **_CACHE_MARK}
            system = b',"system":' + encode([block]) if request.system else b""
            self._system = (request.system, system)
        if request.tools is not self._tools[0]:
            tools = b',"tools":' + encode(_tools(request.tools))
            self._tools = (request.tools, tools)
            self._freeform = frozenset(
                spec.name for spec in request.tools if spec.format is not None
            )
        messages = list(request.messages) or [UserMessage.of(_EMPTY)]
        pieces = self._messages.pieces(messages[:-1])
        before = messages[-2] if len(messages) > 1 else None
        return [
            encode(_options(request))[:-1],
            self._tools[1] if request.tools else b"",
            self._system[1],
            b',"messages":[',
            *pieces,
            _separated(before, messages[-1], marked=True),
            b"]}]}",
        ]

    def reader(self) -> MessagesReader:
        return MessagesReader(self._freeform)

    def reply(self, body: bytes) -> Reply:
        return read_reply(body, self._freeform)


def _options(request: Request) -> dict[str, Any]:
    limit = request.max_output_tokens or next(
        (known for name, known in _OUTPUT_LIMITS if request.model.startswith(name)), _OUTPUT_LIMIT
    )
    options: dict[str, Any] = {
        "model": request.model,
        "stream": request.stream,
        "max_tokens": limit,
    }
    budget = min(_THINKING.get(request.effort or "", 0), limit - 1)
    if budget >= _MIN_THINKING and _may_think(request.messages):
        options["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if (choice := _tool_choice(request, thinks="thinking" in options)) is not None:
        options["tool_choice"] = choice
    options |= _sampling(request, thinks="thinking" in options)
    if request.answer_schema is not None:
        schema = request.answer_schema.schema
        options["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return options


def _tool_choice(request: Request, *, thinks: bool) -> dict[str, Any] | None:
    if not request.tools:
        return None
    choice: dict[str, Any] | None = None
    # With thinking enabled, a tool call cannot be required.
    if request.required_tool is not None and not thinks:
        choice = {"type": "tool", "name": request.required_tool}
    elif request.tool_choice is not None:
        choice = {"type": "auto" if thinks else _CHOICES[request.tool_choice]}
    if request.parallel_calls is False and (choice is None or choice["type"] != "none"):
        return {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return choice


def _sampling(request: Request, *, thinks: bool) -> dict[str, Any]:
    sampling = request.sampling
    options: dict[str, Any] = {}
    # With thinking enabled, the service chooses these itself.
    if sampling.temperature is not None and not thinks:
        options["temperature"] = min(1.0, sampling.temperature)
    if sampling.top_p is not None and not thinks and not options:
        options["top_p"] = sampling.top_p
    if sampling.top_k is not None and not thinks:
        options["top_k"] = sampling.top_k
    if sampling.stop:
        options["stop_sequences"] = sampling.stop
    return options


def _may_think(messages: Sequence[Message]) -> bool:
    """Return False in a turn whose earlier calls were made without thinking."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            thought = message.reasoning is not None and any(_thinking(message.reasoning))
            return thought or not message.tool_calls
        if isinstance(message, UserMessage):
            return True
    return True


def _separated(previous: Message | None, message: Message, *, marked: bool = False) -> bytes:
    """Encode a message; adjacent messages of the same role are merged into one."""
    blocks = list(_blocks(message))
    if marked:
        blocks[-1] = {**blocks[-1], **_CACHE_MARK}
    encoded = encode(blocks)[1:-1]
    role = _role(message)
    if previous is not None and _role(previous) == role:
        return b"," + encoded
    opening = b'{"role":"%b","content":[' % role
    if previous is not None:
        opening = b"]}," + opening
    elif role == b"assistant":
        # A conversation must begin with a user message.
        opening = b'{"role":"user","content":%b},%b' % (encode(_EMPTY), opening)
    return opening + encoded


def _role(message: Message) -> bytes:
    return b"assistant" if isinstance(message, AssistantMessage) else b"user"


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        block = {"type": "tool_result", "tool_use_id": _id(message.call_id)}
        yield {**block, "content": message.text, **({"is_error": True} if message.failed else {})}
    elif isinstance(message, AssistantMessage):
        yield from _assistant_blocks(message)
    elif message.system:
        # Only some models accept this role in the middle of a conversation.
        text = "".join(part.text for part in message.parts if not isinstance(part, Image))
        yield {"type": "text", "text": f"<system>\n{text}\n</system>"}
    else:
        yield from (_part(part) for part in message.parts)


def _assistant_blocks(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    if message.reasoning is not None:
        yield from _thinking(message.reasoning)
    if message.text.strip() or not message.tool_calls:
        yield {"type": "text", "text": message.text if message.text.strip() else _EMPTY}
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": _input(call)}


def _thinking(reasoning: Reasoning) -> Iterator[dict[str, Any]]:
    """Yield thinking blocks unchanged; the service rejects them without a signature."""
    known = {"thinking", "redacted_thinking"}
    blocks = [block for block in reasoning.blocks or () if block.get("type") in known]
    yield from (block for block in blocks if block.get("signature") or block.get("data"))
    if not blocks and reasoning.opaque and reasoning.field == "thinking":
        yield {
            "type": "thinking",
            "thinking": reasoning.text or "",
            "signature": reasoning.opaque,
        }
    elif not blocks and reasoning.opaque and reasoning.field == "redacted_thinking":
        yield {"type": "redacted_thinking", "data": reasoning.opaque}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        source = {"type": "base64", "media_type": part.mime_type, "data": part.data}
        return {"type": "image", "source": source}
    return {"type": "text", "text": part.text if part.text.strip() else _EMPTY}


def _input(call: ToolCall) -> dict[str, Any]:
    return {"input": call.arguments} if call.kind == "custom" else call_arguments(call)


def _id(call_id: str) -> str:
    """Replace the characters of other services' ids that this format does not allow."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id) or "_"


def _tools(specs: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    tools = [_tool(spec) for spec in specs]
    if tools:
        tools[-1] |= _CACHE_MARK
    return tools


def _tool(spec: ToolSpec) -> dict[str, Any]:
    schema: dict[str, Any] = spec.parameters or {"type": "object", "properties": {}}
    if spec.format is not None:
        # The format has no freeform tools: a text argument carries the input.
        properties = {"input": {"type": "string"}}
        schema = {"type": "object", "properties": properties, "required": ["input"]}
    return {"name": spec.name, "description": spec.description, "input_schema": schema}
