"""Counts tokens locally, by the same rules as the services."""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Protocol

import msgspec

from trimtab.contracts.messages import Message
from trimtab.contracts.provider import ToolSpec
from trimtab.providers.image_size import image_size
from trimtab.providers.wires.openai_chat import chat_message, chat_tool

_REPLY = 3
"""The tokens that every request adds for the start of the reply."""
_PER_MESSAGE = 3
_PER_CALL = 3
_UNKNOWN_IMAGE = 765


class Family(msgspec.Struct, frozen=True):
    """The encoding of a family of models, and the factor by which their counts differ."""

    encoding: str = "o200k_base"
    scale: float = 1.0


_FAMILIES = (
    (r"gpt-4o|gpt-4\.|chatgpt-4o", Family()),
    (r"gpt-4|gpt-3\.5|text-embedding", Family("cl100k_base")),
    (r"claude", Family(scale=1.15)),
    (r"gemini", Family(scale=1.05)),
)
"""Patterns for the beginning of names. Unpublished tokenizers are scaled from a published one."""


class Encoder(Protocol):
    def encode_ordinary(self, text: str) -> Sequence[int]:
        """Return token ids; control tokens in the text are encoded as ordinary text."""
        ...


PIECE = 1 << 16
"""The characters that are encoded at once. A word of 8 MB takes 600 MB and six seconds in one
piece; in several the count is off by a token for each."""

_encoders: dict[str, Encoder] = {}
_counters: dict[str, "TokenCounter"] = {}


def family_of(model: str) -> Family:
    name = model.lower().rsplit("/", 1)[-1]
    return next((family for pattern, family in _FAMILIES if re.match(pattern, name)), Family())


def counter_for(model: str) -> "TokenCounter":
    """Return the counter of a model, which is created once."""
    if model not in _counters:
        family = family_of(model)
        if family.encoding not in _encoders:
            from splintr import Tokenizer

            _encoders[family.encoding] = Tokenizer.from_pretrained(family.encoding)
        _counters[model] = TokenCounter(_encoders[family.encoding], family.scale)
    return _counters[model]


class TokenCounter:
    """Counts messages and tools in the form of the Chat Completions wire."""

    def __init__(self, encoder: Encoder, scale: float = 1.0) -> None:
        self._encoder = encoder
        self._scale = scale

    def text(self, text: str) -> int:
        if not text:
            return 0
        # Lone surrogates cannot be encoded; services receive the replacement character too.
        plain = text.encode("utf-8", "replace").decode("utf-8")
        pieces = (plain[at : at + PIECE] for at in range(0, len(plain), PIECE))
        tokens = sum(len(self._encoder.encode_ordinary(piece)) for piece in pieces)
        return ceil(tokens * self._scale)

    def messages(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Count an array of messages."""
        return ceil(_REPLY * self._scale) + sum(map(self.message, messages))

    def message(self, message: Mapping[str, Any]) -> int:
        role, name = message.get("role"), message.get("name")
        tokens = _PER_MESSAGE + bool(role)
        if name and role not in {"tool", "function"}:
            tokens += self.text(name) + ceil(self._scale)
        content = message.get("content")
        if isinstance(content, str):
            tokens += self.text(content)
        elif content:
            tokens += sum(map(self._part, content))
        if role == "assistant":
            tokens += sum(map(self._call, message.get("tool_calls") or ()))
        return tokens

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Count tool definitions by their JSON."""
        return sum(self._json(tool.get("function") or tool) for tool in tools)

    def of(self, message: Message) -> int:
        """Count a message of a conversation."""
        return self.message(chat_message(message))

    def of_tools(self, specs: Sequence[ToolSpec]) -> int:
        return self.tools([chat_tool(spec) for spec in specs])

    def _part(self, part: Mapping[str, Any]) -> int:
        kind = part.get("type")
        if kind in {"text", "refusal"}:
            return self.text(part[kind])
        if kind == "image_url":
            return ceil(_image_tokens(part["image_url"]) * self._scale)
        return self._json(part)

    def _call(self, call: Mapping[str, Any]) -> int:
        function = call.get("function") or call.get("custom") or {}
        arguments = function.get("arguments", function.get("input", ""))
        return self.text(function.get("name", "")) + self.text(arguments) + _PER_CALL

    def _json(self, value: Any) -> int:
        return self.text(msgspec.json.encode(value).decode())


def _image_tokens(image: Mapping[str, Any]) -> int:
    """Return 85 plus 170 for each tile of 512 pixels, after scaling as services do it."""
    if image.get("detail") == "low":
        return 85
    size = image_size(str(image.get("url", "")))
    if size is None:
        return _UNKNOWN_IMAGE
    width, height = size
    shrink = min(1.0, 2048 / max(width, height))
    shrink *= min(1.0, 768 / max(1.0, min(width, height) * shrink))
    tiles = ceil(width * shrink / 512) * ceil(height * shrink / 512)
    return 85 + 170 * tiles
