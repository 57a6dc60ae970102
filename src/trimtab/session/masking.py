"""Events as they may be stored and shown: secrets are hidden, also those that come in pieces."""

from collections.abc import Iterable
from typing import Any

import msgspec

from trimtab.contracts.events.codec import decode, encode
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.secrets import Masker

_STREAMS = {
    "assistant.message_delta": ("message_id", "delta_content"),
    "assistant.reasoning_delta": ("reasoning_id", "delta_content"),
    "assistant.tool_call_delta": ("tool_call_id", "input_delta"),
    "tool.execution_partial_result": ("tool_call_id", "partial_output"),
}
"""Events that carry pieces of a text: what names the text, and the piece."""
_ENDS = {
    "assistant.message": ("message_id", "assistant.message_delta"),
    "assistant.reasoning": ("reasoning_id", "assistant.reasoning_delta"),
    "tool.execution_start": ("tool_call_id", "assistant.tool_call_delta"),
    "tool.execution_complete": ("tool_call_id", "tool.execution_partial_result"),
}
"""Events that come when a text is complete."""


class EventMask:
    """Hides secrets in the events of one session.

    Of a streamed text, an end that may be the beginning of a secret is held back until the next
    piece tells, or the text is complete.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held: dict[tuple[str, str], EventData] = {}

    def add(self, values: Iterable[str]) -> None:
        """Hide these values too, from now on."""
        self._masker.add(values)

    def join(self, data: EventData) -> EventData | None:
        """A piece of a text with what was held back before it, and without what must wait.

        None if all of it must wait.
        """
        stream = _STREAMS.get(data.wire_name)
        if stream is None:
            return data
        name, field = stream
        key = data.wire_name, getattr(data, name)
        text: str = getattr(data, field) or ""
        if (before := self._held.pop(key, None)) is not None:
            text = getattr(before, field) + text
        text = self._masker.mask_known(text)
        cut = self._masker.find_cut_secret(text)
        if cut < len(text):
            self._held[key] = msgspec.structs.replace(data, **{field: text[cut:]})
            if not cut:
                return None
        elif text == getattr(data, field):
            return data
        return msgspec.structs.replace(data, **{field: text[:cut]})

    def take_rest(self, data: EventData) -> EventData | None:
        """The piece that still waits when a text is complete."""
        if not self._held or data.wire_name not in _ENDS:
            return None
        name, stream = _ENDS[data.wire_name]
        return self._held.pop((stream, getattr(data, name)), None)

    def cover(self, event: Event, line: bytes) -> tuple[Event, Event, bytes]:
        """The event as the model sees it, as others see it, and the line of the latter."""
        if not self._masker.may_contain_secret(line):
            return event, event, line
        plain: Any = msgspec.to_builtins(event)
        masked = self._masker.mask(plain["data"])
        if masked.for_others == plain["data"]:
            return event, event, line
        seen = event
        if masked.for_model != plain["data"]:
            seen = decode(encode(msgspec.structs.replace(event, data=masked.for_model)))
        shown = decode(encode(msgspec.structs.replace(event, data=masked.for_others)))
        return seen, shown, encode(shown)
