"""Matches paths against the globs of instructions and the rules of a `.gitignore`.

Matching takes linear time, unlike the regular expressions of `contracts/globs.py`, because the
patterns come from folders that nobody has trusted.
"""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from trimtab.customize.reading import read_text

MAX_ALTERNATIVES = 64
ANY_DEPTH = "**"
EVERYTHING = (ANY_DEPTH, "*", "**/*")


def matches(path: str, globs: Sequence[str]) -> bool:
    """Return True if a path relative to the root matches a glob, and none that begins with `!`."""
    names = path.split("/")
    included, excluded = _partition(globs)
    return any(_matches(names, pattern) for glob in included for pattern in _split(glob)) and not (
        any(_matches(names, pattern) for glob in excluded for pattern in _split(glob))
    )


def matches_everything(globs: Sequence[str]) -> bool:
    included, excluded = _partition(globs)
    return not excluded and any(glob in EVERYTHING for glob in included)


def _partition(globs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the globs that include and those that exclude. Only the latter include the rest."""
    stripped = [glob.strip() for glob in globs]
    included = [glob for glob in stripped if not glob.startswith("!")]
    return included or [ANY_DEPTH], [glob[1:] for glob in stripped if glob.startswith("!")]


def _matches(names: list[str], pattern: tuple[str, ...]) -> bool:
    """Compare name by name. `ends` are the numbers of names that the parts so far can match."""
    ends = {0}
    for part in pattern:
        if part == ANY_DEPTH:
            ends = set(range(min(ends), len(names) + 1))
        else:
            ends = {at + 1 for at in ends if at < len(names) and fnmatchcase(names[at], part)}
        if not ends:
            return False
    return len(names) in ends


@lru_cache(512)
def _split(glob: str) -> tuple[tuple[str, ...], ...]:
    """Return the alternatives of a glob, each as its parts between the slashes."""
    glob = glob.strip().removeprefix("./").lstrip("/")
    return tuple(tuple(_parts(alternative)) for alternative in expand_braces(glob))


def _parts(glob: str) -> list[str]:
    parts: list[str] = []
    for part in (glob + ANY_DEPTH if glob.endswith("/") else glob).split("/"):
        if part != ANY_DEPTH and part.startswith(ANY_DEPTH):  # `**.ts` matches at any depth, too
            parts += [ANY_DEPTH, part[1:]]
        elif part != ANY_DEPTH or parts[-1:] != [ANY_DEPTH]:
            parts.append(part)
    return parts


def expand_braces(glob: str) -> list[str]:
    """Expand `a.{b,c}` to `a.b` and `a.c`, also nested, up to a limit."""
    done: list[str] = []
    waiting = [glob]
    while waiting and len(done) + len(waiting) <= MAX_ALTERNATIVES:
        current = waiting.pop()
        match = re.search(r"\{([^{}]*)\}", current)
        if match is None:
            done.append(current)
            continue
        before, after = current[: match.start()], current[match.end() :]
        waiting += [before + choice + after for choice in match[1].split(",")]
    return done + waiting


class GitIgnore:
    """The rules in the `.gitignore` of a folder; the last one that matches decides."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, ".gitignore")
        text = read_text(path)[0] if os.path.exists(path) else ""
        self._rules: list[tuple[bool, str]] = []
        for line in text.split("\n"):
            rule = line.strip()
            if not rule or rule.startswith("#"):
                continue
            ignores = not rule.startswith("!")
            rule = rule.lstrip("!").rstrip("/")
            anywhere = "/" not in rule
            rule = rule.removeprefix("/")
            self._rules.append((ignores, f"**/{rule}" if anywhere else rule))

    def ignores(self, path: str) -> bool:
        """Return True if a folder, relative to this one, is ignored."""
        for ignores, pattern in reversed(self._rules):
            if matches(path, (pattern,)):
                return ignores
        return False
