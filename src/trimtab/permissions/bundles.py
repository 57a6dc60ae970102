"""Bundles of rules that a person can allow with one answer: commands that belong together."""

import os
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache

import msgspec

from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import THIS_MACHINE, generalise, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.file_commands import changes_named_files
from trimtab.permissions.groups import (
    MARK,
    covers_program,
    find_group,
    find_members,
    load_groups,
)
from trimtab.permissions.paths import is_inside
from trimtab.permissions.rules import HERE, parse_rule, parse_rules
from trimtab.permissions.work_folders import widen

CHECKS = "the project's own commands"
EVERYDAY = "everyday work on this project"
EVERYDAY_GROUPS = ("git", "github", "containers", "network", "services")
"""Groups that belong to everyday work, with changes of files, its commands and running code.

Whoever looks at something changes nothing; a cluster is left out, since it may be in production.
"""
WHOLE_PROGRAMS = frozenset(
    (
        *("node", "tsx", "ts-node", "turbo", "python", "python3", "pip", "pip3", "pipenv"),
        *("pre-commit", "ruby", "bundle", "rake", "rails", "php", "composer", "rustup", "go"),
        *("make", "just", "task", "bazel", "meson", "bash", "sh"),
    )
)
"""Programs of which all commands are offered at once, with the question about a second one.

Those that can publish as well are in a table: what they do to others is left out.
"""


DEEP = 3
"""Folders so deep below the home hold the programs of one thing, not everything installed."""


class Bundle(msgspec.Struct, frozen=True):
    """Rules, and what they allow as a person is told."""

    title: str
    rules: tuple[str, ...]
    parts: tuple[str, ...] = ()
    """Its parts, in words for the person, if the rules are too many to list."""


FILES = Bundle("every change of files here", ("write",))
LOCAL = Bundle(
    "requests to this machine", tuple(str(Rule("url", address)) for address in THIS_MACHINE)
)


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
    new = [rule for rule in suggested if rule not in allowed]
    bundles = (
        Bundle(CHECKS, name_checks(checks or (), policy)),
        *load_bundles().values(),
        *_find_whole(suggested, policy),
        *_find_folders(suggested, policy),
    )
    for bundle in bundles:
        missing = [rule for rule in bundle.rules if rule not in allowed]
        more = not set(missing) <= set(suggested)
        if more and bundle.title not in offered and _covers_some(missing, new, policy):
            rules = _join(missing, suggested)
            if _answers(command, rules, suggested, policy):
                return msgspec.structs.replace(bundle, rules=rules)
    return None


def _answers(command: str, rules: Sequence[str], suggested: Sequence[str], policy: Policy) -> bool:
    """Return False for rules that leave out what a command does, unlike those for it alone."""
    return _allows(command, rules, policy) or not _allows(command, suggested, policy)


def _allows(command: str, rules: Sequence[str], policy: Policy) -> bool:
    allow = (*policy.allow, *parse_rules(rules, "session"))
    approved = widen(msgspec.structs.replace(policy, allow=allow))
    return decide_shell(command, approved).verdict == "allow"


def _join(rules: Sequence[str], suggested: Sequence[str]) -> tuple[str, ...]:
    """Return the rules, and those suggested that they do not cover."""
    return tuple(dict.fromkeys((*rules, *_leave_out(suggested, rules))))


def _leave_out(rules: Sequence[str], covering: Sequence[str]) -> tuple[str, ...]:
    """Return rules without those that others cover."""
    return tuple(rule for rule in rules if not any(_covers(wide, rule) for wide in covering))


def _covers_some(rules: Sequence[str], suggested: Sequence[str], policy: Policy) -> bool:
    """Return True if one of the rules covers one of those suggested."""
    if str(Rule("shell", HERE)) in rules and any(_is_here(rule, policy) for rule in suggested):
        return True
    return any(_covers(rule, narrow) for rule in rules for narrow in suggested)


