"""The stop gate: lets `agentStop` hooks send the agent back to work a bounded number of times."""

from collections.abc import Awaitable, Callable

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run

MAX_BLOCKS = 8

StopHook = Callable[[Run, bool], Awaitable[str | None]]
"""Returns the reason to continue, or None. The flag is True if the last stop was blocked."""


class StopGate(Processor):
    """Asks an `agentStop` hook before a run may stop.

    The reason of a block becomes the next prompt. After 8 blocks in a row the run stops anyway:
    a check that can never pass must not cost money forever.
    """

    def __init__(self, hook: StopHook) -> None:
        self._hook = hook
        self._blocks = 0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source != "hook":
            self._blocks = 0
        return prompt

    async def before_stop(self, run: Run, stop: Stop) -> Prompt | Stop | None:
        reason = await self._hook(run, self._blocks > 0)
        if not reason:
            return None
        if self._blocks >= MAX_BLOCKS:
            message = (
                f"An agentStop hook blocked {MAX_BLOCKS} times in a row, so the run stopped "
                "anyway; correct the hook, or the work it checks."
            )
            run.session.emit(SessionWarning(warning_type="agent_stop_block_limit", message=message))
            return Stop(
                reason="agent_stop_block_limit", exit_code=ExitCode.INCOMPLETE, message=message
            )
        self._blocks += 1
        return Prompt(text=reason, source="hook", billable=False)
