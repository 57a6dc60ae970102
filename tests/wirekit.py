"""Strategies for conversations and replies, shared by the wire tests."""

import msgspec
from hypothesis import strategies as st

from trimtab.contracts.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from trimtab.contracts.provider import Reply, ToolSpec, Usage

WIRES = ("openai-chat", "openai-responses", "anthropic-messages")

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(
    lambda text: bool(text.strip())
)
ids = st.text("abcdefXYZ0123456789_-", min_size=1, max_size=12)
objects = st.dictionaries(words, st.none() | st.booleans() | st.integers(-9, 9) | words, max_size=3)
arguments = objects.map(lambda value: msgspec.json.encode(value).decode())


@st.composite
def tool_calls(draw: st.DrawFn, *, least: int = 0) -> tuple[ToolCall, ...]:
    chosen = draw(st.lists(ids, min_size=least, max_size=3, unique=True))
    return tuple(
        ToolCall(id=call_id, name=draw(ids), arguments=draw(arguments)) for call_id in chosen
    )


def reasonings(wire: str) -> st.SearchStrategy[Reasoning]:
    """Reasoning in the form the wire gives it."""
    if wire == "openai-chat":
        fields = st.sampled_from(["reasoning_content", "reasoning", "reasoning_text"])
        return st.builds(Reasoning, text=words, opaque=st.none() | words, field=fields)
    if wire == "openai-responses":
        return st.builds(_reasoning_item, words, ids, words)
    return st.builds(_thinking, words, words)


def _reasoning_item(text: str, item_id: str, encrypted: str) -> Reasoning:
    item = {
        "id": item_id,
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text}],
        "encrypted_content": encrypted,
    }
    return Reasoning(
        text=text, opaque=item_id, encrypted=encrypted, field="reasoning_summary", blocks=[item]
    )


def _thinking(text: str, signature: str) -> Reasoning:
    block = {"type": "thinking", "thinking": text, "signature": signature}
    return Reasoning(text=text, opaque=signature, field="thinking", blocks=[block])


images = st.builds(
    Image, data=st.sampled_from(["aGVsbG8=", "AAAA"]), mime_type=st.sampled_from(["image/png"])
)


@st.composite
def conversations(draw: st.DrawFn, wire: str) -> list[Message]:
    """A conversation as the loop makes them: calls are answered, roles alternate."""
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 3))):
        parts = draw(st.lists(words.map(lambda text: Text(text=text)) | images, min_size=1))
        messages.append(UserMessage(parts=tuple(parts)))
        thought = st.none() | reasonings(wire)
        for _ in range(draw(st.integers(0, 2))):
            calls = draw(tool_calls(least=1))
            text = draw(st.just("") | words)
            messages.append(AssistantMessage(text=text, tool_calls=calls, reasoning=draw(thought)))
            messages += [ToolMessage(call_id=call.id, text=draw(words)) for call in calls]
        messages.append(AssistantMessage(text=draw(words), reasoning=draw(thought)))
    return messages[: draw(st.integers(1, len(messages)))]


specs = st.builds(
    ToolSpec,
    name=ids,
    description=words,
    parameters=st.just({"type": "object", "properties": {"path": {"type": "string"}}}),
)

counts = st.integers(0, 10_000)


@st.composite
def replies(draw: st.DrawFn, wire: str) -> Reply:
    calls = draw(tool_calls())
    cached = draw(st.none() | st.integers(0, 100))
    return Reply(
        message=AssistantMessage(
            text=draw(words) if not calls else draw(st.just("") | words),
            tool_calls=calls,
            reasoning=draw(st.none() | reasonings(wire)),
        ),
        usage=Usage(
            input_tokens=draw(st.integers(200, 10_000)),
            output_tokens=draw(counts),
            cache_read_tokens=cached,
            cache_write_tokens=draw(st.none() | st.integers(0, 100)),
            reasoning_tokens=None if wire == "anthropic-messages" else draw(st.none() | counts),
        ),
        finish_reason="tool_calls" if calls else "stop",
        model="m-1",
        request_id=draw(ids),
    )
