"""Masks secrets in a session's events, also in texts that are streamed in pieces."""

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
"""Events with a piece of a text: the field that identifies the text, and the piece's field."""
_ENDS = {
    "assistant.message": ("message_id", "assistant.message_delta"),
    "assistant.reasoning": ("reasoning_id", "assistant.reasoning_delta"),
    "tool.execution_start": ("tool_call_id", "assistant.tool_call_delta"),
    "tool.execution_complete": ("tool_call_id", "tool.execution_partial_result"),
}
"""Events that mark the end of a streamed text."""


class EventMask:
    """Masks secrets in the events of a session.

    If a piece of a streamed text ends with the possible beginning of a secret, that end is
    withheld until the next piece arrives or the text is complete.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._withheld: dict[tuple[str, str], EventData] = {}

    def add(self, values: Iterable[str]) -> None:
        """Mask these values too, from now on."""
        self._masker.add(values)

    def mask_piece(self, data: EventData) -> EventData | None:
        """Return a piece with the text withheld before it, without the text to withhold now.

        None if all of it is withheld.
        """
        stream = _STREAMS.get(data.wire_name)
        if stream is None:
            return data
        name, field = stream
        key = data.wire_name, getattr(data, name)
        text: str = getattr(data, field) or ""
        if (before := self._withheld.pop(key, None)) is not None:
            text = getattr(before, field) + text
        text = self._masker.mask_known(text)
        cut = self._masker.find_cut_secret(text)
        if cut < len(text):
            self._withheld[key] = msgspec.structs.replace(data, **{field: text[cut:]})
            if not cut:
                return None
        elif text == getattr(data, field):
            return data
        return msgspec.structs.replace(data, **{field: text[:cut]})

    def flush(self, data: EventData) -> EventData | None:
        """Return the withheld end of a text that is complete."""
        if not self._withheld or data.wire_name not in _ENDS:
            return None
        name, stream = _ENDS[data.wire_name]
        return self._withheld.pop((stream, getattr(data, name)), None)

    def mask_event(self, event: Event, line: bytes) -> tuple[Event, Event, bytes]:
        """Return the event for the model, the event for others, and the line of the latter."""
        if not self._masker.may_contain_secret(line):
            return event, event, line
        plain: Any = msgspec.to_builtins(event)
        masked = self._masker.mask(plain["data"])
        if masked.for_others == plain["data"]:
            return event, event, line
        for_model = event
        if masked.for_model != plain["data"]:
            for_model = decode(encode(msgspec.structs.replace(event, data=masked.for_model)))
        for_others = decode(encode(msgspec.structs.replace(event, data=masked.for_others)))
        return for_model, for_others, encode(for_others)
