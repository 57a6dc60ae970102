"""Keeps a conversation within the model's context window by summarising its older part."""

import asyncio
import time
from typing import TYPE_CHECKING

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.own import CompactionSkipped
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.options import Thresholds
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.processors.images import count_images

if TYPE_CHECKING:
    from collections.abc import Callable

    from trimtab.loop.compact import Carryover, Job, Outcome, SummaryWriters

MAX_FORCED = 2
"""The number of compactions per prompt after requests that a service rejected as too large."""
MIN_GAIN = 0.125
"""The share of the threshold that a compaction must free to be worth its price."""
MIN_TOLD = 0.1
"""The share of the window below which it is not worth telling that nothing is summarised."""
CACHE_SECONDS = 300.0
"""The time after which services forget the beginning of a conversation that is not used."""
COLD = 0.4
"""The share of the window from which a conversation is summarised if it must be sent anew."""
TARGET = 0.5
"""The share of the threshold that a compaction aims at."""


class Compaction(Processor):
    """Summarises in the background, one summary at a time; it takes effect between two turns.

    `limit` is the assumed window of a model of unknown size. Without thresholds, it summarises
    only if a person asks or a service rejects a request as too large. `writers` remembers which
    models failed to write a summary: they are not asked again, and when the window is full the
    conversation is shortened without a summary.
    """

    def __init__(
        self,
        build_carryover: "Callable[[], Carryover]",
        limit: int,
        thresholds: Thresholds | None,
        writers: "Callable[[], SummaryWriters] | None" = None,
        clock: "Callable[[], float]" = time.monotonic,
    ) -> None:
        self._build_carryover = build_carryover
        self._limit = limit
        self._thresholds = thresholds
        self._shared_writers = writers
        self._writers: SummaryWriters | None = None
        self._job: Job | None = None
        self._forced = 0
        self._tokens_after = 0
        """The tokens of the conversation right after the last compaction."""
        self._warned_full = False
        self._clock = clock
        self._last_request: float | None = None
        self._skipped: tuple[str, int] | None = None
        """The last reason for not summarising that was told, and the tenth of the window used."""

    @property
    def writers(self) -> "SummaryWriters":
        """The record of failed summaries, which all agents of a session share."""
        if self._writers is None:
            from trimtab.loop.compact import SummaryWriters

            self._writers = self._shared_writers() if self._shared_writers else SummaryWriters()
        return self._writers

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        self._forced = 0
        return prompt

    async def before_request(self, run: Run) -> Stop | None:
        if self._job is not None and self._job.done:
            self._apply(self._job)
        cold = self._has_cold_cache()
        self._last_request = self._clock()
        thresholds = self._thresholds
        if thresholds is None:
            return None
        if cold and thresholds.history == "cache" and self._fullness(run) >= COLD:
            await self._make_room(run)
        if reason := await self._find_obstacle(run, thresholds):
            self._tell_skipped(run, reason, thresholds)
            return None
        if self._fullness(run) < thresholds.exhausted:
            if self._job is None:
                self._start(run, "threshold")
            return None
        if self._job is not None:
            # It started some turns ago, and the messages since then may fill the window alone.
            await self._job.wait()
            self._apply(self._job, must=True)
        if self._fullness(run) >= thresholds.exhausted:
            await self._make_room(run)
        return None

    async def _find_obstacle(self, run: Run, thresholds: Thresholds) -> str:
        """Return why the conversation is not summarised now, or an empty text."""
        fullness = self._fullness(run)
        if thresholds.history == "verbatim":
            return "verbatim"
        if fullness < thresholds.background:
            return "low_utilization"
        if len(run.session.conversation.messages) < thresholds.min_messages:
            return "too_few_messages"
        if fullness >= thresholds.exhausted or self._job is not None:
            return ""
        if not self._frees_enough(run):
            return "little_to_gain"
        return "writer_failed" if await self._is_hopeless(run) else ""

    def _tell_skipped(self, run: Run, reason: str, thresholds: Thresholds) -> None:
        """Emit why nothing is summarised, when the reason or the tenth of the window changes."""
        fullness = self._fullness(run)
        told = reason, int(fullness * 10)
        if told == self._skipped or (reason == "low_utilization" and fullness < MIN_TOLD):
            return
        self._skipped = told
        run.session.emit(
            CompactionSkipped(
                reason=reason, utilization=round(fullness, 3), threshold=thresholds.background
            )
        )

    def _has_cold_cache(self) -> bool:
        """Return True if the service has probably forgotten the conversation it was last sent."""
        last = self._last_request
        return last is not None and self._clock() - last > CACHE_SECONDS

    async def _make_room(self, run: Run) -> None:
        """Compact a full conversation now, or warn that it would not help."""
        if self._frees_enough(run):
            await self.compact(run, "threshold")
        elif not self._warned_full:
            self._warned_full = True
            message = (
                "The context window is full, but too little of it is conversation for a "
                "compaction to help; choose a model with a larger window, or fewer tools."
            )
            run.session.emit(SessionWarning(warning_type="context_full", message=message))

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        # Images are removed first: without them the request may fit.
        if error.category != "too_large" or count_images(run) or self._forced >= MAX_FORCED:
            return False
        if len(run.session.conversation.messages) < Thresholds().min_messages:
            return False
        self._forced += 1
        await self.compact(run, "context_limit_retry")
        return True

    async def compact(self, run: Run, trigger: str, instructions: str = "") -> "Outcome":
        """Summarise the conversation now; if no model writes a summary, keep the carryover only."""
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
            self._build_carryover(),
            self.writers,
            trigger=trigger,
            window=Window(self._window(run), TARGET * threshold),
            instructions=instructions,
        )
        return self._job

    def _apply(self, job: "Job", *, must: bool = False) -> "Outcome":
        """Record the outcome of a job, whose summary takes effect with that."""
        if self._job is job:
            self._job = None
        outcome = job.finish(must=must)
        if outcome.success:
            self._tokens_after = outcome.tokens_after
        return outcome

    async def _is_hopeless(self, run: Run) -> bool:
        """Return True if the model that would write the summary has failed before."""
        from trimtab.loop.compact import find_writer

        return self.writers.has_failed(await find_writer(run, self._build_carryover()))

    def _frees_enough(self, run: Run) -> bool:
        """Return True if enough was added since the last compaction to make another worthwhile."""
        if self._is_too_large(run):
            return True
        added = run.measured.conversation - self._tokens_after if run.measured else 0
        threshold = (self._thresholds or Thresholds()).background
        return added >= MIN_GAIN * threshold * self._window(run)

    def _is_too_large(self, run: Run) -> bool:
        """Return True if the request has too many bytes, and no images that could be removed."""
        return run.session.conversation.size > run.agent.model.byte_limit and not count_images(run)

    def _window(self, run: Run) -> int:
        return run.agent.model.prompt_limit or self._limit

    def _fullness(self, run: Run) -> float:
        if self._is_too_large(run):
            return 1.0
        return run.measured.total / self._window(run) if run.measured else 0.0
