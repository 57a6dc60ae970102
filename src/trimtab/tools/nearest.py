"""Explains why a text was not found in a file, and shows the nearest text."""

import difflib
import re
from collections.abc import Callable
from unicodedata import normalize

MAX_SEARCHED = 2_000_000
"""Characters of a file that is searched."""
MAX_COMPARED = 3_000
"""Lines that are compared."""
MAX_SHOWN = 24
"""Lines of the diff that are shown."""

NUMBERED = "{name} contains the line numbers that view prints; leave them out."


def compose(text: str) -> str:
    return normalize("NFC", text)


REASONS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (
        "It differs from the file in white space at the ends of lines.",
        lambda text: re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE),
    ),
    (
        "It differs from the file in indentation or other white space.",
        lambda text: " ".join(text.split()),
    ),
    (
        "It contains backslash escapes where the file has the characters themselves.",
        lambda text: text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"'),
    ),
    (
        "It differs from the file in the kind of quotes or dashes.",
        lambda text: text.translate(
            str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--")
        ),
    ),
    ("It differs from the file in upper and lower case.", str.casefold),
    ("It differs from the file in how accents are joined to letters (NFC, NFD).", compose),
)


def explain(plain: str, old: str, name: str = "old_str") -> str:
    """Return the evident reason, if there is one, and a diff with the nearest lines.

    `name` is the model's name for its text.
    """
    if max(len(plain), len(old)) > MAX_SEARCHED:
        return "View that part of the file and copy it exactly."
    reason = find_reason(plain, old).replace("{name}", name)
    lines, wanted = plain.split("\n"), old.strip("\n").split("\n")
    start = nearest(lines, wanted)
    if start is None:
        return reason or "There is no similar text in the file: view the file again."
    found = lines[start : start + len(wanted)]
    shown = "\n".join(compare(wanted, found))
    return (
        f"{reason or 'The text in the file may differ from what you expect.'}\n"
        f"Nearest text is at lines {start + 1}-{start + len(found)} (- {name}, + file):\n{shown}"
    )


def find_reason(plain: str, old: str) -> str:
    if re.sub(r"^\d+\. ?", "", old, flags=re.MULTILINE) in plain:
        return NUMBERED
    return next((text for text, change in REASONS if change(old) in change(plain)), "")


def nearest(lines: list[str], wanted: list[str]) -> int | None:
    """Return the index of the lines that share most lines with the wanted ones."""
    keys = {line.strip() for line in wanted} - {""}
    hits = [line.strip() in keys for line in lines]
    width = min(len(wanted), len(lines))
    score = best = sum(hits[:width])
    start = 0
    for i in range(width, len(hits)):
        score += hits[i] - hits[i - width]
        if score > best:
            best, start = score, i - width + 1
    return start if best else nearest_line(lines, wanted)


def nearest_line(lines: list[str], wanted: list[str]) -> int | None:
    """Return the index of the first wanted line, found by the closest match of the longest one."""
    longest = max(range(len(wanted)), key=lambda i: len(wanted[i]))
    close = difflib.get_close_matches(wanted[longest], lines[:MAX_COMPARED], n=1)
    return max(0, lines.index(close[0]) - longest) if close else None


def compare(wanted: list[str], found: list[str]) -> list[str]:
    changes = list(difflib.unified_diff(wanted, found, lineterm="", n=1))[3:]
    return changes[:MAX_SHOWN] if changes else [f" {line}" for line in found[:MAX_SHOWN]]
