"""Identifiers and timestamps, made without the imports of `uuid` and `datetime`."""

import os
import time

_last_second = (-1, "")
_last_moment = (-1, "")
"""The last timestamp and its milliseconds: several events share one."""
_BATCH = 32
_ready: list[str] = []
"""Ids to give out next: asking the system for random bytes takes longer than making an id."""
os.register_at_fork(after_in_child=_ready.clear)


def new_id() -> str:
    """Return a random UUID (version 4)."""
    while True:
        try:
            return _ready.pop()  # in one step, whichever threads ask
        except IndexError:
            _ready.extend(_make_ids())


def _make_ids() -> list[str]:
    digits = os.urandom(16 * _BATCH).hex()
    return [_format(digits[at : at + 32]) for at in range(0, len(digits), 32)]


def _format(digits: str) -> str:
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def is_uuid(text: str) -> bool:
    """Return True if a text has the form of a UUID."""
    groups = text.split("-")
    return [len(group) for group in groups] == [8, 4, 4, 4, 12] and all(
        character in "0123456789abcdefABCDEF" for group in groups for character in group
    )


def timestamp(seconds: float | None = None) -> str:
    """Return a moment (now, if not given) as ISO 8601 in UTC with milliseconds."""
    global _last_second, _last_moment
    at = time.time_ns() // 1_000_000 if seconds is None else int(seconds * 1000)
    known, text = _last_moment
    if at != known:
        second, rest = divmod(at, 1000)
        if second != _last_second[0]:
            _last_second = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        text = f"{_last_second[1]}.{rest:03d}Z"
        _last_moment = at, text
    return text


def new_output_name(kind: str, label: str) -> str:
    """Return a file name for saved output, unique among all calls, also after a resume.

    The label alone is not unique: counters restart with each process, and models reuse the ids of
    their calls.
    """
    tidy = "".join(char if char.isalnum() and char.isascii() else "-" for char in label)[:40]
    return f"{kind}-{tidy}-{os.urandom(4).hex()}.txt"
