"""The decision: what a call would touch, against the policy.

What compares rules is imported only if there are rules to compare: the first call of a run waits
for everything that is imported here.
"""

from collections.abc import Sequence

import msgspec

from trimtab.contracts.permission import CommandFence, Decision, Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.paths import (
    has_other_names,
    is_attached_image,
    is_in_home,
    is_inside,
    is_own_file,
    is_protected,
    refuse_special,
)


def decide(access: Access, policy: Policy, real: str | None = None) -> Decision:
    """Decide about one access. Pure but for resolving links of the paths it judges.

    `real` is the path with every link resolved, if that is known.
    """
    decision = _decide(access, policy, real)
    if decision.verdict == "allow" and policy.always_ask and _is_open(access, decision, policy):
        return Decision(verdict="ask", reason="The client decides what no rule decides.")
    return decision


def complete(policy: Policy, access: Access, fence: CommandFence | None) -> Policy:
    """Return a policy for an access that says whether the kernel enforces its rules for writing."""
    if access.kind != "shell" or fence is None:
        return policy
    if not any(rule.kind == "write" and rule.argument for rule in policy.deny):
        return policy
    return msgspec.structs.replace(policy, keeps_writes=fence.keeps_writes())


def _is_open(access: Access, decision: Decision, policy: Policy) -> bool:
    """Return True if an access is allowed only because it is harmless, without a rule."""
    return access.kind != "none" and decision.rule is None and not policy.allow_all_tools


def _decide(access: Access, policy: Policy, real: str | None) -> Decision:
    match access.kind:
        case "none":
            return Decision(verdict="allow", reason="It touches nothing.")
        case "read":
            return _decide_read(access.target, policy, real)
        case "write":
            return _decide_write(access, policy, real)
        case "shell":
            # Imported here: it takes many modules to read a command, and most calls have none.
            from trimtab.permissions.assess import forget_scripts
            from trimtab.permissions.decide_shell import decide_shell

            forget_scripts()
            return decide_shell(access.target, policy, access.interpreter)
        case "url":
            return _decide_url(access.target, policy)
        case _:
            return _decide_tool(access, policy)


def _denied(rule: Rule) -> Decision:
    from trimtab.permissions.rules import name_rule

    return Decision(verdict="deny", reason=f"{name_rule(rule)} forbids it.", rule=rule)


def _asked(rule: Rule) -> Decision:
    return Decision(verdict="ask", reason=f"The rule {rule} wants to be asked.", rule=rule)


def _allowed(rule: Rule) -> Decision:
    return Decision(verdict="allow", reason=f"The rule {rule} allows it.", rule=rule)


def _find_path_rule(
    rules: Sequence[Rule], kind: str, path: str, cwd: str, *, denies: bool = False
) -> Rule | None:
    """Return the first rule that covers reading or writing a path."""
    if not rules:
        return None
    from trimtab.permissions.rules import matches_path

    return next((r for r in rules if matches_path(r, kind, path, cwd, denies=denies)), None)


def _find_denial(kind: str, path: str, policy: Policy) -> Rule | None:
    """Return the rule that forbids a path, by this or another name of the file."""
    if rule := _find_path_rule(policy.deny, kind, path, policy.cwd, denies=True):
        return rule
    if not policy.deny or not has_other_names(path):
        return None
    from trimtab.permissions.linked_files import find_linked_rule

    return find_linked_rule(policy.deny, kind, path, policy)


def _find_address_rule(rules: Sequence[Rule], url: str, *, denies: bool = False) -> Rule | None:
    """Return the first rule that covers an address."""
    from trimtab.permissions.rules import matches_address

    return next((r for r in rules if matches_address(r, url, denies=denies)), None)


def _find_tool_rule(rules: Sequence[Rule], access: Access, *, denies: bool = False) -> Rule | None:
    """Return the first rule that covers the use of a tool."""
    from trimtab.permissions.rules import matches_tool

    return next((r for r in rules if matches_tool(r, access, denies=denies)), None)


def _decide_read(path: str, policy: Policy, real: str | None) -> Decision:
    cwd = policy.cwd
    if rule := _find_denial("read", path, policy):
        return _denied(rule)
    if refusal := refuse_special(path, real):
        return Decision(verdict="deny", reason=f"{refusal}; it is not read.")
    if rule := _find_path_rule(policy.ask, "read", path, cwd, denies=True):
        return _asked(rule)
    return _decide_readable(path, policy)


