"""Plan mode: nothing outside the session's own folder changes, enforced and not asked for."""

import os

from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult

REFUSAL = (
    "Plan mode: {what} is refused because nothing outside the session folder may change while "
    "planning. Investigate with read-only tools and answer with a plan; the user decides when to "
    "leave plan mode."
)


class PlanMode(Processor):
    """Refuses every call that may change something, whatever else allows it."""

    def __init__(self, session_folder: str) -> None:
        self._folder = os.path.realpath(session_folder) + os.sep

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        if run.mode != "plan":
            return pending
        ctx = run.tool_context(pending.call.id)
        for access in pending.tool.access(pending.args, ctx):
            if access.mutates and not self._is_own(access):
                what = f"{access.kind} {access.target!r}" if access.target else access.kind
                return ToolResult(text=REFUSAL.format(what=what), kind="denied")
        return pending

    def _is_own(self, access: Access) -> bool:
        return access.kind == "write" and os.path.realpath(access.target).startswith(self._folder)
