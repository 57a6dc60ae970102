"""Finds the files that rules keep from being read or written, to keep commands from them."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

import msgspec

from trimtab.contracts.permission import Policy, Rule
from trimtab.permissions.exclusions import compile_pattern
from trimtab.permissions.paths import fold, is_inside, resolve
from trimtab.permissions.read_folders import is_secret
from trimtab.permissions.rules import names_place

MAX_ENTRIES = 500_000
MAX_SECONDS = 2.0
_GIT_OBJECTS = ".git/objects"
"""A folder of git in which no name can match a rule."""


class DeniedFiles(msgspec.Struct, frozen=True):
    """The files that were found; `complete` is False if a limit ended the search."""

    found: tuple[str, ...]
    complete: bool = True


class DeniedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The files that commands must not reach, and the folders that were searched for them."""

    paths: tuple[str, ...]
    roots: tuple[str, ...]
    problem: str = ""
    """The reason why not everything is known; then nothing can be kept from commands for sure."""


def denies_some_reads(rule: Rule) -> bool:
    """Return True for a rule that keeps some paths, but not all, from being read."""
    return rule.kind == "read" and rule.argument is not None


def denies_some_writes(rule: Rule) -> bool:
    """Return True for a rule that keeps some paths, but not all, from being written.

    What content exclusion keeps from being written it keeps from being read, too.
    """
    return rule.kind == "write" and rule.argument is not None and not rule.root


def find_denied_reads(policy: Policy, moved: Iterable[str] = ()) -> DeniedPaths:
    """Search the folders of a policy for everything that its rules keep from being read.

    `moved` are the present names of files that the rules kept before; further names of a file (hard
    links) count, too.
    """
    return _find_denied(policy, list(filter(denies_some_reads, policy.deny)), moved)


def find_denied_writes(policy: Policy, moved: Iterable[str] = ()) -> DeniedPaths:
    """Search the folders of a policy for everything that its rules keep from being written."""
    return _find_denied(policy, list(filter(denies_some_writes, policy.deny)), moved)


def _find_denied(policy: Policy, rules: Sequence[Rule], moved: Iterable[str]) -> DeniedPaths:
    if not rules:
        return DeniedPaths(paths=(), roots=policy.roots)
    named, _ = _compile(rules, policy.cwd)
    denied = [path for path in (*named, *moved) if os.path.lexists(path)]
    roots = [resolve(policy.cwd)]
    roots += [root for root in policy.roots if not _is_below(root, roots[0])]
    # Many files come and go in the temp folder: fenced commands do not read it then.
    roots = [root for root in roots if root != policy.temp]
    for root in roots:
        here = search(root, rules, policy.cwd)
        if not here.complete:
            problem = f"{root} is too large to find all files that rules keep commands from"
            return DeniedPaths(paths=(), roots=(), problem=problem)
        denied += here.found
    linked, complete = find_linked(denied)
    if not complete:
        return DeniedPaths(
            paths=(), roots=(), problem="rules forbid too many files to find them all"
        )
    for root in roots if linked else ():
        here = find_names(root, linked)
        if not here.complete:
            problem = f"{root} is too large to find all names of files that rules forbid"
            return DeniedPaths(paths=(), roots=(), problem=problem)
        denied += here.found
    return DeniedPaths(paths=tuple(dict.fromkeys(denied)), roots=tuple(roots))


def find_secrets(policy: Policy) -> DeniedPaths:
    """Search folders that rules allow to be read for the secrets in them, which may not.

    A folder that has become a link, or is too large to be searched, is left out of `roots`.
    """
    roots: list[str] = []
    secrets: list[str] = []
    for folder in policy.granted:
        if resolve(folder) != folder:
            continue
        found: list[str] = []
        if _walk_through(folder, _test_names(folder), found, MAX_ENTRIES, MAX_SECONDS):
            roots.append(folder)
            secrets += [path for path in found if not is_inside(path, policy.roots)]
    return DeniedPaths(paths=tuple(secrets), roots=tuple(roots))


def search(
    folder: str,
    rules: Iterable[Rule],
    cwd: str,
    max_entries: int = MAX_ENTRIES,
    max_seconds: float = MAX_SECONDS,
) -> DeniedFiles:
    """Return the paths in a folder, itself included, that rules for paths cover.

    A denied folder stands for everything in it. Links are not followed, but one that leads to
    something denied is found.
    """
    place = resolve(folder)
    named, tests = _compile(list(rules), cwd)
    found = [path for path in named if _is_below(path, place) and os.path.lexists(path)]
    if not tests:
        return DeniedFiles(tuple(found))
    complete = _walk_through(
        place, lambda path: any(test(path) for test in tests), found, max_entries, max_seconds
    )
    return DeniedFiles(tuple(dict.fromkeys(found)), complete=complete)


