"""Limits the number of turns. The deadline is not checked here, because a call may hang."""

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.text import count


class TurnLimit(Processor):
    """Ends a run before a model call that would exceed `max_turns` calls.

    The agents of a session share it, so that their turns count together.
    """

    def __init__(self, max_turns: int, taken: int = 0) -> None:
        self._max_turns = max_turns
        self.taken = taken

    async def before_request(self, run: Run) -> Stop | None:
        if self.taken < self._max_turns:
            self.taken += 1
            return None
        return Stop(
            reason="turn_limit",
            exit_code=ExitCode.LIMIT,
            message=f"Stopped after {count(self._max_turns, 'turn')}; raise --max-turns to go on.",
        )
