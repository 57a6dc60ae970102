"""Reads the field `allowed-tools` of skills: the tools a skill is held to, and what it allows."""

import re
from collections.abc import Sequence

from trimtab.contracts.customization import Skill, SkillTools
from trimtab.contracts.errors import UsageError
from trimtab.contracts.permission import Rule
from trimtab.customize.agents import EVERY_TOOL, map_tools
from trimtab.permissions.rules import parse_rule

KINDS = {"bash": "shell", "view": "read", "edit": "write", "create": "write", "web_fetch": "url"}
"""Our tools → the kind of rule that allows their calls."""
EQUAL = {
    "edit": ("apply_patch", "notebook"),
    "create": ("apply_patch",),
    "grep": ("rg",),
    "rg": ("grep",),
    "view": ("lsp",),
}
"""Tools that do the same as another one."""
PROJECT = ("project", "inherited")
_ENTRY = re.compile(r"([^(]+?)\s*(?:\((.*)\))?", re.DOTALL)


def find_skill_tools(skill: Skill, *, by_person: bool) -> SkillTools:
    """Return what a skill limits its work to, and what it allows without a question.

    Claude's skills are not limited, as for Claude Code. A skill of the project allows something
    only if the person called it: a model must not grant itself what a repository offers.
    """
    entries = skill.allowed_tools
    if entries is None or EVERY_TOOL in entries:
        return SkillTools(name=skill.name)
    names = map_tools(entries) or ()
    tools = {*names, *(other for name in names for other in EQUAL.get(name, ()))}
    trusted = by_person or skill.origin not in PROJECT
    return SkillTools(
        name=skill.name,
        tools=None if skill.source == "claude" else frozenset(tools),
        rules=read_rules(entries, f"skill {skill.name}") if trusted else (),
    )


def read_rules(entries: Sequence[str], source: str) -> tuple[Rule, ...]:
    """Return the entries as rules; those that are not rules here allow nothing."""
    rules: dict[Rule, None] = {}
    for entry in entries:
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            continue
        arguments = [None] if match[2] is None else re.split(r",\s*", match[2])
        for name in map_tools((match[1],)) or ():
            for argument in arguments:
                if (rule := _read_rule(name, argument, source)) is not None:
                    rules[rule] = None
    return tuple(rules)


def _read_rule(name: str, argument: str | None, source: str) -> Rule | None:
    kind = KINDS.get(name, name)
    if argument is not None and kind == "url":
        argument = argument.removeprefix("domain:")
    if argument is not None and kind == "shell" and argument.endswith(" *"):
        argument = f"{argument[:-2]}:*"  # another spelling of Claude Code's
    if argument is not None and kind not in ("shell", "read", "write", "url"):
        return None
    try:
        return parse_rule(kind if argument is None else f"{kind}({argument})", source)
    except UsageError:
        return None


def find_unreadable(entries: Sequence[str]) -> list[str]:
    """Return the entries that allow nothing, because they are not rules here."""
    return [entry for entry in entries if entry != EVERY_TOOL and not read_rules((entry,), "")]
