"""Gives a runtime the earlier conversation, if it did not take part in it."""

from collections.abc import Sequence

from trimtab.contracts.messages import AssistantMessage, Message, Text, ToolMessage, UserMessage

_MAX_MESSAGE = 2_000
_MAX_TOTAL = 60_000
"""The length in characters of one message, and of all of them; the newest are kept."""


def hand_over(messages: Sequence[Message], prompt: str) -> tuple[str, int]:
    """Return a prompt with the conversation before it, and the number of messages in that."""
    lines: list[str] = []
    length = 0
    for message in reversed(messages):
        text = describe(message)
        length += len(text)
        if length > _MAX_TOTAL:
            break
        lines.insert(0, text)
    if not lines:
        return prompt, 0
    earlier = "\n\n".join(lines)
    text = (
        "<earlier_conversation>\nThis was said and done before you took over:\n\n"
        f"{earlier}\n</earlier_conversation>\n\n{prompt}"
    )
    return text, len(lines)


def describe(message: Message) -> str:
    """Return a message as a paragraph."""
    if isinstance(message, UserMessage):
        texts = [part.text if isinstance(part, Text) else "[image]" for part in message.parts]
        return f"User: {clip(' '.join(texts))}"
    if isinstance(message, ToolMessage):
        return f"Result of {message.name}: {clip(message.text)}"
    assert isinstance(message, AssistantMessage)
    calls = [f"[calls {call.name} {clip(call.arguments)}]" for call in message.tool_calls]
    return f"Assistant: {' '.join(filter(None, [clip(message.text), *calls]))}"


def clip(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]} […]"
