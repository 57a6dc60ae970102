"""Permissions at work: every tool call is judged before it runs."""

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.permission import Answer, Ask, Policy
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.decide import decide

UNAVAILABLE = "Permission denied and could not request permission from user"
_OUTCOMES = {
    "reject": "denied-interactively-by-user",
    "user-not-available": "denied-no-approval-rule-and-could-not-request-from-user",
}


class Permissions(Processor):
    """Allows, asks or denies. With nobody to ask, what would be asked is denied and counted."""

    def __init__(self, policy: Policy, ask: Ask | None = None) -> None:
        self._policy = policy
        self._ask = ask

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        ctx = run.tool_context(pending.call.id)
        for access in pending.tool.access(pending.args, ctx):
            decision = decide(access, self._policy)
            if decision.verdict == "ask":
                refusal = await self._question(run, pending, access, decision.reason)
                if refusal is not None:
                    return refusal
            elif decision.verdict == "deny":
                return ToolResult(text=f"Permission denied: {decision.reason}", kind="denied")
        return pending

    async def _question(
        self, run: Run, pending: PendingCall, access: Access, reason: str
    ) -> ToolResult | None:
        request_id = new_id()
        request = permission_request(access, pending.call.id)
        run.session.emit(PermissionRequested(request_id=request_id, permission_request=request))
        if self._ask is None:
            answer = Answer(kind="user-not-available")
        else:
            answer = await self._ask(request_id, request)
        approved = answer.kind.startswith("approve")
        result: JsonObject = {"kind": "approved" if approved else _OUTCOMES[answer.kind]}
        if answer.feedback:
            result["feedback"] = answer.feedback
        run.session.emit(
            PermissionCompleted(request_id=request_id, tool_call_id=pending.call.id, result=result)
        )
        if approved:
            return None
        if answer.kind == "reject":
            said = f" They said: {answer.feedback}" if answer.feedback else ""
            return ToolResult(text=f"The user rejected this tool call.{said}", kind="rejected")
        return ToolResult(text=f"{UNAVAILABLE} ({reason})", summary=UNAVAILABLE, kind="denied")


def permission_request(access: Access, call_id: str) -> JsonObject:
    """The request as it stands in the event: the fields each kind must have."""
    request: JsonObject = {
        "kind": access.kind,
        "toolCallId": call_id,
        "intention": access.intention,
    }
    match access.kind:
        case "shell":
            request |= {
                "fullCommandText": access.target,
                "commands": [],
                "possiblePaths": [],
                "possibleUrls": [],
                "hasWriteFileRedirection": False,
                "canOfferSessionApproval": False,
            }
        case "write":
            request |= {
                "fileName": access.target,
                "diff": access.detail.get("diff", ""),
                "canOfferSessionApproval": True,
            }
        case "read":
            request["path"] = access.target
        case "url":
            request["url"] = access.target
    return request | access.detail
