"""Failed model calls are tried again when that can help, after a wait everybody can see."""

import asyncio
from collections.abc import Awaitable, Callable

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.assistant import AssistantTurnRetry
from trimtab.contracts.events.own import RetryWait
from trimtab.contracts.options import RetryPolicy
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.fallback import Fallbacks
from trimtab.loop.prompt import record_prompt

RETRYABLE = frozenset(("retryable", "overloaded", "rate_limit", "transport"))
USUAL = RetryPolicy()
CUT_RETRIES = 2
CUT = (
    "Your last reply was cut at the output limit inside a tool call, which was not run. Take a "
    "smaller step: split the work over several calls with short arguments."
)
TICK = 5.0
"""Seconds between two events of a countdown: often enough to see that it lives."""


class Retry(Processor):
    """Exponential back-off with jitter; the service's own Retry-After wins when it is longer,
    up to the longest wait of the policy.

    When a model has had all its tries, the next of the `fallbacks` gets as many. A rate limit that
    still holds is put to `last_resort`, which may have changed the model when it says True.
    """

    def __init__(
        self,
        policy: RetryPolicy = USUAL,
        fallbacks: Fallbacks | None = None,
        tick: float = TICK,
        last_resort: Callable[[ModelError], Awaitable[bool]] | None = None,
    ) -> None:
        self._policy = policy
        self._fallbacks = fallbacks or Fallbacks()
        self._tick = tick
        self._last_resort = last_resort
        self._first = 0

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        if not attempt:
            self._first = 0
        if error.code == "output_limit" and attempt < CUT_RETRIES:
            record_prompt(run, Prompt(text=CUT, source="system", billable=False), delivery="queued")
            return True
        tried = attempt - self._first
        if error.category in RETRYABLE and tried < self._policy.retries:
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
        which = f"Retry {tried + 1} of {self._policy.retries} in {left:.1f} s."
        run.session.emit(
            AssistantTurnRetry(
                turn_id=str(run.turn),
                model=run.agent.model.name,
                reason=f"{error.message} {which}",
                retry_in_seconds=round(left, 3),
                retry=tried + 1,
                max_retries=self._policy.retries,
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

        backoff = min(self._policy.max_delay, self._policy.delay * (1 << min(tried, 30)))
        jittered = backoff * random.uniform(0.5, 1.0)
        return max(jittered, min(error.retry_after or 0.0, self._policy.max_wait))
