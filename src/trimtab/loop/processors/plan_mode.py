"""Enforces plan mode and read-only agents: only the session's own folder may change."""

from collections.abc import Callable
from typing import Literal

import msgspec

from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult

PLAN_MODE = (
    "Plan mode: {what} is refused because nothing outside the session folder may change while "
    "planning. Investigate with read-only tools and answer with a plan; the user decides when to "
    "leave plan mode."
)

READ_ONLY = (
    "This agent is read-only: {what} is refused because it may change something. Find out what "
    "you can with read-only tools and commands, and say in your answer what should be changed or "
    "run."
)


class PlanMode(Processor):
    """Refuses every call that may change something, whatever the permissions allow.

    `may_change` returns True for an access that may change more than the session's own files.
    While `read_only` returns True, the same holds in every mode.
    """

    def __init__(self, may_change: Callable[[Access], bool], read_only: Callable[[], bool]) -> None:
        self._may_change = may_change
        self._read_only = read_only

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        if run.agent.mode != "plan" and not self._read_only():
            return pending
        for access in pending.touches(run):
            if self._may_change(access):
                what = f"{access.kind} {access.target!r}" if access.target else access.kind
                refusal = PLAN_MODE if run.agent.mode == "plan" else READ_ONLY
                kind: Literal["denied", "failure"] = (
                    "denied" if run.agent.mode == "plan" else "failure"
                )
                return ToolResult(text=refusal.format(what=what), kind=kind)
        return msgspec.structs.replace(pending, only_reads=True)
