"""Counts tokens on this machine, by the rules services count by; nothing is fetched for it."""

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
"""What every request costs, for the start of the answer."""
_PER_MESSAGE = 3
_PER_CALL = 3
_UNKNOWN_IMAGE = 765


class Family(msgspec.Struct, frozen=True):
    """How the models of a family count: an encoding, and by how much they differ from it."""

    encoding: str = "o200k_base"
    scale: float = 1.0


_FAMILIES = (
    (r"gpt-4o|gpt-4\.|chatgpt-4o", Family()),
    (r"gpt-4|gpt-3\.5|text-embedding", Family("cl100k_base")),
    (r"claude", Family(scale=1.15)),
    (r"gemini", Family(scale=1.05)),
)
"""The start of a model's name. Vendors that publish no tokenizer are scaled from one that is."""


class Encoder(Protocol):
    def encode_ordinary(self, text: str) -> Sequence[int]:
        """Token ids; what looks like a control token is text like any other."""
        ...


_encoders: dict[str, Encoder] = {}
_counters: dict[str, "TokenCounter"] = {}


def family_of(model: str) -> Family:
    name = model.lower().rsplit("/", 1)[-1]
    return next((family for start, family in _FAMILIES if re.match(start, name)), Family())


def counter_for(model: str) -> "TokenCounter":
    """The counter of a model, made once."""
    if model not in _counters:
        family = family_of(model)
        if family.encoding not in _encoders:
            from splintr import Tokenizer

            _encoders[family.encoding] = Tokenizer.from_pretrained(family.encoding)
        _counters[model] = TokenCounter(_encoders[family.encoding], family.scale)
    return _counters[model]


class TokenCounter:
    """Counts what is sent: messages and tools in the form of the Chat Completions wire."""

    def __init__(self, encoder: Encoder, scale: float = 1.0) -> None:
        self._encoder = encoder
        self._scale = scale

    def text(self, text: str) -> int:
        if not text:
            return 0
        # Half a character pair cannot be encoded; services get the replacement character too.
        plain = text.encode("utf-8", "replace").decode("utf-8")
        return ceil(len(self._encoder.encode_ordinary(plain)) * self._scale)

    def messages(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """A whole array of messages."""
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
        """Tool definitions: name, description and schema as they are written."""
        return sum(self._json(tool.get("function") or tool) for tool in tools)

    def of(self, message: Message) -> int:
        """A message of a conversation."""
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
        written = function.get("arguments", function.get("input", ""))
        return self.text(function.get("name", "")) + self.text(written) + _PER_CALL

    def _json(self, value: Any) -> int:
        return self.text(msgspec.json.encode(value).decode())


def _image_tokens(image: Mapping[str, Any]) -> int:
    """85, and 170 for each tile of 512 pixels after the image was fitted as services fit it."""
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
