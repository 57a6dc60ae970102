"""What the three wires have in common when they read answers and send calls back.

Finish reasons are given in one vocabulary, whatever the wire calls them: `stop`, `tool_calls`,
`length` (the output limit), `content_filter`, `refusal`, `pause` (the service wants to go on).
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import Image, ToolCall
from trimtab.contracts.provider import Delta, ToolCallDelta
from trimtab.providers.wires.encoding import encode, without_surrogates

T = TypeVar("T")

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Names that services of the Chat Completions format have for what a model thought."""

_ANY = msgspec.json.Decoder()


def decode_frame(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Decode one event; what strict JSON forbids but services send (half an emoji) is let pass."""
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
    """`value` as the typed record it must be; anything else is an unreadable answer."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise unreadable() from None


def new_call_id() -> str:
    """An id for a call that came without one, or with one another call has."""
    return "call_" + os.urandom(12).hex()


def parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`, or None if there is none."""
    try:
        value = _ANY.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def call_arguments(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as the object services insist on, even where the model wrote none."""
    if not call.arguments.strip():
        return {}
    value = parse_object(call.arguments)
    return {"invalid_arguments": call.arguments} if value is None else value


def arguments_text(call: ToolCall) -> str:
    """The arguments as text that holds an object: servers parse it for their prompt template."""
    if parse_object(call.arguments) is not None:
        return call.arguments
    return encode(call_arguments(call)).decode()


def count(source: Any, *path: str) -> int | None:
    """A token count somewhere in a usage object, or None where the service did not say."""
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
    """The image in a data URL; None for an address on the net, which is never fetched."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return Image(data=data, mime_type=head[5:-7])


def broken(reason: str) -> ModelError:
    return ModelError(f"The model's answer broke off ({reason}); try again.", category="transport")


def unreadable() -> ModelError:
    return ModelError(
        "The model service sent something that is not in its wire format; check that the address "
        "and the wire fit the service.",
        category="transport",
    )


def cut_call(finish_reason: str | None) -> ModelError:
    """A call is only half there; after a limit or a filter, asking again would change nothing."""
    if finish_reason in {"content_filter", "refusal"}:
        return refused("the answer was ended inside a tool call")
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
    """One tool call while its pieces arrive.

    It is `held` back until its id, its name (which may come in pieces) and an argument are there.
    """

    __slots__ = ("arguments", "extra", "held", "id", "kind", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.kind = "function"
        self.arguments: list[str] = []
        self.held = True
        self.extra: dict[str, Any] | None = None

    def add(self, text: str) -> Delta | None:
        """Take a piece of the arguments; gives what can be shown, once id and name are known."""
        if text:
            self.arguments.append(text)
        if not self.id or not self.name or (self.held and not self.arguments):
            return None
        if self.held:
            self.held = False
            return ToolCallDelta(self.id, self.name, "".join(self.arguments))
        return ToolCallDelta(self.id, self.name, text) if text else None

    @property
    def whole(self) -> bool:
        """Whether the arguments received so far could be all of them."""
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
    """The calls of a finished answer; raises `ModelError` where one is only half there.

    After an ordinary end, arguments that are no JSON are the model's mistake and come out as they
    are; after any other end they are what was cut off.
    """
    calls = []
    cut = finish_reason not in {None, "stop", "tool_calls"}
    for builder in builders:
        if cut and (not builder.name or not _complete(builder)):
            raise cut_call(finish_reason)
        if not builder.name:
            raise broken("a tool call has no name")
        calls.append(builder.build())
    return tuple(calls)


def _complete(builder: CallBuilder) -> bool:
    return bool(builder.arguments) and builder.kind == "function" and builder.whole


def cut(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of `size` characters; all of it at once for size 0."""
    step = size if size > 0 else max(1, len(text))
    return (text[at : at + step] for at in range(0, len(text), step))


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request; raises `ModelError` (status 400) for anything else."""
    try:
        value = _ANY.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelError(
            "The request body is not a JSON object; send one.", category="invalid", status=400
        )
    return value
