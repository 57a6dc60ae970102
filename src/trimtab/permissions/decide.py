"""The decision: what a call would touch, against the policy."""

import os

from trimtab.contracts.permission import Decision, Policy
from trimtab.contracts.tool import Access


def decide(access: Access, policy: Policy) -> Decision:
    """Whether one access may happen. Pure but for resolving links of the paths it judges."""
    decision = _decide(access, policy)
    by_rule = policy.allow_all_tools or access.kind == "none"
    if policy.client_judges and decision.verdict == "allow" and not by_rule:
        return Decision(verdict="ask", reason="The client decides what no rule decides.")
    return decision


def _decide(access: Access, policy: Policy) -> Decision:
    match access.kind:
        case "none":
            return Decision(verdict="allow", reason="It touches nothing.")
        case "read":
            return _decide_read(access, policy)
        case "write":
            return _decide_write(access, policy)
        case "url":
            return _decide_flag(policy.allow_all_urls, "addresses", access)
        case _:
            return _decide_flag(policy.allow_all_tools, "tools", access)


def _decide_flag(allowed: bool, what: str, access: Access) -> Decision:
    if allowed:
        return Decision(verdict="allow", reason=f"All {what} are allowed.")
    return Decision(verdict="ask", reason=f"No rule allows {access.kind} {access.target!r}.")


def _decide_read(access: Access, policy: Policy) -> Decision:
    if policy.allow_all_paths or is_inside(access.target, policy.roots):
        return Decision(verdict="allow", reason="The path may be read.")
    return Decision(verdict="ask", reason=f"{access.target} is outside the allowed directories.")


def _decide_write(access: Access, policy: Policy) -> Decision:
    if not policy.allow_all_tools:
        return Decision(verdict="ask", reason=f"No rule allows writing {access.target}.")
    if policy.allow_all_paths or is_inside(access.target, policy.roots):
        return Decision(verdict="allow", reason="The path may be written.")
    return Decision(verdict="ask", reason=f"{access.target} is outside the allowed directories.")


def is_inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path, with all links resolved, is one of the roots or below one."""
    real = os.path.realpath(path)
    return any(
        real == root or real.startswith(root.rstrip(os.sep) + os.sep)
        for root in map(os.path.realpath, roots)
    )
