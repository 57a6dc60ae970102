"""Permission requests as they stand in events: the fields each kind must have."""

from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Policy
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import describe_cover, generalise, to_rules
from trimtab.permissions.shell.analysis import Analysis, analyse


def digest(pending: PendingCall) -> str:
    """Names exactly one call: the tool and its arguments."""
    import hashlib

    import msgspec

    call = {"tool": pending.tool.spec.name, "arguments": pending.args}
    encoded = msgspec.json.encode(call, order="sorted")
    return f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def build_request(access: Access, pending: PendingCall, policy: Policy) -> JsonObject:
    """The request about one access of a call."""
    analysis = None
    if access.kind == "shell":
        analysis = analyse(access.target, policy.cwd, policy.home)
    request: JsonObject = {
        "kind": access.kind,
        "toolCallId": pending.call.id,
        "intention": access.intention,
        **_fields(access, pending, analysis),
        **access.detail,
        "digest": digest(pending),
    }
    rules = to_rules(remembered(access, generalise(access, analysis)), "session")
    if rules:
        request["suggestedRules"] = [str(rule) for rule in rules]
        request["suggestedRulesCover"] = describe_cover(rules)
    return request


def remembered(access: Access, approval: JsonObject | None) -> JsonObject | None:
    """An approval as it is remembered: one for reading is bound to the path."""
    if approval is not None and approval.get("kind") == "read":
        return approval | {"path": access.target}
    return approval


def _fields(access: Access, pending: PendingCall, analysis: Analysis | None) -> dict[str, Any]:
    match access.kind:
        case "shell":
            assert analysis is not None
            fields = {"fullCommandText": access.target, **analysis.describe()}
            warnings = [*analysis.destructive, *analysis.hazards, *analysis.dynamic]
            if analysis.problem:
                warnings.append(analysis.problem)
            return fields | ({"warning": "; ".join(warnings[:3])} if warnings else {})
        case "write":
            return {
                "fileName": access.target,
                "diff": "",
                "canOfferSessionApproval": True,
            }
        case "read":
            return {"path": access.target}
        case "url":
            return {"url": access.target}
        case "memory":
            return {"fact": access.target}
        case "mcp":
            name = access.target or pending.tool.spec.name
            return {
                "serverName": "",
                "toolName": name,
                "toolTitle": name,
                "readOnly": not access.mutates,
                "args": pending.args,
            }
        case _:
            spec = pending.tool.spec
            return {
                "toolName": access.target or spec.name,
                "toolDescription": spec.description,
                "args": pending.args,
            }
