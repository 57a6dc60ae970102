"""JSON that may contain bytes which are not UTF-8, as file names and arguments do.

Python keeps such bytes as lone surrogates, which UTF-8 cannot encode: they are written as escapes.
"""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def encode_json(value: Any) -> bytes:
    """Return a value as one line of JSON."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        import json

        plain = msgspec.to_builtins(value)
        return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()


def indent_json(value: Any) -> bytes:
    """Return a value as JSON for people to read."""
    try:
        return msgspec.json.format(_encoder.encode(value), indent=2)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value), allow_nan=False, indent=2).encode()


def decode_json(data: bytes, kind: type[T]) -> T:
    """Return the value of what `encode_json` wrote. Raises `msgspec.DecodeError`."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, RecursionError):
        import json

        try:
            return msgspec.convert(json.loads(data), kind)
        except (ValueError, RecursionError) as error:
            raise msgspec.DecodeError(str(error)) from None
