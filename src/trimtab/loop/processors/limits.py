"""Hard limits on turns; time is watched by whoever owns the run, because a call may hang."""

from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run


class TurnLimit(Processor):
    """Ends the run before a model call that would exceed `max_turns` calls."""

    def __init__(self, max_turns: int) -> None:
        self._max_turns = max_turns

    async def before_request(self, run: Run) -> Stop | None:
        if run.total_turns < self._max_turns:
            return None
        return Stop(
            reason="turn_limit",
            exit_code=6,
            message=f"Stopped after {self._max_turns} turns; raise --max-turns to go on.",
        )