def find_linked(paths: Iterable[str]) -> tuple[set[tuple[int, int]], bool]:
    """Return the identities of those files, also below folders, that have more than one name.

    The second value is False if there are too many files to look at.
    """
    found: set[tuple[int, int]] = set()
    deadline = time.monotonic() + MAX_SECONDS
    waiting = list(paths)
    for count, path in enumerate(waiting):  # grows on the way
        if count > MAX_ENTRIES or (count % 256 == 255 and time.monotonic() > deadline):
            return found, False
        with suppress(OSError):
            about = os.stat(path)
            if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
                found.add((about.st_dev, about.st_ino))
            elif stat.S_ISDIR(about.st_mode) and not os.path.islink(path):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if not entry.is_symlink()]
    return found, True


def find_names(folder: str, wanted: AbstractSet[tuple[int, int]]) -> DeniedFiles:
    """Return the names in a folder of the files with these identities."""
    inodes = {inode for _, inode in wanted}
    found: list[str] = []
    deadline, count = time.monotonic() + MAX_SECONDS, 0
    folders = [resolve(folder)]
    while folders:
        if count > MAX_ENTRIES or time.monotonic() > deadline:
            return DeniedFiles(tuple(found), complete=False)
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.inode() in inodes:
                    about = entry.stat(follow_symlinks=False)
                    found += [entry.path] if (about.st_dev, about.st_ino) in wanted else []
    return DeniedFiles(tuple(found))


def _test_names(folder: str) -> Callable[[str], bool]:
    """Return a test for the names of secrets; what is below one is not looked at, so names do."""
    return lambda path: path != folder and is_secret(os.path.basename(path))


def _walk_through(
    place: str,
    is_denied: Callable[[str], bool],
    found: list[str],
    max_entries: int,
    max_seconds: float,
) -> bool:
    """Add the denied paths in a folder to `found`; return False if a limit ended the search."""
    deadline = time.monotonic() + max_seconds
    for count, _ in enumerate(_walk(place, is_denied, found)):
        if count >= max_entries or (count % 256 == 0 and time.monotonic() > deadline):
            return False
    return True


def _walk(place: str, is_denied: Callable[[str], bool], found: list[str]) -> Iterator[str]:
    """Yield every path below a folder, and add the denied ones to `found`."""
    waiting = [place]
    while waiting:
        path = waiting.pop()
        yield path
        if is_denied(path):
            found.append(path)
            continue
        for entry in list_entries(path, found):
            if entry.is_symlink():
                yield entry.path
                if is_denied(entry.path) or is_denied(resolve(entry.path)):
                    found.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                if not entry.path.endswith(_GIT_OBJECTS):
                    waiting.append(entry.path)
            else:
                yield entry.path
                if is_denied(entry.path):
                    found.append(entry.path)


def list_entries(path: str, found: list[str]) -> list[os.DirEntry[str]]:
    """Return what is in a folder; one of ours that is closed to us is denied as a whole.

    The search cannot see into it, but a command may open it first.
    """
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except PermissionError:
        with suppress(OSError):
            found += [path] if os.stat(path).st_uid == os.geteuid() else []
    except OSError:  # a file, or gone
        pass
    return []


def _compile(rules: Sequence[Rule], cwd: str) -> tuple[list[str], list[Callable[[str], bool]]]:
    """Return the paths that rules name in full, and tests for names and patterns."""
    named: list[str] = []
    tails: list[str] = []
    patterns: dict[str, list[str]] = {}
    for rule in rules:
        argument = rule.argument or ""
        wanted = os.path.normpath(os.path.expanduser(argument))
        if rule.root:
            patterns.setdefault(rule.root, []).append(argument)
        elif os.path.isabs(wanted) or names_place(wanted):
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
    together = "|".join(f"(?:{compile_pattern(pattern).pattern})" for pattern in patterns)
    matches = re.compile(together, re.IGNORECASE | re.DOTALL).fullmatch
    return lambda path: path.startswith(start) and matches(path, len(start)) is not None


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
