"""Keeps tools that fetch addresses themselves to the hosts that sandboxed commands may reach."""

from collections.abc import Callable

from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult


class Firewall(Processor):
    """Looks at what is allowed already: no permission, rule or answer leads past it."""

    def __init__(self, find_objection: Callable[[str], str]) -> None:
        """`find_objection` says why an address must not be reached; nothing if it may be."""
        self._find_objection = find_objection

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        for access in pending.touches(run):
            if access.kind == "url" and (why := self._find_objection(access.target)):
                text = f"The sandbox does not let {access.target} be reached: {why}."
                return ToolResult(text=text, kind="denied")
        return pending
