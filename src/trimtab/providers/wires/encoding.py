"""Encodes requests as JSON, each message once, however often the conversation is sent."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.messages import Message

_BLOCK = 64 * 1024
_ENCODER = msgspec.json.Encoder()

MessageEncoder = Callable[[Message | None, Message], bytes]


def encode(value: Any) -> bytes:
    """Encode a value as JSON; lone surrogates, which have no UTF-8 form, become U+FFFD."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(without_surrogates(msgspec.to_builtins(value)))


def without_surrogates(value: Any) -> Any:
    """Join the halves of surrogate pairs in all strings of a value; replace lone ones."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    return value


class EncodedMessages:
    """The encoded form of a conversation, extended as it grows.

    Messages are frozen, so an equal prefix has an equal encoding, and comparing lists of the same
    objects takes nanoseconds each. Older messages are joined into blocks, so that neither finding
    nor writing them takes a step per message. `encode_message` also gets the previous message.
    """

    def __init__(self, encode_message: MessageEncoder, *, block: int = _BLOCK) -> None:
        self._encode = encode_message
        self._block = block
        self._seen: list[Message] = []
        self._blocks: list[bytes] = []
        self._ends: list[int] = []
        self._tail: list[bytes] = []
        self._tail_size = 0

    def pieces(self, messages: Sequence[Message]) -> list[bytes]:
        """Return the encoded messages in order; each piece contains one or more of them."""
        messages = list(messages)
        seen = self._seen
        if messages[: len(seen)] != seen:
            self._forget(_common(seen, messages))
        previous = seen[-1] if seen else None
        for message in messages[len(seen) :]:
            self._append(self._encode(previous, message))
            seen.append(message)
            previous = message
            if self._tail_size >= self._block:
                self._seal()
        return self._blocks + self._tail

    def _append(self, data: bytes) -> None:
        self._tail.append(data)
        self._tail_size += len(data)

    def _seal(self) -> None:
        self._blocks.append(b"".join(self._tail))
        self._ends.append(len(self._seen))
        self._tail = []
        self._tail_size = 0

    def _forget(self, keep: int) -> None:
        """Drop the messages after the first `keep`, and those that share a block with them."""
        while self._ends and self._ends[-1] > keep:
            self._ends.pop()
            self._blocks.pop()
        del self._seen[self._ends[-1] if self._ends else 0 :]
        self._tail = []
        self._tail_size = 0


def _common(left: Sequence[Message], right: Sequence[Message]) -> int:
    """Return the number of messages that both begin with."""
    for index, (first, second) in enumerate(zip(left, right, strict=False)):
        if first is not second and first != second:
            return index
    return min(len(left), len(right))
