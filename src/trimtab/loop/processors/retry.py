"""Failed model calls are tried again when that can help, after a wait everybody can see."""

import asyncio
from collections.abc import Awaitable, Callable

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.assistant import AssistantTurnRetry
from trimtab.contracts.events.own import RetryWait
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Run
from trimtab.loop.fallback import Fallbacks

RETRYABLE = frozenset(("retryable", "overloaded", "rate_limit", "transport"))
TICK = 5.0
"""Seconds between two events of a countdown: often enough to see that it lives."""


class Retry(Processor):
    """Exponential back-off with jitter; the service's own Retry-After wins when it is longer.

    When a model has had all its tries, the next of the `fallbacks` gets as many. A rate limit that
    still holds is put to `last_resort`, which may have changed the model when it says True.
    """

    def __init__(
        self,
        tries: int = 5,
        base_delay: float = 1.0,
        max_delay: float = 60.0,
        fallbacks: Fallbacks | None = None,
        tick: float = TICK,
        last_resort: Callable[[ModelError], Awaitable[bool]] | None = None,
    ) -> None:
        self._tries = tries
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._fallbacks = fallbacks or Fallbacks()
        self._tick = tick
        self._last_resort = last_resort
        self._first = 0

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        if not attempt:
            self._first = 0
        tried = attempt - self._first
        if error.category in RETRYABLE and tried < self._tries:
            await self._wait(run, error, tried)
            return True
        self._first = attempt + 1
        if self._fallbacks.switch(run, error):
            return True
        if self._last_resort is None or error.category != "rate_limit":
            return False
        return await self._last_resort(error)

    async def _wait(self, run: Run, error: ModelError, tried: int) -> None:
        left = self.delay(error, tried)
        run.session.emit(
            AssistantTurnRetry(
                turn_id=str(run.turn),
                model=run.agent.model.name,
                reason=f"{error.message} Retry {tried + 1} of {self._tries} in {left:.1f} s.",
                retry_in_seconds=round(left, 3),
                retry=tried + 1,
                max_retries=self._tries,
            )
        )
        while left > self._tick:
            await asyncio.sleep(self._tick)
            left -= self._tick
            run.session.emit(RetryWait(turn_id=str(run.turn), seconds_left=round(left, 3)))
        await asyncio.sleep(left)

    def delay(self, error: ModelError, tried: int) -> float:
        """Seconds to wait after so many tries."""
        import random

        backoff = min(self._max_delay, self._base_delay * (1 << min(tried, 30)))
        jittered = backoff * random.uniform(0.5, 1.0)
        return max(jittered, error.retry_after or 0.0)
