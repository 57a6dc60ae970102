"""Reads replies in the Chat Completions format, streamed or whole."""

from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.contracts.messages import AssistantMessage, Reasoning
from trimtab.contracts.provider import Delta, ReasoningDelta, ReasoningDone, Reply, TextDelta, Usage
from trimtab.providers.errors import from_stream
from trimtab.providers.wires.parts import (
    REASONING_FIELDS,
    CallBuilder,
    broken,
    build_calls,
    count,
    decode_frame,
    new_call_id,
    refused,
)

_CALL_EXTRAS = ("extra_content", "provider_specific_fields", "thought_signature", "signature")

_FINISH_REASONS = {"function_call": "tool_calls", "eos": "stop", "max_tokens": "length"}
_DETAIL_TEXTS = frozenset({"text", "summary", "data"})
_FINISH_RANKS = {"length": 0, "content_filter": 1, "tool_calls": 2, "stop": 4}


class _Function(msgspec.Struct, gc=False):
    """The target of a call: a function with arguments, or a freeform tool with input."""

    name: str | None = None
    arguments: Any = None
    input: str | None = None


class _Call(msgspec.Struct, gc=False):
    """A call or a piece of it. Services expect the last four fields back unchanged."""

    index: int | None = None
    id: str | int | None = None
    function: _Function | None = None
    custom: _Function | None = None
    extra_content: Any = None
    provider_specific_fields: Any = None
    thought_signature: Any = None
    signature: Any = None


class _Part(msgspec.Struct, gc=False):
    text: str | None = None
    thinking: "list[_Part] | str | None" = None


class _Content(msgspec.Struct, gc=False):
    """The `delta` of a streamed choice, or the `message` of a whole choice."""

    content: str | list[_Part] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_text: Any = None
    reasoning_opaque: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    annotations: Any = None


class _Choice(msgspec.Struct, gc=False):
    index: int | None = 0
    delta: _Content | None = None
    message: _Content | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    id: str | int | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(_Chunk)


class ChatReader:
    """Assembles a streamed reply.

    Several choices form one reply: the text of the first choice with text, and the calls of all in
    order. It is complete if every choice with content has a finish reason, or if the service marked
    the end and at least one choice has a reason. A call cut off by the output limit is an error.
    """

    def __init__(self) -> None:
        self.done = False
        self._text: list[str] = []
        self._text_choice: int | None = None
        self._refusal: list[str] = []
        self._annotations: list[Any] = []
        self._thoughts = _Thoughts()
        self._calls = _Calls()
        self._finish: dict[int, str | None] = {}
        self._usage: dict[str, Any] | None = None
        self._model: str | None = None
        self._id: str | None = None

    def feed(self, data: bytes) -> Sequence[Delta]:
        if data.startswith(b"[DONE]"):
            self.done = True
            return ()
        chunk = decode_frame(_CHUNK, data)
        if chunk.error:
            raise from_stream(chunk.error)
        if chunk.usage is not None:
            self._usage = chunk.usage
        if self._model is None:
            self._model = chunk.model or None
            self._id = str(chunk.id) if chunk.id else None
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            index = choice.index or 0
            content = choice.delta or choice.message
            if content is not None:
                self._take(index, content, deltas)
            if choice.finish_reason:
                self._finish[index] = choice.finish_reason
        return deltas

    def finish(self) -> Reply:
        reasons = [reason for reason in self._finish.values() if reason]
        if not reasons or (not self.done and len(reasons) < len(self._finish)):
            raise broken("the stream ended too early")
        reason = _merged([_FINISH_REASONS.get(reason, reason) for reason in reasons])
        calls = build_calls(self._calls.all, reason)
        text = "".join(self._text)
        if self._refusal:
            text, reason = text + "".join(self._refusal), "refusal"
        if reason == "content_filter" and not text and not calls:
            raise refused("a filter blocked the reply")
        return Reply(
            message=AssistantMessage(text=text, tool_calls=calls, reasoning=self._thoughts.build()),
            usage=self.usage,
            finish_reason=reason,
            model=self._model,
            request_id=self._id,
            citations=self._citations(len(text)) if self._annotations else None,
        )

    def _citations(self, length: int) -> dict[str, Any] | None:
        from trimtab.providers.wires.citations import CitationBuilder, read_annotations

        builder = CitationBuilder("openai")
        read_annotations(builder, self._annotations, 0, length)
        return builder.build()

    @property
    def usage(self) -> Usage:
        return read_usage(self._usage)

    def finish_whole(self) -> Reply:
        """Finish a reply that is not streamed: a missing finish reason means `stop`."""
        self.done = True
        for index, reason in self._finish.items():
            self._finish[index] = reason or "stop"
        return self.finish()

    def _take(self, index: int, content: _Content, deltas: list[Delta]) -> None:
        text = content.content
        if (text or content.tool_calls) and (ended := self._thoughts.end(content)):
            deltas.append(ReasoningDone(ended))
        if text:
            if not isinstance(text, str):
                text = self._take_parts(text, deltas)
            self._take_text(index, text, deltas)
        thought = self._thoughts.take(content)
        if thought:
            deltas.append(ReasoningDelta(thought))
            self._finish.setdefault(index, None)
        if content.tool_calls:
            self._finish.setdefault(index, None)
            for entry in content.tool_calls:
                delta = self._calls.take(index, entry)
                if delta is not None:
                    deltas.append(delta)
        if isinstance(content.annotations, list):
            self._annotations += content.annotations
        if content.refusal:
            self._finish.setdefault(index, None)
            self._refusal.append(content.refusal)
            deltas.append(TextDelta(self._refusal[-1]))

    def _take_text(self, index: int, text: str, deltas: list[Delta]) -> None:
        if self._text_choice is None and text:
            self._text_choice = index
            self._finish.setdefault(index, None)
        if index == self._text_choice and text:
            self._text.append(text)
            deltas.append(TextDelta(text))

    def _take_parts(self, parts: list[_Part], deltas: list[Delta]) -> str:
        """Read content in the form of parts, some of which may be reasoning."""
        for part in parts:
            thought = part.thinking
            if isinstance(thought, list):
                thought = "".join(piece.text or "" for piece in thought)
            if thought:
                self._thoughts.add(None, thought)
                deltas.append(ReasoningDelta(thought))
        return "".join(part.text or "" for part in parts)


