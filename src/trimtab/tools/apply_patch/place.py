"""Locates the hunks of a patch in a file, and changes only the lines that differ."""

from collections.abc import Callable, Sequence

from trimtab.tools.apply_patch.patch import END_OF_FILE, Hunk
from trimtab.tools.diff import Hunk as Change
from trimtab.tools.nearest import explain
from trimtab.tools.splice import Mismatch, Splice, describe, splice, unwritable
from trimtab.tools.text import TextView, readable, views

DASHES = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014\u00a0", "''\"\"---- ")
NORMALISATIONS: tuple[Callable[[str], str], ...] = (
    lambda line: line,
    str.rstrip,
    str.strip,
    lambda line: line.strip().translate(DASHES),
)
"""Applied to lines before they are compared, the strictest first: models lose white space."""

Edit = tuple[int, int, list[str]]
"""The first line, the line after the last, and the new lines."""


class HunkNotFound(Exception):
    """Raised when a hunk is not in the file."""

    def __init__(self, number: int, wanted: Sequence[str]) -> None:
        self.number, self.wanted = number, wanted


def plan_update(data: bytes, hunks: Sequence[Hunk]) -> tuple[bytes, list[Change]] | Mismatch:
    """Return the file with all hunks applied, and the changes; other bytes stay unchanged."""
    mismatch: Mismatch | None = None
    unwritable_view: TextView | None = None
    for view in views(data):
        if unwritable_view is not None and not view.can_replace(unwritable_view):
            continue
        lines = split(view.plain)
        try:
            edits = place_hunks(lines, hunks)
            return apply_edits(data, view, lines, edits)
        except HunkNotFound as missing:
            mismatch = mismatch or describe_missing(view, missing)
        except UnicodeEncodeError as error:
            mismatch, unwritable_view = unwritable(view, error), view
    assert mismatch is not None  # there is always a view
    return mismatch


def split(plain: str) -> list[str]:
    lines = plain.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def place_hunks(lines: Sequence[str], hunks: Sequence[Hunk]) -> list[Edit]:
    edits: list[Edit] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        for header in hunk.headers:
            found = seek(lines, [header], at)
            if found is None:
                raise HunkNotFound(number, [header])
            at = found + 1
        at = place(lines, hunk, at, number, edits)
    return edits


def place(lines: Sequence[str], hunk: Hunk, at: int, number: int, edits: list[Edit]) -> int:
    """Add the edits of a hunk; return the index of the line after it."""
    old = hunk.old
    if not old:
        start: int | None = at if hunk.headers and not hunk.ends_file else len(lines)
    elif hunk.ends_file:
        start = seek(lines, old, max(at, len(lines) - len(old)))
    else:
        start = seek(lines, old, at)
    if start is None and old and old[-1] == "" and hunk.lines[-1] == (" ", ""):
        # An empty line at the end of a hunk more often belongs to the patch than to the file.
        return place(lines, Hunk(lines=hunk.lines[:-1]), at, number, edits)
    if start is None:
        raise HunkNotFound(number, old)
    edits += changes_at(hunk, start)
    return start + len(old)


def changes_at(hunk: Hunk, start: int) -> list[Edit]:
    """Return the runs of removed and added lines. Context lines keep their bytes."""
    edits: list[Edit] = []
    line, first, added = start, start, list[str]()
    for mark, text in (*hunk.lines, (" ", "")):
        if mark == " ":
            if line > first or added:
                edits.append((first, line, added))
            line, first, added = line + 1, line + 1, []
        elif mark == "-":
            line += 1
        else:
            added.append(text)
    return edits


def seek(lines: Sequence[str], wanted: Sequence[str], at: int) -> int | None:
    """Return the first position of the wanted lines from a line on, compared ever less strictly."""
    for normalise in NORMALISATIONS:
        target = [normalise(line) for line in wanted]
        candidates = [normalise(line) for line in lines[at:]]
        for index in range(len(candidates) - len(target) + 1):
            # The first line is compared first, because a slice copies.
            if candidates[index] == target[0] and candidates[index : index + len(target)] == target:
                return at + index
    return None


def apply_edits(
    data: bytes, view: TextView, lines: Sequence[str], edits: Sequence[Edit]
) -> tuple[bytes, list[Change]]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    changes: list[Change] = []
    for first, last, added in reversed(edits):
        begin, end = starts[first], min(starts[last], len(view.plain))
        text = "".join(f"{line}\n" for line in added)
        if begin > len(view.plain):  # after a last line without a newline
            begin, text = len(view.plain), "\n" + text[:-1]
        elif end == len(view.plain) and not view.plain.endswith("\n") and end > begin:
            text = text[:-1]
        old = view.plain[begin:end]
        if old == text:
            continue
        made: Splice = splice(data, view, begin, (old, text))
        data = made.data
        changes.append(describe(view.plain, begin, end, text))
    return data, changes[::-1]


def describe_missing(view: TextView, missing: HunkNotFound) -> Mismatch:
    if seek(split(view.plain), missing.wanted, 0) is not None:
        text = (
            "Its lines are in the file, but above the previous hunk, or not at the end as "
            f"`{END_OF_FILE}` requires: give hunks in the order of the file."
        )
    else:
        text = readable(explain(view.plain, "\n".join(missing.wanted), "patch"))
    return Mismatch(
        text=f"hunk {missing.number} does not match the file; nothing was changed. {text}",
        summary="Hunk does not match",
    )
