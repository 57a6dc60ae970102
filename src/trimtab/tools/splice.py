"""Replaces text in the bytes of a file, and leaves every other byte unchanged."""

import re

import msgspec

from trimtab.tools.diff import CONTEXT, Hunk
from trimtab.tools.text import TextView, readable, views

NO_FINAL_NEWLINE = "\n\\ No newline at end of file"
MAX_LISTED = 20


class Splice(msgspec.Struct, frozen=True, kw_only=True):
    """A possible edit: the new bytes of the file, and the changed lines."""

    data: bytes
    hunk: Hunk


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why an edit is impossible, in full and in short."""

    text: str
    summary: str


def plan_edit(data: bytes, old: str, new: str) -> Splice | Mismatch:
    """Find `old` in the text of the file and replace it by `new`.

    Newlines are normalised for the comparison. The bytes between the first and the last line that
    differ are replaced, in the encoding of the file and with the same newlines.
    """
    old, new = normalise(old), normalise(new)
    if old == new:
        return Mismatch(
            text="old_str and new_str are the same: nothing to change.", summary="No changes"
        )
    mismatch: Mismatch | None = None
    unwritable_view: TextView | None = None
    for view in views(data):
        if unwritable_view is not None and not view.can_replace(unwritable_view):
            continue
        positions = find_all(view.plain, old)
        if len(positions) > 1:
            return ambiguous(view.plain, positions)
        if positions:
            try:
                return splice(data, view, positions[0], (old, new))
            except UnicodeEncodeError as error:
                mismatch, unwritable_view = unwritable(view, error), view
        elif mismatch is None:
            mismatch = unmatched(view.plain, old)
    assert mismatch is not None  # there is always a view
    return mismatch


def find_all(plain: str, old: str) -> list[int]:
    """Return the positions of `old`, also overlapping ones. "" is found in an empty file only."""
    if not old:
        return [] if plain else [0]
    positions = []
    at = plain.find(old)
    while at >= 0:
        positions.append(at)
        at = plain.find(old, at + 1)
    return positions


def splice(data: bytes, view: TextView, at: int, change: tuple[str, str]) -> Splice:
    old, new = change
    lead, trail = common_lines(old, new)
    start, end = at + lead, at + len(old) - trail
    middle = new[lead : len(new) - trail]
    raw_start, raw_end = view.raw_span(start, end)
    styled = restyle(middle, view.raw, raw_start, raw_end)
    first, last = view.byte_span(raw_start, raw_end)
    return Splice(
        data=data[:first] + styled.encode(view.encoding) + data[last:],
        hunk=describe(view.plain, start, end, middle),
    )


def common_lines(old: str, new: str) -> tuple[int, int]:
    """Return the length of the common lines at the beginning, and of those at the end."""
    before, after = old.split("\n"), new.split("\n")
    lead = common_prefix(before[:-1], after[:-1])
    trail = common_prefix(before[lead:][::-1], after[lead:][::-1])
    return (
        sum(len(line) + 1 for line in before[:lead]),
        len("\n".join(before[len(before) - trail :])),
    )


def restyle(text: str, raw: str, start: int, end: int) -> str:
    """Give a text the newlines of the text that it replaces, one by one, or of its neighbours."""
    if "\n" not in text:
        return text
    styles = re.findall("\r\n|\r|\n", raw[start:end]) or [neighbouring_newline(raw, start)]
    styled = text
    if set(styles) != {"\n"}:
        lines = text.split("\n")
        ends = [styles[min(i, len(styles) - 1)] for i in range(len(lines) - 1)]
        styled = "".join(line + newline for line, newline in zip(lines, [*ends, ""], strict=True))
    # A separate newline must not become a pair with the character next to it.
    if styled.startswith("\n") and raw[start - 1 : start] == "\r":
        styled = "\r" + styled
    if styled.endswith("\r") and raw[end : end + 1] == "\n":
        styled += "\n"
    return styled


def neighbouring_newline(raw: str, at: int) -> str:
    """Return the last newline before a position, else the first after it, else a line feed."""
    before = max(raw.rfind("\n", 0, at), raw.rfind("\r", 0, at))
    if before < 0:
        found = re.compile("\r\n|\r|\n").search(raw, at)
        return found.group() if found else "\n"
    return "\r\n" if raw[before - 1 : before + 1] == "\r\n" else raw[before]


def describe_change(before: str, after: str) -> Hunk:
    """Return the difference of two texts, from the first line that differs to the last."""
    old, new = normalise(before), normalise(after)
    lead, trail = common_lines(old, new)
    return describe(old, lead, len(old) - trail, new[lead : len(new) - trail])


def describe(plain: str, start: int, end: int, middle: str) -> Hunk:
    """Return the change in whole lines, with some lines of context."""
    top, bottom = start, end - 1
    for _ in range(CONTEXT + 1):
        top = plain.rfind("\n", 0, top)
        if top < 0:
            break
    for _ in range(CONTEXT + 1):
        bottom = plain.find("\n", bottom + 1)
        if bottom < 0:
            break
    top, bottom = top + 1, bottom if bottom >= 0 else len(plain)
    old = split_lines(readable(plain[top:bottom]), bottom == len(plain))
    changed = readable(plain[top:start]) + middle + readable(plain[end:bottom])
    new = split_lines(changed, bottom == len(plain))
    lead = common_prefix(old, new)
    trail = common_prefix(old[lead:][::-1], new[lead:][::-1])
    return Hunk(
        line=plain.count("\n", 0, top) + 1 + lead,
        removed=old[lead : len(old) - trail],
        added=new[lead : len(new) - trail],
        above=old[max(0, lead - CONTEXT) : lead],
        below=old[len(old) - trail :][:CONTEXT],
    )


def split_lines(text: str, ends_file: bool) -> list[str]:
    lines = text.split("\n")
    if ends_file and lines[-1] == "":
        lines.pop()
    elif ends_file:
        lines[-1] += NO_FINAL_NEWLINE
    return lines


def common_prefix(old: list[str], new: list[str]) -> int:
    count = 0
    for old_line, new_line in zip(old, new, strict=False):
        if old_line != new_line:
            break
        count += 1
    return count


def normalise(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def ambiguous(plain: str, positions: list[int]) -> Mismatch:
    lines = [plain.count("\n", 0, at) + 1 for at in positions[:MAX_LISTED]]
    listed = ", ".join(map(str, lines)) + (", …" if len(positions) > MAX_LISTED else "")
    return Mismatch(
        text=f"old_str was found {len(positions)} times, at lines {listed}. Nothing was changed. "
        "Add neighbouring lines to old_str, so that it is found once.",
        summary="Multiple matches found",
    )


def unmatched(plain: str, old: str) -> Mismatch:
    if not old:
        return Mismatch(
            text="old_str is empty, but the file is not. Give the text to replace; to insert, "
            "repeat a neighbouring line in both old_str and new_str.",
            summary="No match found",
        )
    from trimtab.tools.nearest import explain

    return Mismatch(
        text=f"No match found for old_str; nothing was changed. {readable(explain(plain, old))}",
        summary="No match found",
    )


def unwritable(view: TextView, error: UnicodeEncodeError) -> Mismatch:
    char = error.object[error.start : error.start + 1]
    return Mismatch(
        text=f"The file is encoded as {view.encoding}, which has no character {char!r}; nothing "
        "was changed. Use other characters in new_str, or convert the file first (iconv).",
        summary="Character not in the file's encoding",
    )
