"""Bundles of rules that a person can allow with one answer: commands that belong together."""

import os
from collections.abc import Container, Sequence
from functools import lru_cache

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer, Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import generalise, offer_rules, to_rules

CHECKS = "the project's checks"


class Bundle(msgspec.Struct, frozen=True):
    """Rules, and what they allow as a person is told."""

    title: str
    rules: tuple[str, ...]


def find_bundle(
    suggested: Sequence[str], checks: Sequence[str], policy: Policy, offered: Container[str] = ()
) -> Bundle | None:
    """Return the bundle to offer with a question about a command; None if none belongs to it.

    `suggested` are the rules for the command alone, `checks` the commands that build or check the
    project, `offered` the titles of the bundles that were offered before.
    """
    allowed = {str(rule) for rule in policy.allow}
    for bundle in (Bundle(CHECKS, name_checks(checks, policy)), *load_bundles()):
        missing = [rule for rule in bundle.rules if rule not in allowed]
        more = not set(missing) <= set(suggested)
        if more and bundle.title not in offered and set(suggested) & set(missing):
            rules = dict.fromkeys((*missing, *suggested))
            return msgspec.structs.replace(bundle, rules=tuple(rules))
    return None


def approve_bundle(request: JsonObject) -> Answer:
    """Return the answer that allows the whole bundle that a request offers."""
    _, approval = offer_rules(request, ", ".join(request["bundle"]["rules"]))
    return Answer(kind="approve-for-location", approval=approval)


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
    if not commands:
        return ()
    from trimtab.permissions.assess import read_script

    approvals = (
        generalise(Access(kind="shell", target=command), read_script(command, policy), policy)
        for command in commands
    )
    found = [str(rule) for approval in approvals for rule in to_rules(approval, "location")]
    return tuple(dict.fromkeys(found))