class _Thoughts:
    """Collects reasoning from whichever of the known fields the service uses."""

    __slots__ = ("_details", "_ended", "_field", "_opaque", "_text")

    def __init__(self) -> None:
        self._ended = False
        self._field: str | None = None
        self._text: list[str] = []
        self._opaque: str | None = None
        self._details: dict[tuple[str, str], dict[str, Any]] = {}

    def take(self, content: _Content) -> str:
        """Read the reasoning of a piece; return its text. Two filled fields have the same text."""
        if content.reasoning_opaque:
            self._opaque = content.reasoning_opaque
        if content.reasoning_details:
            self._take_details(content.reasoning_details)
        text = content.reasoning_content or content.reasoning or content.reasoning_text
        if not text or type(text) is not str:
            return ""
        for field in REASONING_FIELDS if self._field is None else (self._field,):
            text = getattr(content, field)
            if text and type(text) is str:
                self.add(field, text)
                return text
        return ""

    def add(self, field: str | None, text: str) -> None:
        self._field = self._field or field
        self._text.append(text)

    def end(self, content: _Content) -> Reasoning | None:
        """Return the reasoning at the first piece of the answer that follows it, else None."""
        if self._ended or not (self._text or self._opaque or self._details):
            return None
        self._opaque = content.reasoning_opaque or self._opaque
        self._ended = True
        return self.build()

    def build(self) -> Reasoning | None:
        if not (self._text or self._opaque or self._details):
            return None
        return Reasoning(
            text="".join(self._text) or None,
            opaque=self._opaque,
            field=self._field,
            blocks=list(self._details.values()) or None,
        )

    def _take_details(self, details: list[dict[str, Any]]) -> None:
        """Append the texts of details with the same index and type."""
        for detail in details:
            key = (str(detail.get("index", len(self._details))), str(detail.get("type")))
            known = self._details.setdefault(key, {})
            for name, value in detail.items():
                before = known.get(name)
                if name in _DETAIL_TEXTS and isinstance(value, str) and isinstance(before, str):
                    known[name] = before + value
                elif value is not None or name not in known:
                    known[name] = value


class _Calls:
    """Assembles the tool calls of a reply, whose pieces may be interleaved."""

    __slots__ = ("_slots", "all")

    def __init__(self) -> None:
        self.all: list[CallBuilder] = []
        self._slots: dict[tuple[int, int | None], CallBuilder] = {}

    def take(self, choice: int, entry: _Call) -> Delta | None:
        function = entry.custom or entry.function or _Function()
        call_id = "" if entry.id is None else str(entry.id)
        name = function.name or ""
        call = self._find(choice, entry.index, call_id)
        if call is None or _starts_new_call(call, call_id, name):
            call = CallBuilder()
            self._slots[choice, entry.index] = call
            self.all.append(call)
        if call_id and not call.id:
            taken = any(call_id == other.id for other in self.all)
            call.id = new_call_id() if taken else call_id
        if name and call.pending:
            call.name = _joined_name(call, name)
        if entry.custom:
            call.kind = "custom"
        for key in _CALL_EXTRAS:
            value = getattr(entry, key)
            if value is not None:
                call.extra = {**(call.extra or {}), key: value}
        return call.add(_arguments(function.input if entry.custom else function.arguments))

    def _find(self, choice: int, index: int | None, call_id: str) -> CallBuilder | None:
        """Return the call that a piece belongs to: by index, by id, or else the latest."""
        if index is not None:
            return self._slots.get((choice, index))
        same = [call for call in self.all if call.id and call.id == call_id]
        return next(iter(same or self.all[-1:]), None)


def _starts_new_call(call: CallBuilder, call_id: str, name: str) -> bool:
    """Return True if a piece with the index of a call starts a new call.

    Some services number all calls 0. Others repeat the name or send a new id with every piece;
    in that case the arguments so far are incomplete.
    """
    if not name or not call.name:
        return False
    if call_id and call_id == call.id:
        return False
    is_distinct = bool(call_id) or bool(call.arguments)
    return is_distinct and call.complete


def _joined_name(call: CallBuilder, name: str) -> str:
    """Return the name after a piece of it, which may be late, partial or repeated."""
    if name.startswith(call.name):
        return name
    if call.name.endswith(name) or call.arguments:
        return call.name
    return call.name + name


def _arguments(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _merged(reasons: list[str]) -> str:
    """Return the reason for several choices: the one that cut a choice off, else `tool_calls`."""
    ranked = sorted(reasons, key=lambda reason: _FINISH_RANKS.get(reason, 3))
    return ranked[0]


def read_reply(body: bytes) -> Reply:
    """Read a whole reply, by the same rules as a streamed one."""
    reader = ChatReader()
    reader.feed(body)
    return reader.finish_whole()


def read_usage(usage: dict[str, Any] | None) -> Usage:
    cached = count(usage, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = count(usage, "prompt_cache_hit_tokens")
    return Usage(
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        cache_read_tokens=cached,
        cache_write_tokens=count(usage, "prompt_tokens_details", "cache_write_tokens"),
        reasoning_tokens=count(usage, "completion_tokens_details", "reasoning_tokens"),
    )
