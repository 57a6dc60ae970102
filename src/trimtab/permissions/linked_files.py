"""Files that a rule forbids, under further names that they have (hard links)."""

import os
from collections.abc import Iterable

from trimtab.contracts.permission import Policy, Rule
from trimtab.permissions.denied_files import (
    denies_some_reads,
    denies_some_writes,
    find_linked,
    find_names,
    search,
)
from trimtab.permissions.paths import has_other_names, resolve
from trimtab.permissions.rules import to_globs


def find_linked_rule(rules: Iterable[Rule], kind: str, path: str, policy: Policy) -> Rule | None:
    """Return the rule that covers another name of a file.

    Nothing is searched for a file with one name, which most have. If there are too many files to
    find them all, the rule counts.
    """
    denies = denies_some_reads if kind == "read" else denies_some_writes
    wanted = list(filter(denies, rules))
    if not wanted or not has_other_names(path):
        return None
    about = os.stat(path)
    own = {(about.st_dev, about.st_ino)}
    for rule in wanted:
        for root in dict.fromkeys(map(resolve, (policy.cwd, *policy.roots))):
            there = search(root, [rule], policy.cwd)
            linked, complete = find_linked(there.found)
            if own & linked or not (there.complete and complete):
                return rule
    return None


def find_linked_globs(policy: Policy) -> tuple[str, ...]:
    """Return patterns for the further names of files that rules keep from being read."""
    rules = list(filter(denies_some_reads, policy.deny))
    if not rules:
        return ()
    found: list[str] = []
    for root in dict.fromkeys(map(resolve, (policy.cwd, *policy.roots))):
        if root != policy.temp:
            linked, _ = find_linked(search(root, rules, policy.cwd).found)
            found += find_names(root, linked).found if linked else ()
    return to_globs((Rule("read", path) for path in found), policy.cwd)
