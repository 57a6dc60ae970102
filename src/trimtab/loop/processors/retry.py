"""Failed model calls are tried again when that can help, after a wait everybody can see."""

import asyncio

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.assistant import AssistantTurnRetry
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Run

RETRYABLE = frozenset(("retryable", "overloaded", "rate_limit", "transport"))


class Retry(Processor):
    """Exponential back-off with jitter; the service's own Retry-After wins when it is longer."""

    def __init__(self, tries: int = 5, base_delay: float = 1.0, max_delay: float = 60.0) -> None:
        self._tries = tries
        self._base_delay = base_delay
        self._max_delay = max_delay

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        if error.category not in RETRYABLE or attempt >= self._tries:
            return False
        delay = self.delay(error, attempt)
        run.session.emit(
            AssistantTurnRetry(
                turn_id=str(run.turn),
                model=run.options.model,
                reason=f"{error.message} Retry {attempt + 1} of {self._tries} in {delay:.1f} s.",
            )
        )
        await asyncio.sleep(delay)
        return True

    def delay(self, error: ModelError, attempt: int) -> float:
        """Seconds to wait before try number `attempt` + 1."""
        import random

        backoff = min(self._max_delay, self._base_delay * (1 << attempt))
        jittered = backoff * random.uniform(0.5, 1.0)
        return max(jittered, error.retry_after or 0.0)
