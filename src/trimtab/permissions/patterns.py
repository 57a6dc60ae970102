"""The files that the patterns in a command match, as the shell expands them."""

import re
from glob import iglob
from itertools import islice

from trimtab.permissions.shell.verdict.analysis import Analysis

MAX_FILES = 1000
"""The number of files of a pattern that are judged by name; the fence holds for the others."""


def find_files(path: str, *, hidden: bool) -> list[str]:
    """Return a path, and the files there are if it is a pattern, up to a limit."""
    if not any(character in path for character in "*?["):
        return [path]
    # Python knows neither `[^a]` nor `[[:alpha:]]`.
    pattern = re.sub(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]", _widen, path)
    if hidden:  # with the same settings, capital letters may not matter
        pattern = re.sub(
            r"(?<!\[)[A-Za-z](?![^\[]*\])", lambda m: f"[{m[0].swapcase()}{m[0]}]", pattern
        )
    return [path, *islice(iglob(pattern, include_hidden=hidden, recursive=hidden), MAX_FILES)]


def _widen(match: re.Match[str]) -> str:
    """Return what Python can match instead of a set of characters: the same, or any of them."""
    return "?" if re.search(r"\[[:.=]", match[0][1:]) else match[0].replace("[^", "[!", 1)


def matches_hidden(analysis: Analysis) -> bool:
    """Return True if a script may have patterns match names that begin with a dot."""
    return any(found.base in ("shopt", "set") for found in analysis.commands)
