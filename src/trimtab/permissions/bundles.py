"""Bundles of rules that a person can allow with one answer: commands that belong together."""

import os
from collections.abc import Container, Sequence
from functools import lru_cache

import msgspec

from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import generalise, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.file_commands import changes_named_files

CHECKS = "the project's own commands"
EVERYDAY = "everyday work on this project"
EVERYDAY_PARTS = ("everyday work with git", "looking at GitHub")
"""Bundles of every project that belong to everyday work, with changes of files and its commands."""


class Bundle(msgspec.Struct, frozen=True):
    """Rules, and what they allow as a person is told."""

    title: str
    rules: tuple[str, ...]
    parts: tuple[str, ...] = ()
    """The titles of the bundles that it is made of."""


FILES = Bundle("every change of files here", ("write",))


def find_bundle(
    command: str,
    suggested: Sequence[str],
    checks: Sequence[str] | None,
    policy: Policy,
    offered: Container[str] = (),
) -> Bundle | None:
    """Return the bundle to offer with a question about a command; None if none belongs to it.

    `suggested` are the rules for the command alone, `checks` the commands that build or check the
    project, `offered` the titles of the bundles that were offered before.
    """
    if changes_files(command, policy):
        return FILES if FILES.title not in offered else None
    allowed = {str(rule) for rule in policy.allow}
    for bundle in (Bundle(CHECKS, name_checks(checks or (), policy)), *load_bundles()):
        missing = [rule for rule in bundle.rules if rule not in allowed]
        more = not set(missing) <= set(suggested)
        if more and bundle.title not in offered and set(suggested) & set(missing):
            rules = dict.fromkeys((*missing, *suggested))
            return msgspec.structs.replace(bundle, rules=tuple(rules))
    return None


def find_everyday(
    command: str,
    suggested: Sequence[str],
    checks: Sequence[str] | None,
    policy: Policy,
    offered: Container[str] = (),
) -> Bundle | None:
    """Return the bundle for all everyday work, if a command belongs to it.

    It is offered once, and only in a trusted project: `checks` is None for any other.
    """
    if checks is None or EVERYDAY in offered:
        return None
    more = (bundle for bundle in load_bundles() if bundle.title in EVERYDAY_PARTS)
    parts = (FILES, Bundle(CHECKS, name_checks(checks, policy)), *more)
    allowed = {str(rule) for rule in policy.allow}
    new = {part.title: [rule for rule in part.rules if rule not in allowed] for part in parts}
    missing = [rule for rules in new.values() for rule in rules]
    fits = not set(suggested).isdisjoint(missing) or changes_files(command, policy)
    if not fits or set(missing) <= set(suggested):
        return None
    titles = tuple(title for title, rules in new.items() if rules)
    return Bundle(EVERYDAY, tuple(dict.fromkeys((*missing, *suggested))), titles)


def changes_files(command: str, policy: Policy) -> bool:
    """Return True if a rule for writing would cover what a command needs to be allowed."""
    analysis = read_script(command, policy)
    names = [found.identifier for found in analysis.commands if not found.read_only]
    return analysis.can_be_ruled and changes_named_files(names, analysis, policy)


@lru_cache(1)
def load_bundles() -> tuple[Bundle, ...]:
    """Return the bundles that every project has."""
    folder = os.path.join(os.path.dirname(__file__), "shell", "programs", "tables")
    with open(os.path.join(folder, "bundles.json"), "rb") as file:
        content = msgspec.json.decode(file.read(), type=dict[str, list[str]])
    return tuple(
        Bundle(title, tuple(str(Rule("shell", name)) for name in names))
        for title, names in content.items()
    )


def name_checks(commands: Sequence[str], policy: Policy) -> tuple[str, ...]:
    """Return the rules by which commands run unasked; none for those that no rule can cover."""
    approvals = (
        generalise(Access(kind="shell", target=command), read_script(command, policy), policy)
        for command in commands
    )
    found = [str(rule) for approval in approvals for rule in to_rules(approval, "location")]
    return tuple(dict.fromkeys(found))
