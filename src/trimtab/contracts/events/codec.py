"""Encodes events as lines of JSON that every line-based reader can split, and decodes them."""

from typing import Any

import msgspec

from trimtab.contracts.events import class_of
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.json_text import encode_json

# Valid in JSON, but line ends for some readers (Python's splitlines, JavaScript source).
_LINE_ENDS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


NO_DATA = msgspec.Raw(b"{}")
"""The data of an event that has none."""


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """An event whose data is not decoded yet."""

    type: str
    data: msgspec.Raw = NO_DATA
    id: str = ""
    timestamp: str = ""
    parent_id: str | None = None
    ephemeral: bool | None = None
    agent_id: str | None = None


_envelope_decoder = msgspec.json.Decoder(Envelope)
peek = _envelope_decoder.decode
"""Decode the envelope of a line we wrote, but not its data. Raises `ValueError`."""

_data_decoders: dict[str, msgspec.json.Decoder[Any]] = {}
_plain_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def encode(event: Event) -> bytes:
    """Return the event as one line of UTF-8 JSON, without the newline."""
    line = encode_json(event)
    if not line.isascii():
        for raw, escaped in _LINE_ENDS:
            line = line.replace(raw, escaped)
    return line


def decode(line: bytes) -> Event:
    """Decode one line. Raises `ValueError` (or a subclass) if it is not an event."""
    try:
        return _open(_envelope_decoder.decode(line))
    except msgspec.DecodeError:
        return _decode_leniently(line)


def _open(envelope: Envelope) -> Event:
    wire_name = envelope.type
    decoder = _data_decoders.get(wire_name)
    if decoder is None:
        cls = class_of(wire_name)
        decoder = msgspec.json.Decoder(cls) if cls else _plain_decoder
        _data_decoders[wire_name] = decoder
    try:
        data = decoder.decode(envelope.data)
    except msgspec.ValidationError:
        data = _plain_decoder.decode(envelope.data)
    return Event(
        type=wire_name,
        data=data,
        id=envelope.id,
        timestamp=envelope.timestamp,
        parent_id=envelope.parent_id,
        ephemeral=bool(envelope.ephemeral),
        agent_id=envelope.agent_id,
    )


def _decode_leniently(line: bytes) -> Event:
    """Decode lines of other writers: lone surrogates, NaN, raw control characters."""
    try:
        import json

        plain = json.loads(line, strict=False)
        given = {name: value for name, value in plain.items() if value is not None}
        event = msgspec.convert({"parentId": None, "id": "", "timestamp": "", **given}, Event)
    except (ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"not an event: {error}") from error
    cls = class_of(event.type)
    if cls is None:
        return event
    try:
        return msgspec.structs.replace(event, data=msgspec.convert(event.data, cls))
    except msgspec.ValidationError:
        return event
