"""Keeps a conversation within the model's window: the old part becomes a summary."""

import asyncio
from typing import TYPE_CHECKING

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.options import Thresholds
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.processors.images import count_images

if TYPE_CHECKING:
    from collections.abc import Callable

    from trimtab.loop.compact import Carryover, Job, Outcome, SummaryWriters

FORCED = 2
"""How often one prompt may be saved from a request that was too large."""
WORTHWHILE = 0.125
"""The part of the threshold that a compaction must be able to free to be worth its price."""
TARGET = 0.5
"""The part of the threshold that a compaction aims at, so that the next one is a long way off."""


class Compaction(Processor):
    """One summary is made at a time, while the run goes on; it takes effect between two turns.

    `limit` is the window of a model of unknown size. Without thresholds nothing is summarised
    unless a person asks, or a service refuses a request as too large. `writers` remembers which
    models failed to write one: no summary of theirs is begun in the background, and when the
    window is full the conversation is shortened without asking them.
    """

    def __init__(
        self,
        make_carryover: "Callable[[], Carryover]",
        limit: int,
        thresholds: Thresholds | None,
        writers: "Callable[[], SummaryWriters] | None" = None,
    ) -> None:
        self._make_keeper = make_carryover
        self._limit = limit
        self._thresholds = thresholds
        self._make_writers = writers
        self._writers: SummaryWriters | None = None
        self._job: Job | None = None
        self._forced = 0
        self._kept = 0
        """Tokens of the conversation right after it was compacted last."""
        self._told_full = False

    @property
    def writers(self) -> "SummaryWriters":
        """The memory of failed summaries, which the agents of a session share."""
        if self._writers is None:
            from trimtab.loop.compact import SummaryWriters

            self._writers = self._make_writers() if self._make_writers else SummaryWriters()
        return self._writers

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        self._forced = 0
        return prompt

    async def before_request(self, run: Run) -> Stop | None:
        if self._job is not None and self._job.done:
            self._apply(self._job)
        thresholds = self._thresholds
        if thresholds is None or self._fullness(run) < thresholds.background:
            return None
        if len(run.session.conversation.messages) < thresholds.min_messages:
            return None
        if self._fullness(run) < thresholds.exhausted:
            if self._job is None and self._frees_enough(run) and not await self._is_hopeless(run):
                self._start(run, "threshold")
            return None
        if self._job is not None:
            # It was begun some turns ago, and what came since may fill the window by itself.
            await self._job.wait()
            self._apply(self._job, must=True)
        if self._fullness(run) >= thresholds.exhausted:
            await self._make_room(run)
        return None

    async def _make_room(self, run: Run) -> None:
        """Compact a full conversation now, or say that it would not help."""
        if self._frees_enough(run):
            await self.compact(run, "threshold")
        elif not self._told_full:
            self._told_full = True
            message = (
                "The window of the model is full, and hardly any of it is conversation, so it is "
                "not compacted; choose a model with a larger window, or fewer tools."
            )
            run.session.emit(SessionWarning(warning_type="context_full", message=message))

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        # Images go first: without them the request may fit.
        if error.category != "too_large" or count_images(run) or self._forced >= FORCED:
            return False
        if len(run.session.conversation.messages) < Thresholds().min_messages:
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
        from trimtab.loop.compact import Job, Window

        threshold = (self._thresholds or Thresholds()).background
        self._job = Job(
            run,
            self._make_keeper(),
            self.writers,
            trigger=trigger,
            window=Window(self._window(run), TARGET * threshold),
            instructions=instructions,
        )
        return self._job

    def _apply(self, job: "Job", *, must: bool = False) -> "Outcome":
        """Let a summary take effect."""
        if self._job is job:
            self._job = None
        outcome = job.finish(must=must)
        if outcome.success:
            self._kept = outcome.tokens_after
        return outcome

    async def _is_hopeless(self, run: Run) -> bool:
        """Return whether the model that would write the summary has failed to."""
        from trimtab.loop.compact import find_writer

        return self.writers.has_failed(await find_writer(run, self._make_keeper()))

    def _frees_enough(self, run: Run) -> bool:
        """Return whether what was said since the last compaction is worth another one."""
        if self._is_too_large(run):
            return True
        said = run.measured.conversation - self._kept if run.measured else 0
        threshold = (self._thresholds or Thresholds()).background
        return said >= WORTHWHILE * threshold * self._window(run)

    def _is_too_large(self, run: Run) -> bool:
        """Return whether a service would refuse the request for its bytes; images go first."""
        return run.session.conversation.size > run.agent.model.byte_limit and not count_images(run)

    def _window(self, run: Run) -> int:
        return run.agent.model.prompt_limit or self._limit

    def _fullness(self, run: Run) -> float:
        if self._is_too_large(run):
            return 1.0
        return run.measured.total / self._window(run) if run.measured else 0.0
