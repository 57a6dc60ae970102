"""Retries failed model calls after a visible delay, then with the fallback models."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.assistant import AssistantTurnRetry
from trimtab.contracts.events.own import RetryWait
from trimtab.contracts.events.session import SessionModelChange, SessionWarning
from trimtab.contracts.options import RetryPolicy
from trimtab.contracts.processor import Processor
from trimtab.contracts.provider import Price, Provider
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.prompt import record_prompt

RETRYABLE = frozenset(("retryable", "overloaded", "rate_limit", "transport"))
REPLACEABLE = RETRYABLE | {"quota", "not_found"}
"""Categories of errors that another model or service may not have."""
DEFAULT_POLICY = RetryPolicy()
CUT_RETRIES = 2
CUT = (
    "Your last reply was cut at the output limit inside a tool call, which was not run. Take a "
    "smaller step: split the work over several calls with short arguments."
)
COUNTDOWN_SECONDS = 5.0
"""The interval of the events that count a delay down."""


class Fallback(msgspec.Struct, frozen=True, kw_only=True):
    """A model to continue with if the current one fails."""

    provider: Provider
    model: str
    price: Price | None = None
    prompt_limit: int | None = None


class Fallbacks:
    """The fallback models that are left, in the person's order; none unless configured."""

    def __init__(self, models: Sequence[Fallback] = ()) -> None:
        self._models = list(models)

    def switch(self, run: Run, error: ModelError) -> bool:
        """Replace a model that failed by the next one; return False if none is left."""
        if error.category not in REPLACEABLE or not self._models:
            return False
        self._take_next(run, f"{run.agent.model.name} cannot answer ({error.message})")
        return True

    def switch_when_stuck(self, run: Run) -> bool:
        """Replace a model that repeats itself by the next one; return False if none is left."""
        if not self._models:
            return False
        self._take_next(run, f"{run.agent.model.name} repeats itself")
        return True

    def _take_next(self, run: Run, reason: str) -> None:
        """Switch to the next model, and emit events about it."""
        fallback, before = self._models.pop(0), run.agent.model
        model = msgspec.structs.replace(
            before,
            provider=fallback.provider,
            name=fallback.model,
            price=fallback.price,
            prompt_limit=fallback.prompt_limit,
        )
        run.agent = msgspec.structs.replace(run.agent, model=model)
        run.session.emit(
            SessionWarning(
                warning_type="model_fallback",
                message=f"{reason}; continuing with the fallback model {fallback.model}.",
            )
        )
        run.session.emit(
            SessionModelChange(
                previous_model=before.name, new_model=fallback.model, cause="fallback"
            )
        )


class Retry(Processor):
    """Exponential back-off with jitter; a longer Retry-After of the service takes precedence,
    up to the longest delay of the policy.

    When a model has used up its retries, the next of the `fallbacks` gets as many. If a rate limit
    persists, `last_resort` is called; it returns True if it has replaced the model.
    """

    def __init__(
        self,
        policy: RetryPolicy = DEFAULT_POLICY,
        fallbacks: Fallbacks | None = None,
        tick: float = COUNTDOWN_SECONDS,
        last_resort: Callable[[ModelError], Awaitable[bool]] | None = None,
    ) -> None:
        self._policy = policy
        self.fallbacks = fallbacks or Fallbacks()
        self._tick = tick
        self._last_resort = last_resort
        self._first_attempt = 0

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        if not attempt:
            self._first_attempt = 0
        if error.code == "output_limit" and attempt < CUT_RETRIES:
            record_prompt(run, Prompt(text=CUT, source="system", billable=False), delivery="queued")
            return True
        tried = attempt - self._first_attempt
        if error.category in RETRYABLE and tried < self._policy.retries:
            await self._wait(run, error, tried)
            return True
        self._first_attempt = attempt + 1
        if self.fallbacks.switch(run, error):
            return True
        if self._last_resort is None or error.category != "rate_limit":
            return False
        return await self._last_resort(error)

    async def _wait(self, run: Run, error: ModelError, tried: int) -> None:
        left = self.delay(error, tried)
        progress = f"Retry {tried + 1} of {self._policy.retries} in {left:.1f} s."
        run.session.emit(
            AssistantTurnRetry(
                turn_id=str(run.turn),
                model=run.agent.model.name,
                reason=f"{error.message} {progress}",
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
        """Return the seconds to wait after this number of attempts."""
        import random

        backoff = min(self._policy.max_delay, self._policy.delay * (1 << min(tried, 30)))
        jittered = backoff * random.uniform(0.5, 1.0)
        return max(jittered, min(error.retry_after or 0.0, self._policy.max_wait))
