"""True if an access may change anything but the session's own files: the test of plan mode."""

import os

from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.assess import read_script
from trimtab.permissions.paths import is_inside, is_own_file
from trimtab.permissions.rules import matches_tool


def may_change(access: Access, policy: Policy) -> bool:
    """True unless it is certain that nothing changes; unknown effects count as changes."""
    if not access.mutates:
        return False
    if access.kind == "write":
        return not is_own_file(access.target, policy.session_folder)
    if access.kind == "mcp":
        return not _is_vouched_for(access, policy)
    if access.kind == "shell":
        return _command_may_change(access, policy)
    return access.kind not in ("none", "read")


def _is_vouched_for(access: Access, policy: Policy) -> bool:
    """Return True if a tool says that it only reads and the person's rule allows exactly it.

    What a server says of itself is a claim, and a repository may not make it good.
    """
    tool = access.detail.get("toolName")
    return access.detail.get("readOnly") is True and any(
        rule.argument == tool and matches_tool(rule, access) and _is_of_person(rule, policy)
        for rule in policy.allow
    )


def _is_of_person(rule: Rule, policy: Policy) -> bool:
    return not os.path.isabs(rule.source) or is_inside(rule.source, policy.homes)


def _command_may_change(access: Access, policy: Policy) -> bool:
    analysis = read_script(access.target, policy, access.interpreter)
    if analysis.hazards or analysis.destructive or not analysis.is_known:
        return True
    if not all(found.read_only for found in analysis.commands):
        return True
    return not all(
        path is not None and is_own_file(path, policy.session_folder) for path in analysis.targets
    )