def _decide_readable(path: str, policy: Policy) -> Decision:
    """Allow reading by a rule that names the path, and in the allowed directories."""
    named = tuple(rule for rule in policy.allow if rule.argument is not None)
    if rule := _find_path_rule(named, "read", path, policy.cwd):
        return _allowed(rule)
    if is_attached_image(path, policy.images):
        return _allowed(Rule("read", path, "attachment"))
    if policy.allow_all_paths or is_inside(path, (*policy.roots, *policy.readable)):
        return Decision(verdict="allow", reason="The path may be read.")
    return Decision(verdict="ask", reason=f"{path} is outside the allowed directories.")


def _decide_write(access: Access, policy: Policy, real: str | None) -> Decision:
    path, cwd = access.target, policy.cwd
    if rule := _find_denial("write", path, policy):
        return _denied(rule)
    if refusal := refuse_special(path, real):
        return Decision(verdict="deny", reason=f"{refusal}; it is not written.")
    if is_in_home(path, policy.homes, policy.session_folder):
        reason = f"{path} is the agent's own; tools never write there."
        return Decision(verdict="deny", reason=reason)
    if policy.writable is not None and not is_inside(path, policy.writable):
        return Decision(verdict="deny", reason=f"The sandbox does not let {path} be written.")
    if rule := _find_path_rule(policy.ask, "write", path, cwd, denies=True):
        return _asked(rule)
    return _decide_place(access, policy) or _decide_rule(path, policy)


def _decide_place(access: Access, policy: Policy) -> Decision | None:
    """Decide about writing a file by its place, if that decides."""
    path, inside = access.target, is_inside(access.target, policy.roots)
    if access.detail.get("deletes") is True and not inside and not policy.allow_destructive:
        return Decision(verdict="ask", reason=f"It would delete {path}, outside the workspace.")
    if is_own_file(path, policy.session_folder):
        return Decision(verdict="allow", reason="It is a file of the session itself.")
    if policy.allow_all_paths and policy.writable is None:
        return None
    if is_protected(path):
        from trimtab.permissions.agent_folders import is_guarded

        if is_guarded(path, policy):
            return Decision(verdict="ask", reason=f"{path} is protected: it can make things run.")
    return None if inside or policy.allow_all_paths else _decide_outside(path, policy)


def _decide_outside(path: str, policy: Policy) -> Decision:
    """Outside the allowed directories only a rule that names the whole path allows."""
    absolute = [r for r in policy.allow if r.argument and r.argument[:1] in ("/", "~")]
    if rule := _find_path_rule(absolute, "write", path, policy.cwd):
        return _allowed(rule)
    return Decision(verdict="ask", reason=f"{path} is outside the allowed directories.")


def _decide_rule(path: str, policy: Policy) -> Decision:
    if policy.allow_all_tools:
        return Decision(verdict="allow", reason="All tools are allowed.")
    if rule := _find_path_rule(policy.allow, "write", path, policy.cwd):
        return _allowed(rule)
    return Decision(verdict="ask", reason=f"No rule allows writing {path}.")


def _decide_url(url: str, policy: Policy) -> Decision:
    if rule := _find_address_rule(policy.deny, url, denies=True):
        return _denied(rule)
    if rule := _find_address_rule(policy.ask, url, denies=True):
        return _asked(rule)
    if policy.allow_all_urls:
        return Decision(verdict="allow", reason="All addresses are allowed.")
    if rule := _find_address_rule(policy.allow, url):
        return _allowed(rule)
    return Decision(verdict="ask", reason=f"No rule allows the address {url}.")


def _decide_tool(access: Access, policy: Policy) -> Decision:
    if rule := _find_tool_rule(policy.deny, access, denies=True):
        return _denied(rule)
    if rule := _find_tool_rule(policy.ask, access, denies=True):
        return _asked(rule)
    if policy.allow_all_tools:
        return Decision(verdict="allow", reason="All tools are allowed.")
    if rule := _find_tool_rule(policy.allow, access):
        return _allowed(rule)
    what = access.target or access.kind
    return Decision(verdict="ask", reason=f"No rule allows the tool {what}.")
