"""Finds the paths outside the allowed directories that a command names."""

import os
from collections.abc import Iterable, Iterator

from trimtab.contracts.permission import Policy
from trimtab.permissions.file_commands import (
    find_copied,
    holds_secret,
    is_named,
    works_on_files,
)
from trimtab.permissions.paths import PUBLIC, is_inside
from trimtab.permissions.patterns import find_files, matches_hidden
from trimtab.permissions.read_folders import find_granted, is_secret
from trimtab.permissions.rules import matches_path
from trimtab.permissions.shell.verdict.analysis import Analysis
from trimtab.permissions.tracked_files import find_root

TERMINALS = ("/dev/tty", "/dev/null", "/dev/stdout", "/dev/stderr")


def find_places_elsewhere(analysis: Analysis, policy: Policy) -> Iterator[tuple[str, bool]]:
    """Yield what programs that only work on files are given elsewhere, and if that is copied.

    A rule for such a program reaches no further than --allow-all-tools.
    """
    working = list(filter(works_on_files, analysis.commands))
    if policy.allow_all_paths or not working:
        return
    sources = find_copied(working, analysis.touched)
    links = all(found.base == "ln" for found in working)  # what is linked is still read there
    alone = all(found.read_only or works_on_files(found) for found in analysis.commands)
    roots = policy.roots
    if any(found.base.startswith("git ") for found in working):
        own = find_root(policy.cwd) or policy.cwd
        roots = (*roots, own, *_find_new_checkouts(analysis, os.path.dirname(own)))
    hidden = matches_hidden(analysis)
    for pattern in analysis.touched:
        copied = pattern in sources and (links or not holds_secret(pattern))
        inside = (*roots, *policy.readable, *PUBLIC) if copied else roots
        for path in find_files(pattern, hidden=hidden):
            named = alone or is_secret(path) or is_named(pattern, working)
            if named and not (
                is_inside(path, inside) or path in TERMINALS or _may_write(path, policy)
            ):
                yield path, copied


def _find_new_checkouts(analysis: Analysis, beside: str) -> Iterator[str]:
    """Yield the new folders beside the repository in which `git worktree` puts what it holds."""
    makers = [found for found in analysis.commands if found.base == "git worktree"]
    for path in analysis.touched if makers else ():
        real = os.path.realpath(path)
        if os.path.dirname(real) == beside and not os.path.lexists(path) and is_named(path, makers):
            yield real


def _may_write(path: str, policy: Policy) -> bool:
    """Return True if a rule that names places allows to write a path."""
    named = (rule for rule in policy.allow if rule.argument)
    return any(matches_path(rule, "write", path, policy.cwd) for rule in named)


def find_outside(analysis: Analysis, named: Iterable[str], policy: Policy) -> Iterator[str]:
    """Yield the paths that a command names and that nothing allows to be read."""
    hidden, inside = matches_hidden(analysis), (*policy.roots, *policy.readable, *PUBLIC)
    for pattern in named:
        for path in find_files(pattern, hidden=hidden):
            if not is_inside(path, inside) and not find_granted((path,), policy):
                yield path
