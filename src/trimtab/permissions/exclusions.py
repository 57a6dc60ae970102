"""Content that is excluded: patterns for paths below a folder, as they stand in rules that deny.

They are read as GitHub reads them: one without a slash in front counts in every folder, `*` is a
part of a name and `**` any folders, case does not matter, and a folder stands for all it holds.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from trimtab.contracts.globs import to_regex


@lru_cache(1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return an expression for paths below the root of a pattern. Raises `re.error`."""
    plain = re.sub(r"(?<=[^/])/(\*\*)?$", "", pattern)
    anywhere = not plain.startswith(("/", "**/"))
    body = ("**/" if anywhere else "") + plain.lstrip("/")
    return re.compile(to_regex(body) + "(?:/.*)?", re.IGNORECASE | re.DOTALL)


def is_excluded(path: str, root: str, pattern: str) -> bool:
    """Return True if a pattern that counts from a root covers an absolute path."""
    start = root.rstrip(os.sep) + os.sep
    if not path.startswith(start):
        return False
    return compile_pattern(pattern).fullmatch(path[len(start) :]) is not None


def to_ignored(pattern: str, root: str, cwd: str) -> Iterator[str]:
    """The same as patterns for a search that begins in a directory, or names places in full."""
    plain = pattern.removesuffix("/")
    if not plain.startswith("/"):
        yield plain if plain.startswith("**/") else f"**/{plain}"
        return
    base = root.rstrip(os.sep)
    yield f"**{escape(base)}{plain}"
    if f"{cwd}{os.sep}".startswith(base + os.sep):
        folders = [part for part in cwd[len(base) :].split(os.sep) if part]
        for rest in _descend(plain[1:].split("/"), folders):
            yield "/" + "/".join(rest)


def _descend(pattern: Sequence[str], folders: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the rest of a pattern in a folder further down; `**` if the folder itself matches."""
    if not folders:
        if pattern:
            yield pattern
        return
    if not pattern:
        yield ["**"]
    elif pattern[0] == "**":
        yield from _descend(pattern[1:], folders)
        yield from _descend(pattern, folders[1:])
    elif re.fullmatch(to_regex(pattern[0]), folders[0], re.IGNORECASE):
        yield from _descend(pattern[1:], folders[1:])


def escape(path: str) -> str:
    """A path as a pattern that means just it."""
    return re.sub(r"([*?\[\]{}!\\])", r"\\\1", path)
