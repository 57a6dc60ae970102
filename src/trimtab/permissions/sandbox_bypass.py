"""Lets one command out of the sandbox, by a person's answer and by nothing else."""

import msgspec

from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.permission import Answer, Ask, Policy
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.fence_stops import find_attempts
from trimtab.permissions.requests import build_request

SIGNS = (
    "<the sandbox refused a connection to ",
    "Read-only file system",
    "Operation not permitted",
    "Permission denied",
    "Network is unreachable",
    "Could not resolve",
    "ame resolution",
    "Address family not supported",
    "Device or resource busy",
)
REFUSED = "the person did not allow it>"
"""Ends the line about a host that a person has just refused; to ask again would be nagging."""
NOTE = (
    "\n<the command ran in a sandbox, which may be why it failed: it can write only the workspace "
    "and the temp directory, and what is protected there not at all; see what it reached before "
    "trying another way>"
)
QUESTION = (
    "The sandbox may have stopped this command. To approve is to run it again, outside the sandbox"
)


class SandboxBypass(Processor):
    """Asks about a command that failed in the sandbox. Nobody to ask: the model is told.

    No argument of a tool, no rule and no hook leads here, and an approval counts once.
    """

    def __init__(self, policy: Policy, ask: Ask | None) -> None:
        self._policy = policy
        self._ask = ask
        self.released: set[str] = set()
        """Calls that a person let out."""

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        access = self._find_command(run, pending)
        if access is None:
            return result
        result = msgspec.structs.replace(result, sandboxed=True)
        if not was_stopped(result.text, self._policy):
            return result
        answer = await self._question(run, pending, access)
        if answer is None or not answer.kind.startswith("approve"):
            return msgspec.structs.replace(result, text=result.text + NOTE)
        self.released.add(pending.call.id)
        try:
            outside = await pending.tool.run(pending.args, run.tool_context(pending.call.id))
            return msgspec.structs.replace(outside, sandboxed=False)
        finally:
            self.released.discard(pending.call.id)

    def _find_command(self, run: Run, pending: PendingCall) -> Access | None:
        accesses = pending.touches(run)
        return next((access for access in accesses if access.kind == "shell"), None)

    async def _question(self, run: Run, pending: PendingCall, access: Access) -> Answer | None:
        if self._ask is None:
            return None
        request_id = new_id()
        request = build_request(access, pending, self._policy)
        request |= {"warning": QUESTION, "sandboxBypass": True, "canOfferSessionApproval": False}
        request.pop("suggestedRules", None)
        run.session.emit(PermissionRequested(request_id=request_id, permission_request=request))
        answer = await self._ask(request_id, request)
        approved = answer.kind.startswith("approve")
        run.session.emit(
            PermissionCompleted(
                request_id=request_id,
                tool_call_id=pending.call.id,
                result={"kind": "approved" if approved else "denied-interactively-by-user"},
                decision_source="human_response",
            )
        )
        return answer


def was_stopped(text: str, policy: Policy) -> bool:
    """Return True if the sandbox seems to be the reason why a command failed."""
    failed = "<exited with exit code " in text and not text.endswith("exit code 0>")
    if not failed or REFUSED in text:
        return False
    return any(sign in text for sign in SIGNS) or bool(
        find_attempts(text, 1, (), policy.cwd, policy.writable or policy.roots)
    )
