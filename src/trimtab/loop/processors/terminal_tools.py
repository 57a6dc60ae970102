"""Ends a run after the success of a terminal tool, without another model call."""

from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult


class TerminalTools(Processor):
    """Ends the run; if the prompt has an answer schema, the model first gives that answer."""

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if getattr(pending.tool, "is_terminal", False) and result.kind == "success":
            if run.origin.answer_schema is None:
                run.stop = Stop(reason="end_turn")
            else:
                run.closing = True
        return result
