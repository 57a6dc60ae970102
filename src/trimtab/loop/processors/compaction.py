"""Keeps a conversation within the model's window: the old part becomes a summary."""

import asyncio
from typing import TYPE_CHECKING

from trimtab.contracts.errors import ModelError
from trimtab.contracts.options import Thresholds
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.processors.images import count_images

if TYPE_CHECKING:
    from collections.abc import Callable

    from trimtab.loop.compact import Carryover, Job, Outcome

FORCED = 2
"""How often one prompt may be saved from a request that was too large."""


class Compaction(Processor):
    """One summary is made at a time, while the run goes on; it takes effect between two turns.

    `limit` is the window of a model of unknown size. Without thresholds nothing is summarised
    unless a person asks, or a service refuses a request as too large.
    """

    def __init__(
        self, make_carryover: "Callable[[], Carryover]", limit: int, thresholds: Thresholds | None
    ) -> None:
        self._make_keeper = make_carryover
        self._limit = limit
        self._thresholds = thresholds
        self._job: Job | None = None
        self._forced = 0
        self._failed_at = 0.0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        self._forced = 0
        return prompt

    async def before_request(self, run: Run) -> Stop | None:
        if self._job is not None and self._job.done:
            self._apply(self._job)
        thresholds = self._thresholds
        full = self._fullness(run)
        if run.session.conversation.size > run.agent.model.byte_limit and not count_images(run):
            full = max(full, 1.0)
        if thresholds is None or full < max(thresholds.background, self._failed_at):
            return None
        if len(run.session.conversation.messages) < thresholds.fewest:
            return None
        job = self._job or self._start(run, "threshold")
        if full >= thresholds.exhausted:
            await job.wait()
            self._apply(job, must=True)
        return None

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        # Images go first: without them the request may fit.
        if error.category != "too_large" or count_images(run) or self._forced >= FORCED:
            return False
        if len(run.session.conversation.messages) < Thresholds().fewest:
            return False
        self._forced += 1
        await self.compact(run, "context_limit_retry")
        return True

    async def compact(self, run: Run, trigger: str, instructions: str = "") -> "Outcome":
        """Summarise everything so far, now. If no summary can be had, what must not be lost is
        kept without one."""
        while (earlier := self._job) is not None:
            await earlier.wait()
            self._apply(earlier)
        job = self._start(run, trigger, instructions)
        try:
            await job.wait()
        except asyncio.CancelledError:
            job.cancel()
            self._job = None
            raise
        return self._apply(job, must=True)

    def _start(self, run: Run, trigger: str, instructions: str = "") -> "Job":
        from trimtab.loop.compact import Job

        limit = run.agent.model.prompt_limit or self._limit
        self._job = Job(
            run, self._make_keeper(), trigger=trigger, limit=limit, instructions=instructions
        )
        return self._job

    def _apply(self, job: "Job", *, must: bool = False) -> "Outcome":
        """Let a summary take effect. A background one that failed is tried again when it must."""
        if self._job is job:
            self._job = None
        outcome = job.finish(must=must)
        thresholds = self._thresholds or Thresholds()
        self._failed_at = 0.0 if outcome.success else thresholds.exhausted
        return outcome

    def _fullness(self, run: Run) -> float:
        if run.measured is None:
            return 0.0
        return run.measured.total / (run.agent.model.prompt_limit or self._limit)
