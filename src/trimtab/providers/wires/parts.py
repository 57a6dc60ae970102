"""Functions that the three wires share, to read replies and to send tool calls back.

Finish reasons have the same names for all wires: `stop`, `tool_calls`, `length` (the output limit),
`content_filter`, `refusal`, `pause` (the service wants to continue).
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import Image, ToolCall
from trimtab.contracts.provider import Delta, ToolCallDelta
from trimtab.providers.wires.encoding import encode, without_surrogates

T = TypeVar("T")

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""The fields in which services of the Chat Completions format send reasoning."""

MAX_LEFT_OUT = 8
_ABOUT = frozenset(("id", "model", "usage"))
_PLACE = re.compile(r" - at `\$\.([\w.]+)`$")
_ANY = msgspec.json.Decoder()


def decode_frame(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Decode an event; tolerate invalid JSON that services send, such as half an emoji."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_leniently(decoder.type, data)


def _decode_leniently(kind: type[T], data: bytes) -> T:
    import json

    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
        return read_as(without_surrogates(value), kind)
    except (ValueError, RecursionError):
        raise unreadable() from None


def read_as(value: Any, kind: type[T]) -> T:
    """Convert a value to a typed record. Raises `ModelError` if that fails.

    Fields that say something about a reply, but are not part of it, are left out if they cannot be
    read: it costs more to lose a reply than its count of tokens.
    """
    for _ in range(MAX_LEFT_OUT):
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            if not _leave_out(value, str(error)):
                break
    raise unreadable() from None


def _leave_out(value: Any, problem: str) -> bool:
    """Remove the field that a message of msgspec names; return False if a reply needs it."""
    match = _PLACE.search(problem)
    names = match[1].split(".") if match else []
    if not names or names[-1] not in _ABOUT:
        return False
    for name in names[:-1]:
        if not isinstance(value, dict):
            return False
        value = value.get(name)
    return isinstance(value, dict) and value.pop(names[-1], None) is not None


def new_call_id() -> str:
    """Return an id for a call that has none, or the same as another call."""
    return "call_" + os.urandom(12).hex()


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text, or None if it is not one."""
    try:
        value = _ANY.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object, which services require, even if they are invalid."""
    if not call.arguments.strip():
        return {}
    value = parse_object(call.arguments)
    return {"invalid_arguments": call.arguments} if value is None else value


def arguments_text(call: ToolCall) -> str:
    """Return the arguments as text of a JSON object, which servers parse for their template."""
    if parse_object(call.arguments) is not None:
        return call.arguments
    return encode(call_arguments(call)).decode()


def count(source: Any, *path: str) -> int | None:
    """Return a token count at a path in a usage object, or None if it is missing."""
    for name in path:
        if not isinstance(source, dict):
            return None
        source = source.get(name)
    return int(source) if isinstance(source, int | float) and 0 <= source < 2**53 else None


def add_counts(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def data_url(image: Image) -> str:
    return f"data:{image.mime_type};base64,{image.data}"


def image_from_url(url: str) -> Image | None:
    """Return the image in a data URL; None for other URLs, which are never fetched."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return Image(data=data, mime_type=head[5:-7])


def broken(reason: str) -> ModelError:
    return ModelError(f"The model's reply was cut off ({reason}); try again.", category="transport")


def unreadable() -> ModelError:
    return ModelError(
        "The model service sent data that is not in its wire format; check that the address and "
        "the wire fit the service.",
        category="transport",
    )


def cut_call(finish_reason: str | None) -> ModelError:
    """Return the error for an incomplete call; after a limit or a filter a retry cannot help."""
    if finish_reason in {"content_filter", "refusal"}:
        return refused("the reply ended inside a tool call")
    if finish_reason != "length":
        return broken("it ended inside a tool call")
    return ModelError(
        "The model reached its output limit inside a tool call; raise the limit or ask for a "
        "smaller step.",
        category="invalid",
        code="output_limit",
    )


def refused(reason: str) -> ModelError:
    return ModelError(
        f"The model service declined to answer ({reason}); reword the request.", category="refused"
    )


class CallBuilder:
    """Builds a tool call from its pieces.

    It is `pending` until its id, its name (which may arrive in pieces) and an argument are known.
    """

    __slots__ = ("arguments", "extra", "id", "kind", "name", "pending")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.kind = "function"
        self.arguments: list[str] = []
        self.pending = True
        self.extra: dict[str, Any] | None = None

    def add(self, text: str) -> Delta | None:
        """Add a piece of the arguments; return a delta once id and name are known."""
        if text:
            self.arguments.append(text)
        if not self.id or not self.name or (self.pending and not self.arguments):
            return None
        if self.pending:
            self.pending = False
            return ToolCallDelta(self.id, self.name, "".join(self.arguments))
        return ToolCallDelta(self.id, self.name, text) if text else None

    @property
    def complete(self) -> bool:
        """True if the arguments received so far may be all of them."""
        text = "".join(self.arguments)
        return not text or self.kind == "custom" or parse_object(text) is not None

    def build(self) -> ToolCall:
        text = "".join(self.arguments)
        custom = self.kind == "custom"
        return ToolCall(
            id=self.id or new_call_id(),
            name=self.name,
            arguments=text if custom else text or "{}",
            kind="custom" if custom else "function",
            extra=self.extra,
        )


def build_calls(builders: Iterable[CallBuilder], finish_reason: str | None) -> tuple[ToolCall, ...]:
    """Return the calls of a finished reply. Raises `ModelError` if a call is incomplete.

    After an ordinary end, invalid arguments are the model's mistake and are returned unchanged;
    after any other end they were cut off.
    """
    calls = []
    was_cut = finish_reason not in {None, "stop", "tool_calls"}
    for builder in builders:
        if was_cut and (not builder.name or not _is_complete(builder)):
            raise cut_call(finish_reason)
        if not builder.name:
            raise broken("a tool call has no name")
        calls.append(builder.build())
    return tuple(calls)


def _is_complete(builder: CallBuilder) -> bool:
    return bool(builder.arguments) and builder.kind == "function" and builder.complete


def cut(text: str, size: int) -> Iterator[str]:
    """Split a text into pieces of `size` characters; size 0 means a single piece."""
    step = size if size > 0 else max(1, len(text))
    return (text[start : start + step] for start in range(0, len(text), step))


def read_body(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a request. Raises `ModelError` with status 400 if it is not one."""
    try:
        value = _ANY.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelError(
            "The request body is not a JSON object; send one.", category="invalid", status=400
        )
    return value
