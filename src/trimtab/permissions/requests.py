"""Permission requests, and what became of them, as they stand in events."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer, Policy
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import describe_cover, generalise, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.kinds import find_kind
from trimtab.permissions.paths import resolve

HOOK_DENIED = "deny-by-hook"
OUTCOMES = {
    HOOK_DENIED: "denied-by-permission-request-hook",
    "reject": "denied-interactively-by-user",
    "user-not-available": "denied-no-approval-rule-and-could-not-request-from-user",
}
"""Kinds of answers that do not approve → the results of the event."""
_SOURCES = {HOOK_DENIED: "host_policy", "user-not-available": "unattended_fallback"}


def name_source(answer: Answer) -> str:
    """Return who decided, in the words of the event."""
    return _SOURCES.get(answer.kind, "human_response")


def digest(pending: PendingCall) -> str:
    """Names exactly one call: the tool and its arguments."""
    import hashlib

    call = {"tool": pending.tool.spec.name, "arguments": pending.args}
    encoded = msgspec.json.encode(call, order="sorted")
    return f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def build_request(access: Access, pending: PendingCall, policy: Policy) -> JsonObject:
    """The request about one access of a call."""
    analysis = None
    if access.kind == "shell":
        analysis = read_script(access.target, policy, access.interpreter)
    request: JsonObject = {
        "kind": access.kind,
        "toolCallId": pending.call.id,
        "intention": access.intention,
        **find_kind(access).fields(access, pending, analysis),
        **access.detail,
        "digest": digest(pending),
    }
    rules = to_rules(remembered(access, generalise(access, analysis, policy)), "session")
    if rules:
        request["suggestedRules"] = [str(rule) for rule in rules]
        request["suggestedRulesCover"] = describe_cover(rules)
    return request


def remembered(access: Access, approval: JsonObject | None) -> JsonObject | None:
    """An approval as it is remembered: one for reading is bound to the path.

    One for a tool of an MCP server is bound to the tool's description.
    """
    if approval is not None and approval.get("kind") == "read":
        whole = "readsFolders" in approval
        return approval if whole else approval | {"path": resolve(access.target)}
    digest = access.detail.get("toolDigest")
    if approval is not None and approval.get("kind") == "mcp" and approval.get("toolName"):
        return approval | {"toolDigest": digest} if digest else approval
    return approval
