"""The messages of a conversation and their parts, independent of any wire."""

from typing import Any, Literal, TypeAlias

import msgspec

INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."
"""The result of a tool call that was interrupted, in the words of the reference protocol."""


class Image(msgspec.Struct, frozen=True, kw_only=True, tag="image"):
    """An image, base64-encoded, as a part of a user message or a tool result."""

    data: str
    mime_type: str
    name: str | None = None


class Text(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    text: str


Part: TypeAlias = Text | Image


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call the model asks for. `arguments` is the text the model wrote, not yet parsed.

    `kind` is `custom` for freeform tools whose input is plain text. `extra` keeps what the service
    attached to the call and expects back (thought signatures).
    """

    id: str
    name: str
    arguments: str
    kind: Literal["function", "custom"] = "function"
    extra: dict[str, Any] | None = None

    def readable_arguments(self) -> Any:
        """Return the arguments as an object if the text is one, else the text."""
        if self.kind == "custom":
            return self.arguments
        try:
            parsed = msgspec.json.decode(self.arguments or "{}")
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return self.arguments
        return parsed if isinstance(parsed, dict) else self.arguments


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """The model's reasoning, readable and opaque; services want the opaque part sent back.

    `field` names the wire field the text came in; `blocks` keeps Anthropic's thinking blocks and
    the Responses API's reasoning items as they came.
    """

    text: str | None = None
    opaque: str | None = None
    encrypted: str | None = None
    field: str | None = None
    blocks: list[dict[str, Any]] | None = None


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, tag="user"):
    """A message to the model; `system` marks instructions in the middle of a conversation."""

    parts: tuple[Part, ...]
    system: bool = False

    @classmethod
    def of(cls, text: str) -> "UserMessage":
        return cls(parts=(Text(text=text),))


class AssistantMessage(msgspec.Struct, frozen=True, kw_only=True, tag="assistant"):
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: Reasoning | None = None
    phase: str | None = None


class ToolMessage(msgspec.Struct, frozen=True, kw_only=True, tag="tool"):
    """The result of one tool call. Images go into a user message of their own after it."""

    call_id: str
    text: str
    name: str = ""
    failed: bool = False
    kind: Literal["function", "custom"] = "function"


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


def replace_images(message: UserMessage, text: str) -> UserMessage:
    """Return the message with a text in place of each image."""
    if not any(isinstance(part, Image) for part in message.parts):
        return message
    parts = [part if isinstance(part, Text) else Text(text=text) for part in message.parts]
    return UserMessage(parts=tuple(parts))


def role_of(message: Message) -> str:
    """Return the speaker: user, assistant or tool."""
    return str(message.__struct_config__.tag)
