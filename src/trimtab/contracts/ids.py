"""Identifiers and timestamps, made without the imports of `uuid` and `datetime`."""

import os
import time

_second = 0
_prefix = ""


def new_id() -> str:
    """Return a random UUID (version 4)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_uuid(text: str) -> bool:
    """Return True if a text has the form of a UUID."""
    groups = text.split("-")
    return [len(group) for group in groups] == [8, 4, 4, 4, 12] and all(
        character in "0123456789abcdefABCDEF" for group in groups for character in group
    )


def timestamp(seconds: float | None = None) -> str:
    """Return a moment (now, if not given) as ISO 8601 in UTC with milliseconds."""
    global _second, _prefix
    at = time.time() if seconds is None else seconds
    second = int(at)
    if second != _second:
        _second, _prefix = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
    return f"{_prefix}.{int((at - second) * 1000):03d}Z"


def new_output_name(kind: str, label: str) -> str:
    """Return a file name for saved output, unique among all calls, also after a resume.

    The label alone is not unique: counters restart with each process, and models reuse the ids of
    their calls.
    """
    tidy = "".join(char if char.isalnum() and char.isascii() else "-" for char in label)[:40]
    return f"{kind}-{tidy}-{os.urandom(4).hex()}.txt"
