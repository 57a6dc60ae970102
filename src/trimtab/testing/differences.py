"""Describes how the outcome of a scenario differs from what is expected, for people."""

import difflib
from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.testing.scenarios import Outcome

MAX_VALUE = 200
MAX_LINES = 200


def find_differences(expected: Outcome, now: Outcome) -> list[str]:
    """Return lines that say which events and files differ; none if nothing does."""
    lines = [*_compare_events(expected.events, now.events), *_compare_files(expected, now)]
    if len(lines) > MAX_LINES:
        return [*lines[:MAX_LINES], f"… {len(lines) - MAX_LINES} more lines"]
    return lines


def _compare_events(expected: list[str], now: list[str]) -> Iterator[str]:
    old_types, new_types = ([_type(line) for line in lines] for lines in (expected, now))
    matcher = difflib.SequenceMatcher(None, old_types, new_types, autojunk=False)
    for kind, old, old_end, new, new_end in matcher.get_opcodes():
        if kind == "equal":
            for before, after in zip(range(old, old_end), range(new, new_end), strict=True):
                yield from _compare_event(before + 1, expected[before], now[after])
            continue
        for number in range(old, old_end):
            yield f"- event {number + 1}: {_shorten(expected[number])}"
        for number in range(new, new_end):
            yield f"+ event {number + 1}: {_shorten(now[number])}"


def _compare_event(number: int, expected: str, now: str) -> Iterator[str]:
    """Yield the fields in which two events of one type differ."""
    if expected == now:
        return
    first, second = msgspec.json.decode(expected), msgspec.json.decode(now)
    for path, before, after in _walk(first.get("data"), second.get("data"), ""):
        yield f"~ event {number} {first['type']}{path}"
        yield from _compare_values(before, after)


def _walk(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from _walk(before.get(name), after.get(name), f"{path}.{name}")
    elif before != after:
        yield path, before, after


def _compare_values(before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield from (f"    {line}" for line in _diff(before, after))
        return
    yield f"    - {_shorten(_show(before))}"
    yield f"    + {_shorten(_show(after))}"


def _compare_files(expected: Outcome, now: Outcome) -> Iterator[str]:
    for name in sorted({*expected.files, *now.files}):
        before, after = expected.files.get(name), now.files.get(name)
        if before == after:
            continue
        if after is None:
            yield f"- file {name} is missing"
        elif before is None:
            yield f"+ file {name} is not expected"
        else:
            yield f"~ file {name}"
            texts = [data.decode("utf-8", "replace") for data in (before, after)]
            yield from (f"    {line}" for line in _diff(texts[0], texts[1]))


def _diff(before: str, after: str) -> Iterator[str]:
    rows = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1)
    return (row for row in rows if not row.startswith(("---", "+++", "@@")))


def _type(line: str) -> str:
    value = msgspec.json.decode(line)
    return str(value.get("type")) if isinstance(value, dict) else ""


def _show(value: Any) -> str:
    return "(none)" if value is None else msgspec.json.encode(value).decode()


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
