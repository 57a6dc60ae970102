"""Unified diffs of a change whose place is known, without comparing whole files."""

from collections.abc import Iterator, Sequence

import msgspec

from trimtab.contracts.text import count

CONTEXT = 3
COMPARED = 2000
LONGEST = 20_000
"""So much of a line is shown: files without line breaks may have lines of many megabytes."""

Op = tuple[str, int, int, int, int]


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """Lines taken out and put in at a line number (from 1), with the lines around them."""

    line: int
    removed: Sequence[str]
    added: Sequence[str]
    above: Sequence[str] = ()
    below: Sequence[str] = ()

    def operations(self) -> list[Op]:
        """Which lines stay and which change, as `difflib` says it."""
        old, new = self.removed, self.added
        if len(old) < 2 or len(new) < 2 or max(len(old), len(new)) > COMPARED:
            return [("replace", 0, len(old), 0, len(new))]
        import difflib

        return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())

    def counts(self) -> tuple[int, int]:
        """Lines added and lines removed."""
        changed = [op for op in self.operations() if op[0] != "equal"]
        return sum(op[4] - op[3] for op in changed), sum(op[2] - op[1] for op in changed)

    def lines(self) -> Iterator[str]:
        yield from (f" {line}" for line in self.above)
        for kind, a, b, c, d in self.operations():
            if kind == "equal":
                yield from (f" {line}" for line in self.removed[a:b])
            else:
                yield from (f"-{line}" for line in self.removed[a:b])
                yield from (f"+{line}" for line in self.added[c:d])
        yield from (f" {line}" for line in self.below)


def unified(path: str, hunk: Hunk, *, created: bool = False) -> str:
    """The change as a unified diff with git's headers."""
    around = len(hunk.above) + len(hunk.below)
    first = hunk.line - len(hunk.above)
    old = span(first, len(hunk.removed) + around)
    new = span(first, len(hunk.added) + around)
    name = path.lstrip("/")
    source = "/dev/null" if created else f"a/{name}"
    head = f"diff --git a/{name} b/{name}\n--- {source}\n+++ b/{name}\n@@ -{old} +{new} @@\n"
    at = first_difference(hunk)
    return head + "\n".join(shorten(line, at) for line in hunk.lines()) + "\n"


def first_difference(hunk: Hunk) -> int:
    """Where the first lines that change begin to differ; only long ones are compared."""
    old, new = "".join(hunk.removed[:1]), "".join(hunk.added[:1])
    low, high = 0, min(len(old), len(new))
    if high < LONGEST:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shorten(line: str, at: int) -> str:
    """A line of a diff, or the part of it around a place, with how much is missing."""
    if len(line) <= LONGEST:
        return line
    start = min(max(1, at - LONGEST // 2), len(line) - LONGEST + 1)
    before, after = start - 1, len(line) - start - LONGEST + 1
    left = f"<{count(before, 'character')}>" if before else ""
    right = f"<{count(after, 'character')}>" if after else ""
    return line[0] + left + line[start : start + LONGEST - 1] + right


def span(first: int, lines: int) -> str:
    """A hunk's range; one without lines names the line before it."""
    return f"{first if lines else max(first - 1, 0)},{lines}"
