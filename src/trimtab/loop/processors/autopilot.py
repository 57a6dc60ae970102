"""Autopilot: keeps the agent working until it declares the task complete or blocked."""

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.session import (
    SessionAutopilotStopped,
    SessionInfo,
    SessionTaskComplete,
)
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import ToolResult

TOOL = "task_complete"


class Autopilot(Processor):
    """Sends a model that stops without `task_complete` back to work, `max_continues` times."""

    def __init__(self, nudge: str, max_continues: int) -> None:
        self._nudge = nudge
        self.max_continues = max_continues
        self._continues = 0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source == "user":
            self._continues = 0
        return prompt

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if run.agent.mode == "autopilot" and pending.call.name == TOOL and result.kind == "success":
            self._complete(run, pending.args)
        return result

    async def before_stop(self, run: Run, stop: Stop) -> Prompt | Stop | None:
        if run.agent.mode != "autopilot":
            return None
        if self._continues >= self.max_continues:
            return self._end_at_cap(run)
        self._continues += 1
        run.session.emit(
            SessionInfo(
                info_type="autopilot_continuation",
                message=f"Continuing autonomously ({self._continues} of {self.max_continues})",
            )
        )
        return Prompt(text=self._nudge, source="autopilot", billable=False)

    def _complete(self, run: Run, args: dict[str, object]) -> None:
        summary = str(args.get("summary") or "")
        blocked = args.get("outcome") == "blocked"
        run.session.emit(
            SessionTaskComplete(
                summary=summary,
                success=not blocked,
                outcome="blocked" if blocked else "completed",
            )
        )
        run.session.emit(SessionAutopilotStopped(reason="blocked" if blocked else TOOL))
        run.stop = Stop(
            reason="blocked" if blocked else "task_complete",
            exit_code=ExitCode.INCOMPLETE if blocked else ExitCode.SUCCESS,
            message=summary,
        )

    def _end_at_cap(self, run: Run) -> Stop:
        message = (
            f"Autopilot stopped after {count(self._continues, 'continuation')} without "
            "task_complete; raise --max-autopilot-continues or resume the session with clearer "
            "instructions."
        )
        run.session.emit(SessionAutopilotStopped(reason="cap_reached"))
        run.session.emit(SessionInfo(info_type="autopilot_stopped", message=message))
        return Stop(reason="continuation_cap", exit_code=ExitCode.INCOMPLETE, message=message)
