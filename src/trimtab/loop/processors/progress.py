"""Notices a run that goes round in circles: the same calls with the same results, nothing new."""

from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ToolResult

DEFAULT = 25
"""How often in autopilot, where nobody watches."""
STALE = 5
"""So many continuations without anything new are enough."""


class Progress(Processor):
    """Ends a run when one call has had one result `limit` times since anything new happened.

    New is a call or a result that this prompt has not seen before, so a test that fails the same
    way between different edits counts as little as two hundred edits that look alike. A limit of
    None means 25 in autopilot and none elsewhere; 0 means none.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._seen: dict[int, int] = {}
        self._fresh = False
        self._stale = 0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source == "user":
            self._seen.clear()
            self._stale = 0
        return prompt

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        limit = (
            self._limit if self._limit is not None else DEFAULT * (run.agent.mode == "autopilot")
        )
        if limit:
            self._count(run, pending, result, limit)
        return result

    async def before_stop(self, run: Run, stop: Stop) -> Stop | None:
        """A model that is sent back to work again and again, and does nothing new, is stuck."""
        if run.agent.mode != "autopilot" or self._limit == 0:
            return None
        self._stale = 0 if self._fresh else self._stale + 1
        self._fresh = False
        if self._stale <= STALE:
            return None
        message = (
            f"Stopped: the agent was sent back to work {STALE} times and did nothing new; resume "
            "the session with clearer instructions."
        )
        run.session.emit(SessionWarning(warning_type="no_progress", message=message))
        return Stop(reason="no_progress", exit_code=3, message=message)

    def _count(self, run: Run, pending: PendingCall, result: ToolResult, limit: int) -> None:
        call = pending.call
        happened = hash((call.name, call.arguments, result.kind, result.text))
        repeats = self._seen.get(happened, 0) + 1
        if repeats == 1:
            self._fresh = True
            self._seen = dict.fromkeys(self._seen, 1)
        self._seen[happened] = repeats
        if repeats < limit or run.stop is not None:
            return
        message = (
            f"Stopped: {call.name} was called {repeats} times with the same arguments and the same "
            "result, and nothing else changed; resume the session with clearer instructions, or "
            "raise --max-repeats."
        )
        run.session.emit(SessionWarning(warning_type="no_progress", message=message))
        run.stop = Stop(reason="no_progress", exit_code=3, message=message)
