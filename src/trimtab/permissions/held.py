"""Finds what rules hold back in a folder, so that it is not read along with everything else."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from trimtab.contracts.permission import Rule
from trimtab.permissions.exclusions import compile_pattern
from trimtab.permissions.paths import fold, resolve

MOST = 100_000
SECONDS = 0.25
_NO_FILES = ".git/objects"
"""A folder of git in which nothing has a name that a rule could mean."""


class Survey(msgspec.Struct, frozen=True):
    """What was found, and whether everything was looked at."""

    found: tuple[str, ...]
    complete: bool = True


def holds_back(rule: Rule) -> bool:
    """Whether a rule that denies keeps some paths, but not all, from being read."""
    return rule.kind == "read" and rule.argument is not None


def survey(
    folder: str, rules: Iterable[Rule], cwd: str, *, most: int = MOST, seconds: float = SECONDS
) -> Survey:
    """The paths in a folder, itself included, that rules hold back; of a folder not what is in it.

    Links are not followed, but one that leads to something held back is found.
    """
    place = resolve(folder)
    named, tests = _compile([rule for rule in rules if holds_back(rule)], cwd)
    found = [path for path in named if _is_below(path, place) and os.path.lexists(path)]
    if not tests:
        return Survey(tuple(found))
    until = time.monotonic() + seconds
    walk = _walk(place, lambda path: any(test(path) for test in tests), found)
    for count, _ in enumerate(walk):
        if count >= most or (count % 256 == 0 and time.monotonic() > until):
            return Survey(tuple(dict.fromkeys(found)), complete=False)
    return Survey(tuple(dict.fromkeys(found)))


def _walk(place: str, is_held: Callable[[str], bool], found: list[str]) -> Iterator[str]:
    """Go through a folder and note what is held back; gives every path that was looked at."""
    waiting = [place]
    while waiting:
        path = waiting.pop()
        yield path
        if is_held(path):
            found.append(path)
            continue
        try:
            with os.scandir(path) as entries:
                inner = list(entries)
        except OSError:  # a file, or nobody may read it
            continue
        for entry in inner:
            if entry.is_symlink():
                yield entry.path
                if is_held(entry.path) or is_held(resolve(entry.path)):
                    found.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                if not entry.path.endswith(_NO_FILES):
                    waiting.append(entry.path)
            else:
                yield entry.path
                if is_held(entry.path):
                    found.append(entry.path)


def _compile(rules: Sequence[Rule], cwd: str) -> tuple[list[str], list[Callable[[str], bool]]]:
    """Paths that rules name in full, and tests for what they describe by a part or a pattern."""
    named: list[str] = []
    tails: list[str] = []
    patterns: dict[str, list[str]] = {}
    for rule in rules:
        argument = rule.argument or ""
        wanted = os.path.normpath(os.path.expanduser(argument))
        if rule.root:
            patterns.setdefault(rule.root, []).append(argument)
        elif os.path.isabs(wanted) or wanted.split(os.sep)[0] == os.pardir:
            named.append(resolve(os.path.join(cwd, wanted)))
        else:
            tails.append(os.sep + fold(wanted))
    tests: list[Callable[[str], bool]] = []
    if tails:
        ends = tuple(tails)
        tests.append(lambda path: fold(path).endswith(ends))
    tests += [_test_below(root, given) for root, given in patterns.items()]
    return named, tests


def _test_below(root: str, patterns: Sequence[str]) -> Callable[[str], bool]:
    start = root.rstrip(os.sep) + os.sep
    together = "|".join(f"(?:{compile_pattern(one).pattern})" for one in patterns)
    matches = re.compile(together, re.IGNORECASE | re.DOTALL).fullmatch
    return lambda path: path.startswith(start) and matches(path, len(start)) is not None


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
