"""Which files a pattern means: globs of scoped instructions, and lines of a `.gitignore`."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache

from trimtab.customize.reading import read_text

MOST_ALTERNATIVES = 64
_MEANING = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a path relative to the root is meant by one of the patterns."""
    return any(_compile(glob.removeprefix("./").lstrip("/")).fullmatch(path) for glob in globs)


def means_everything(globs: Sequence[str]) -> bool:
    return not globs or any(glob.strip() in ("**", "*", "**/*") for glob in globs)


@lru_cache(512)
def _compile(glob: str) -> re.Pattern[str]:
    try:
        return re.compile("|".join(map(_translate, expand_braces(glob))), re.DOTALL)
    except re.error:
        return re.compile(re.escape(glob))


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


def _translate(glob: str) -> str:
    if glob.endswith("/"):
        glob += "**"

    def piece(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith("[") and len(found) > 1:
            inside = found[1:-1].replace("\\", "\\\\")
            return f"[^/{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
        return _MEANING.get(found) or re.escape(found)

    return re.sub(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|.", piece, glob, flags=re.DOTALL)


class Ignored:
    """What the `.gitignore` of a folder leaves out; of its rules the last that matches decides."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, ".gitignore")
        text = read_text(path)[0] if os.path.exists(path) else ""
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        for line in text.split("\n"):
            rule = line.strip()
            if not rule or rule.startswith("#"):
                continue
            wanted = not rule.startswith("!")
            rule = rule.lstrip("!").rstrip("/")
            anywhere = "/" not in rule
            rule = rule.removeprefix("/")
            self._rules.append((wanted, _compile(f"**/{rule}" if anywhere else rule)))

    def covers(self, path: str) -> bool:
        """Whether a folder, named relative to this one, is left out."""
        for wanted, pattern in reversed(self._rules):
            if pattern.fullmatch(path):
                return wanted
        return False
