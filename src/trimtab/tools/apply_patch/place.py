"""Finds where the hunks of a patch belong in a file, and changes only the lines that differ."""

from collections.abc import Callable, Sequence

from trimtab.tools.apply_patch.patch import END_OF_FILE, Hunk
from trimtab.tools.diff import Hunk as Change
from trimtab.tools.nearest import explain
from trimtab.tools.splice import Mismatch, Splice, describe, splice, unwritable
from trimtab.tools.text import TextView, readable, views

DASHES = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014\u00a0", "''\"\"---- ")
READINGS: tuple[Callable[[str], str], ...] = (
    lambda line: line,
    str.rstrip,
    str.strip,
    lambda line: line.strip().translate(DASHES),
)
"""How lines are compared, the strictest way first: models lose white space and odd quotes."""

Edit = tuple[int, int, list[str]]
"""Lines from, to (not included), and what they become."""


class Unplaced(Exception):
    """A hunk that is nowhere in the file."""

    def __init__(self, number: int, wanted: Sequence[str]) -> None:
        self.number, self.wanted = number, wanted


def plan_update(data: bytes, hunks: Sequence[Hunk]) -> tuple[bytes, list[Change]] | Mismatch:
    """The file with all hunks applied, and what changes; every other byte is as it was."""
    refused: Mismatch | None = None
    lacking: TextView | None = None
    for view in views(data):
        if lacking is not None and not view.stands_for(lacking):
            continue
        lines = split(view.plain)
        try:
            edits = place_hunks(lines, hunks)
            return apply_edits(data, view, lines, edits)
        except Unplaced as unplaced:
            refused = refused or describe_unplaced(view, unplaced)
        except UnicodeEncodeError as error:
            refused, lacking = unwritable(view, error), view
    assert refused is not None  # there is always a view
    return refused


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
                raise Unplaced(number, [header])
            at = found + 1
        at = place(lines, hunk, at, number, edits)
    return edits


def place(lines: Sequence[str], hunk: Hunk, at: int, number: int, edits: list[Edit]) -> int:
    """Note what a hunk changes; gives the line behind it."""
    old = hunk.old
    if not old:
        start: int | None = at if hunk.headers and not hunk.ends_file else len(lines)
    elif hunk.ends_file:
        start = seek(lines, old, max(at, len(lines) - len(old)))
    else:
        start = seek(lines, old, at)
    if start is None and old and old[-1] == "" and hunk.lines[-1] == (" ", ""):
        # An empty line at the end of a hunk is more often the patch's than the file's.
        return place(lines, Hunk(lines=hunk.lines[:-1]), at, number, edits)
    if start is None:
        raise Unplaced(number, old)
    edits += changes_at(hunk, start)
    return start + len(old)


def changes_at(hunk: Hunk, start: int) -> list[Edit]:
    """The runs of lines that go and come. What only stays keeps its own bytes."""
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
    """The first place from a line on where the wanted lines stand, read ever less strictly."""
    for reading in READINGS:
        target = [reading(line) for line in wanted]
        mine = [reading(line) for line in lines[at:]]
        for index in range(len(mine) - len(target) + 1):
            if mine[index] == target[0] and mine[index : index + len(target)] == target:
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
        if begin > len(view.plain):  # behind a last line that has no newline
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


def describe_unplaced(view: TextView, unplaced: Unplaced) -> Mismatch:
    if seek(split(view.plain), unplaced.wanted, 0) is not None:
        text = (
            "Its lines are in the file, but further up than the hunk before it, or not at the end "
            f"where `{END_OF_FILE}` wants them: give hunks in the order of the file."
        )
    else:
        text = readable(explain(view.plain, "\n".join(unplaced.wanted), "patch"))
    return Mismatch(
        text=f"hunk {unplaced.number} does not match the file; nothing was changed. {text}",
        summary="Hunk does not match",
    )
