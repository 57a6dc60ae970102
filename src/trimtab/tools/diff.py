"""Formats a change at a known position as a unified diff, without comparing whole files."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from trimtab.contracts.text import count

CONTEXT = 3
MAX_COMPARED = 2000
"""Lines that are compared; larger changes are shown as a whole."""
BLOCK = 4096
MAX_LINE = 20_000
"""Characters of a line that are shown: a file without line breaks is one long line."""

Op = tuple[str, int, int, int, int]


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """Removed and added lines at a line number from 1, with the lines around them."""

    line: int
    removed: Sequence[str]
    added: Sequence[str]
    above: Sequence[str] = ()
    below: Sequence[str] = ()

    def operations(self) -> list[Op]:
        """Return the opcodes of `difflib` for the removed and added lines."""
        old, new = self.removed, self.added
        if len(old) < 2 or len(new) < 2 or max(len(old), len(new)) > MAX_COMPARED:
            return [("replace", 0, len(old), 0, len(new))]
        import difflib

        return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())

    def counts(self) -> tuple[int, int]:
        """Return the numbers of added and removed lines."""
        changed = [op for op in self.operations() if op[0] != "equal"]
        return sum(op[4] - op[3] for op in changed), sum(op[2] - op[1] for op in changed)

    def lines(self) -> Iterator[str]:
        yield from (f" {line}" for line in self.above)
        for kind, old_start, old_end, new_start, new_end in self.operations():
            old, new = self.removed[old_start:old_end], self.added[new_start:new_end]
            if kind == "equal":
                yield from (f" {line}" for line in old)
            else:
                yield from (f"-{line}" for line in old)
                yield from (f"+{line}" for line in new)
        yield from (f" {line}" for line in self.below)


def unified(path: str, hunk: Hunk, *, created: bool = False) -> str:
    """Return the change as a unified diff with git's headers."""
    context = len(hunk.above) + len(hunk.below)
    first = hunk.line - len(hunk.above)
    old = span(first, len(hunk.removed) + context)
    new = span(first, len(hunk.added) + context)
    name = path.lstrip("/")
    source = "/dev/null" if created else f"a/{name}"
    head = f"diff --git a/{name} b/{name}\n--- {source}\n+++ b/{name}\n@@ -{old} +{new} @@\n"
    at = first_difference(hunk)
    return head + join_lines(shorten(line, at) for line in hunk.lines()) + "\n"


def join_lines(lines: Iterator[str]) -> str:
    """Join lines of a diff, none of them empty, in blocks: millions are not in memory twice."""
    return "\n".join(iter(lambda: "\n".join(islice(lines, BLOCK)), ""))


def unified_new(path: str, text: str) -> str:
    """Return a new file as a unified diff, without a list of its lines, which may be millions."""
    lines = count_lines(text)
    if re.search(rf"[^\n]{{{MAX_LINE}}}", text):
        return unified(path, Hunk(line=1, removed=(), added=text.split("\n")[:lines]), created=True)
    name = path.lstrip("/")
    added = "+" + text.removesuffix("\n").replace("\n", "\n+") if lines else ""
    head = f"diff --git a/{name} b/{name}\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -{span(1, 0)} +{span(1, lines)} @@\n{added}\n"


def count_lines(text: str) -> int:
    """Return the number of lines; the last one may lack its line break."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def first_difference(hunk: Hunk) -> int:
    """Return where the first changed lines begin to differ, or 0 unless both are long."""
    old, new = "".join(hunk.removed[:1]), "".join(hunk.added[:1])
    low, high = 0, min(len(old), len(new))
    if high < MAX_LINE:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shorten(line: str, at: int) -> str:
    """Cut a long line of a diff around a position, and say how much is missing."""
    if len(line) <= MAX_LINE:
        return line
    start = min(max(1, at - MAX_LINE // 2), len(line) - MAX_LINE + 1)
    before, after = start - 1, len(line) - start - MAX_LINE + 1
    left = f"<{count(before, 'character')}>" if before else ""
    right = f"<{count(after, 'character')}>" if after else ""
    return line[0] + left + line[start : start + MAX_LINE - 1] + right


def span(first: int, lines: int) -> str:
    """Return the range of a hunk. Without lines, it names the line before it."""
    return f"{first if lines else max(first - 1, 0)},{lines}"