def _covers(rule: str, narrow: str) -> bool:
    """Return True if a rule covers another: the same, one of its group, or with fewer words."""
    if rule == narrow:
        return True
    wide, given = parse_rule(rule), parse_rule(narrow)
    if wide.kind != given.kind or wide.argument is None or given.argument is None:
        return False
    if wide.argument.endswith("/"):
        return given.argument.startswith(wide.argument)
    words = given.argument.split()
    if covers_program(wide.argument, words, words):
        return True
    program = words[0]
    names = find_members(wide.argument, program) or (wide.argument.removesuffix(":*"),)
    return any(f"{given.argument} ".startswith(f"{name} ") for name in names)


def _is_here(rule: str, policy: Policy) -> bool:
    """Return True if a rule names a program of the project by its path."""
    given = parse_rule(rule)
    word = (given.argument or "").partition(" ")[0] if given.kind == "shell" else ""
    return "/" in word and is_inside(os.path.join(policy.cwd, word), (policy.cwd,))


def _find_whole(suggested: Sequence[str], policy: Policy) -> Iterator[Bundle]:
    """Yield rules for whole programs of which other commands are allowed already."""
    allowed = [rule.argument for rule in policy.allow if rule.kind == "shell" and rule.argument]
    for rule in parse_rules(suggested):
        name = rule.argument or ""
        program, _, more = name.partition(" ")
        known = any(
            other.startswith(f"{program} ") or find_members(other, program)
            for other in allowed
            if other != name
        )
        if more and known and program in WHOLE_PROGRAMS:
            yield Bundle(f"every {program} command", (str(Rule("shell", f"{program}:*")),))
        elif more and known and (group := find_group(MARK + program)):
            yield Bundle(group.title, (str(Rule("shell", MARK + program)),))


def _find_folders(suggested: Sequence[str], policy: Policy) -> Iterator[Bundle]:
    """Yield rules for the folders of programs that belong to something in the home."""
    for rule in (rule for rule in parse_rules(suggested) if rule.kind == "shell"):
        folder = os.path.dirname((rule.argument or "").partition(" ")[0])
        home = f"{policy.home.rstrip(os.sep)}{os.sep}"
        if folder.startswith(home) and folder.removeprefix(home).count(os.sep) + 1 >= DEEP:
            yield Bundle(f"every program in {folder}", (str(Rule("shell", f"{folder}/")),))


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
    groups = [load_bundles()[name] for name in ("code", *EVERYDAY_GROUPS)]
    wide = [rule for bundle in groups for rule in bundle.rules]
    own = _leave_out(name_checks(checks, policy), wide)
    parts = (FILES, Bundle(CHECKS, own), *groups, LOCAL)
    allowed = {str(rule) for rule in policy.allow}
    new = {part.title: [rule for rule in part.rules if rule not in allowed] for part in parts}
    missing = [rule for rules in new.values() for rule in rules]
    fits = _covers_some(missing, suggested, policy) or changes_files(command, policy)
    if not fits or set(missing) <= set(suggested):
        return None
    rules = _join(missing, suggested)
    if not _answers(command, rules, suggested, policy):
        return None
    titles = tuple(title for title, rules in new.items() if rules)
    return Bundle(EVERYDAY, rules, titles)


def changes_files(command: str, policy: Policy) -> bool:
    """Return True if a rule for writing would cover what a command needs to be allowed."""
    analysis = read_script(command, policy)
    names = [found.identifier for found in analysis.commands if not found.read_only]
    return analysis.can_be_ruled and changes_named_files(names, analysis, policy)


@lru_cache(1)
def load_bundles() -> dict[str, Bundle]:
    """Return the bundles that every project has, by the names of their groups."""
    bundles = {
        name: Bundle(group.title, (str(Rule("shell", MARK + name)),))
        for name, group in load_groups().items()
    }
    # The project's own programs, named by a path, are code as well.
    code = (*bundles["code"].rules, str(Rule("shell", HERE)))
    return bundles | {"code": Bundle(bundles["code"].title, code)}


def name_checks(commands: Sequence[str], policy: Policy) -> tuple[str, ...]:
    """Return the rules by which commands run unasked; none for those that no rule can cover.

    They are the narrowest ones, whatever is allowed already.
    """
    policy = msgspec.structs.replace(policy, allow=())
    approvals = (
        generalise(Access(kind="shell", target=command), read_script(command, policy), policy)
        for command in commands
    )
    found = [str(rule) for approval in approvals for rule in to_rules(approval, "location")]
    return tuple(dict.fromkeys(found))
