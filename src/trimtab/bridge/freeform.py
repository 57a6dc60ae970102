"""Offers freeform tools as functions with one string, for services without freeform tools."""

import msgspec

from trimtab.contracts.messages import AssistantMessage, Message, ToolCall, ToolMessage
from trimtab.contracts.provider import Reply, Request, ToolSpec
from trimtab.providers.wires.encoding import encode
from trimtab.providers.wires.parts import parse_object

_FIELD = "input"
_PARAMETERS = {
    "type": "object",
    "properties": {_FIELD: {"type": "string"}},
    "required": [_FIELD],
}


def as_functions(request: Request) -> Request:
    """Return a request whose freeform tools and their calls are functions."""
    if all(spec.format is None for spec in request.tools):
        return request
    return msgspec.structs.replace(
        request,
        tools=tuple(map(_as_function, request.tools)),
        messages=[_as_functions(message) for message in request.messages],
    )


def restore_calls(reply: Reply, freeform: frozenset[str]) -> Reply:
    """Return a reply whose calls of freeform tools have plain text again."""
    message = reply.message
    calls = tuple(_restored(call, freeform) for call in message.tool_calls)
    return msgspec.structs.replace(
        reply, message=msgspec.structs.replace(message, tool_calls=calls)
    )


def _as_function(spec: ToolSpec) -> ToolSpec:
    if spec.format is None:
        return spec
    return msgspec.structs.replace(spec, parameters=_PARAMETERS, format=None)


def _as_functions(message: Message) -> Message:
    if isinstance(message, ToolMessage):
        return msgspec.structs.replace(message, kind="function")
    if isinstance(message, AssistantMessage):
        calls = tuple(map(_as_call, message.tool_calls))
        return msgspec.structs.replace(message, tool_calls=calls)
    return message


def _as_call(call: ToolCall) -> ToolCall:
    if call.kind != "custom":
        return call
    arguments = encode({_FIELD: call.arguments}).decode()
    return msgspec.structs.replace(call, kind="function", arguments=arguments)


def _restored(call: ToolCall, freeform: frozenset[str]) -> ToolCall:
    if call.name not in freeform or call.kind == "custom":
        return call
    text = (parse_object(call.arguments) or {}).get(_FIELD)
    arguments = text if isinstance(text, str) else call.arguments
    return msgspec.structs.replace(call, kind="custom", arguments=arguments)
