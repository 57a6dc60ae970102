"""Renders unified diffs: line numbers, added and removed lines, the words that changed."""

import difflib
import re
from collections.abc import Iterator

from trimtab.contracts.text import count, neutralise
from trimtab.transports.tui.cells import Line, Span

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@.*")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
LONGEST_COMPARED = 500
"""Characters of a line whose words are compared."""


def count_lines(diff: str) -> tuple[int, int]:
    """Return the numbers of added and removed lines."""
    lines = diff.split("\n")
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return added, removed


def render_diff(diff: str, limit: int | None = None) -> list[Line]:
    """Return the hunks of a diff as lines; `limit` cuts a long one and says how much is left."""
    lines = list(_render(neutralise(diff)))
    if limit is None or len(lines) <= limit:
        return lines
    hidden = count(len(lines) - limit, "more line")
    return [*lines[:limit], (("dim", f"       … {hidden}, Ctrl-O shows them"),)]


def _render(diff: str) -> Iterator[Line]:
    old = new = 0
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    begun = False
    for line in diff.split("\n"):
        if (hunk := _HUNK.fullmatch(line)) is not None:
            yield from _flush(removed, added)
            if begun:
                yield (("dim", "     ⋮"),)
            old, new, begun = int(hunk[1]), int(hunk[2]), True
        elif not begun or line.startswith(("diff ", "--- ", "+++ ", "\\")):
            continue
        elif line.startswith("-"):
            removed.append((old, line[1:]))
            old += 1
        elif line.startswith("+"):
            added.append((new, line[1:]))
            new += 1
        elif line.startswith(" "):
            yield from _flush(removed, added)
            yield (("dim", f"{new:>5}   {line[1:]}"),)
            old, new = old + 1, new + 1
    yield from _flush(removed, added)


def _flush(removed: list[tuple[int, str]], added: list[tuple[int, str]]) -> Iterator[Line]:
    """Yield the lines of one change and forget them."""
    pairs = len(removed) == len(added)
    for index, (number, text) in enumerate(removed):
        other = added[index][1] if pairs else ""
        yield (("removed", f"{number:>5} - "), *mark_words(text, other, "removed"))
    for index, (number, text) in enumerate(added):
        other = removed[index][1] if pairs else ""
        yield (("added", f"{number:>5} + "), *mark_words(text, other, "added"))
    removed.clear()
    added.clear()


def mark_words(text: str, other: str, style: str) -> Line:
    """Return a line with the words marked that the other version does not have."""
    if not other or max(len(text), len(other)) > LONGEST_COMPARED:
        return ((style, text),)
    words, others = _WORDS.findall(text), _WORDS.findall(other)
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < 0.4:
        return ((style, text),)
    spans: list[Span] = []
    for kind, start, end, _, _ in matcher.get_opcodes():
        piece = "".join(words[start:end])
        if piece:
            spans.append((style if kind == "equal" else f"changed-{style}", piece))
    return tuple(spans)
