"""Three-way merges of texts by line; changes that touch each other are not merged."""

import difflib
from collections.abc import Sequence

MAX_LINES = 50_000
"""Texts with more changed lines than this are not compared."""

Op = tuple[int, int, int, int]
"""Lines i1 to i2 of one text correspond to lines j1 to j2 of the other."""


def merge(base: bytes, mine: bytes, theirs: bytes) -> bytes | None:
    """Apply the changes from `base` to `theirs` to `mine`; None if that is ambiguous.

    Changes that overlap or touch are not merged, unless both sides are the same.
    """
    if mine in (base, theirs):
        return theirs
    if theirs == base:
        return mine
    if any(b"\0" in text for text in (base, mine, theirs)):
        return None
    old, ours, new = split(base), split(mine), split(theirs)
    left, right = changed(old, ours), changed(old, new)
    if left is None or right is None:
        return None
    merged: list[bytes] = []
    at, last = 0, -1
    for op, source in _in_order(left, right, ours, new):
        if op[0] <= last:
            return None
        merged += old[at : op[0]]
        merged += source[op[2] : op[3]]
        at = last = op[1]
    merged += old[at:]
    return b"".join(merged)


def _in_order(
    left: list[Op], right: list[Op], ours: list[bytes], new: list[bytes]
) -> list[tuple[Op, list[bytes]]]:
    same = {(op[:2], b"".join(ours[op[2] : op[3]])) for op in left}
    both = [(op, ours) for op in left]
    both += [(op, new) for op in right if (op[:2], b"".join(new[op[2] : op[3]])) not in same]
    return sorted(both, key=lambda item: item[0][:2])


def split(text: bytes) -> list[bytes]:
    """Split a text into lines, with their newlines."""
    lines = text.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def changed(old: Sequence[bytes], new: Sequence[bytes]) -> list[Op] | None:
    """Return the hunks in which two texts differ; None if comparing would take too long."""
    head = 0
    while head < len(old) and head < len(new) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(a) + len(b) > MAX_LINES:
        return None
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [
        (head + i1, head + i2, head + j1, head + j2)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def apply_hunk(old: bytes, new: bytes, number: int) -> bytes | None:
    """Apply one hunk (from 1) of the changes to `old`; None if there is no such hunk."""
    before, after = split(old), split(new)
    ops = changed(before, after)
    if ops is None or not 1 <= number <= len(ops):
        return None
    i1, i2, j1, j2 = ops[number - 1]
    return b"".join((*before[:i1], *after[j1:j2], *before[i2:]))


def count_lines(old: bytes, new: bytes) -> tuple[int, int]:
    """Return the numbers of lines added and removed; zero for binary files."""
    if b"\0" in old[:8192] or b"\0" in new[:8192]:
        return 0, 0
    ops = changed(split(old), split(new)) or []
    return sum(op[3] - op[2] for op in ops), sum(op[1] - op[0] for op in ops)
