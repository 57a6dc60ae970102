"""Which files a pattern means: globs of scoped instructions, and lines of a `.gitignore`."""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from trimtab.customize.reading import read_text

MOST_ALTERNATIVES = 64
ANY_DEPTH = "**"
EVERYTHING = (ANY_DEPTH, "*", "**/*")


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a path relative to the root is meant by one of the patterns, and by none with `!`.

    Takes time in proportion to path and pattern: patterns come from folders nobody trusts.
    """
    names = path.split("/")
    wanted, unwanted = _divide(globs)
    return any(_fits(names, pattern) for glob in wanted for pattern in _split(glob)) and not any(
        _fits(names, pattern) for glob in unwanted for pattern in _split(glob)
    )


def means_everything(globs: Sequence[str]) -> bool:
    wanted, unwanted = _divide(globs)
    return not unwanted and any(glob in EVERYTHING for glob in wanted)


def _divide(globs: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is meant and what is not; where only the latter is said, all the rest is meant."""
    stripped = [glob.strip() for glob in globs]
    wanted = [glob for glob in stripped if not glob.startswith("!")]
    return wanted or [ANY_DEPTH], [glob[1:] for glob in stripped if glob.startswith("!")]


def _fits(names: list[str], pattern: tuple[str, ...]) -> bool:
    """Compares name by name; `ends` holds how many names the pattern so far may have taken."""
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
    """The alternatives of a pattern, each as its parts between the slashes."""
    glob = glob.strip().removeprefix("./").lstrip("/")
    return tuple(tuple(_parts(one)) for one in expand_braces(glob))


def _parts(glob: str) -> list[str]:
    parts: list[str] = []
    for part in (glob + ANY_DEPTH if glob.endswith("/") else glob).split("/"):
        if part != ANY_DEPTH and part.startswith(ANY_DEPTH):  # `**.ts` means any depth, too
            parts += [ANY_DEPTH, part[1:]]
        elif part != ANY_DEPTH or parts[-1:] != [ANY_DEPTH]:
            parts.append(part)
    return parts


def expand_braces(glob: str) -> list[str]:
    """`a.{b,c}` as `a.b` and `a.c`; nested ones too, up to a limit."""
    done: list[str] = []
    waiting = [glob]
    while waiting and len(done) + len(waiting) <= MOST_ALTERNATIVES:
        current = waiting.pop()
        match = re.search(r"\{([^{}]*)\}", current)
        if match is None:
            done.append(current)
            continue
        before, after = current[: match.start()], current[match.end() :]
        waiting += [before + choice + after for choice in match[1].split(",")]
    return done + waiting


class Ignored:
    """What the `.gitignore` of a folder leaves out; of its rules the last that matches decides."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, ".gitignore")
        text = read_text(path)[0] if os.path.exists(path) else ""
        self._rules: list[tuple[bool, str]] = []
        for line in text.split("\n"):
            rule = line.strip()
            if not rule or rule.startswith("#"):
                continue
            wanted = not rule.startswith("!")
            rule = rule.lstrip("!").rstrip("/")
            anywhere = "/" not in rule
            rule = rule.removeprefix("/")
            self._rules.append((wanted, f"**/{rule}" if anywhere else rule))

    def covers(self, path: str) -> bool:
        """Whether a folder, named relative to this one, is left out."""
        for wanted, pattern in reversed(self._rules):
            if matches(path, (pattern,)):
                return wanted
        return False
