"""Plan mode: nothing outside the session's own folder changes, enforced and not asked for."""

from collections.abc import Callable

from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult

REFUSAL = (
    "Plan mode: {what} is refused because nothing outside the session folder may change while "
    "planning. Investigate with read-only tools and answer with a plan; the user decides when to "
    "leave plan mode."
)


class PlanMode(Processor):
    """Refuses every call that may change something, whatever else allows it.

    `may_change` says of an access whether it may change anything but the session's own files.
    """

    def __init__(self, may_change: Callable[[Access], bool]) -> None:
        self._may_change = may_change

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        if run.mode != "plan":
            return pending
        ctx = run.tool_context(pending.call.id)
        for access in pending.tool.access(pending.args, ctx):
            if self._may_change(access):
                what = f"{access.kind} {access.target!r}" if access.target else access.kind
                return ToolResult(text=REFUSAL.format(what=what), kind="denied")
        return pending
