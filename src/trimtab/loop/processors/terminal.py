"""Tools whose success is the end of a turn: the model is not asked what to make of it."""

from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult


class TerminalTools(Processor):
    """Where an answer by a schema is wanted, the model gets to give it, and no tools."""

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if getattr(pending.tool, "is_terminal", False) and result.kind == "success":
            if run.origin.answer_schema is None:
                run.stop = Stop(reason="end_turn")
            else:
                run.closing = True
        return result
