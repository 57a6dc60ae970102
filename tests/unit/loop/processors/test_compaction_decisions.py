"""When a conversation is summarised, and what is said when it is not."""

from typing import Any

import pytest

from loopkit import make_run
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.options import Thresholds
from trimtab.contracts.run import Measured, Prompt, Run
from trimtab.loop.compact import Checkpoint, SummaryWriters
from trimtab.loop.processors.compaction import CACHE_SECONDS, MAX_FORCED, Compaction
from trimtab.loop.side_calls import Writer

WINDOW = 10_000
PICTURE = {"type": "blob", "data": "aGk=", "mimeType": "image/png", "displayName": "a.png"}


class Notes:
    instruction = "Summarise."

    async def carry(self, budget: int) -> str:
        return "CARRIED"

    async def summarizer(self) -> Writer | None:
        return None

    def file(self, summary: str) -> Checkpoint | None:
        return None


class Scene:
    """A conversation that fills a share of the window, and its compaction."""

    def __init__(
        self,
        *replies: Any,
        messages: int = 6,
        thresholds: Thresholds | None = Thresholds(),  # noqa: B008
        **options: Any,
    ) -> None:
        self.now = 0.0
        self.run: Run = make_run(list(replies), **options)
        for number in range(messages):
            self.run.session.emit(UserMessage(content=f"message {number} " + "x" * 400))
        self.writers = SummaryWriters(lambda: self.now)
        self.compaction = Compaction(
            Notes, WINDOW, thresholds, lambda: self.writers, lambda: self.now
        )

    def fill(self, share: float, system: int = 0) -> None:
        tokens = round(share * WINDOW)
        self.run.measured = Measured(system=system, tools=0, conversation=tokens - system)

    async def request(self, share: float, system: int = 0) -> None:
        self.fill(share, system)
        assert await self.compaction.before_request(self.run) is None

    def of(self, kind: str) -> list[Any]:
        return self.run.session.of(kind)  # type: ignore[attr-defined, no-any-return]

    @property
    def skipped(self) -> list[tuple[str, float]]:
        return [
            (event.reason, event.utilization) for event in self.of("trimtab.compaction_skipped")
        ]

    @property
    def triggers(self) -> list[str]:
        return [event.trigger for event in self.of("session.compaction_start")]


async def test_below_the_threshold_each_tenth_of_the_window_is_told_once() -> None:
    scene = Scene()
    for share in (0.05, 0.12, 0.15, 0.31, 0.25, 0.79):
        await scene.request(share)
    assert scene.skipped == [
        ("low_utilization", 0.12),
        ("low_utilization", 0.31),
        ("low_utilization", 0.25),
        ("low_utilization", 0.79),
    ]
    assert scene.of("trimtab.compaction_skipped")[0].threshold == 0.8
    assert scene.triggers == []


async def test_at_the_threshold_a_summary_begins_beside_the_run() -> None:
    scene = Scene("A summary.")
    await scene.request(0.8)
    assert (scene.triggers, scene.skipped) == (["threshold"], [])
    assert scene.of("session.compaction_complete") == [], "the run did not wait for it"
    await scene.request(0.81)
    assert scene.triggers == ["threshold"], "one at a time"


async def test_a_summary_takes_effect_before_a_later_request() -> None:
    scene = Scene("A summary.")
    await scene.request(0.8)
    (task,) = scene.run.tasks
    await task
    await scene.request(0.5)
    (done,) = scene.of("session.compaction_complete")
    assert done.success
    assert len(scene.run.session.conversation.messages) == 1


@pytest.mark.parametrize("messages", [3, 4])
async def test_a_conversation_of_few_messages_is_not_worth_it(messages: int) -> None:
    scene = Scene("A summary.", messages=messages)
    await scene.request(0.9)
    assert scene.skipped == ([("too_few_messages", 0.9)] if messages < 4 else [])
    assert scene.triggers == ([] if messages < 4 else ["threshold"])


async def test_at_the_upper_threshold_the_run_waits_for_the_summary() -> None:
    scene = Scene("A summary.")
    await scene.request(0.95)
    (done,) = scene.of("session.compaction_complete")
    assert (done.success, done.trigger) == (True, "threshold")


async def test_a_summary_under_way_is_awaited_when_the_window_is_full() -> None:
    scene = Scene({"text": "", "repeat": 2})
    await scene.request(0.8)
    await scene.request(0.96)
    (done,) = scene.of("session.compaction_complete")
    assert done.outcome == "mechanical", "it must get shorter, with a summary or without"
    assert len(scene.triggers) == 1


async def test_a_verbatim_history_is_never_summarised_by_itself() -> None:
    scene = Scene(thresholds=Thresholds(history="verbatim"))
    await scene.request(0.99)
    assert scene.skipped == [("verbatim", 0.99)]
    assert scene.triggers == []


async def test_without_thresholds_nothing_happens_and_nothing_is_said() -> None:
    scene = Scene(thresholds=None)
    await scene.request(0.99)
    assert (scene.skipped, scene.triggers) == ([], [])


@pytest.mark.parametrize(
    ("added", "worth"), [(0.099, False), (0.1, True)], ids=["too little", "enough"]
)
async def test_a_compaction_must_free_an_eighth_of_the_threshold(added: float, worth: bool) -> None:
    scene = Scene("A summary.")
    await scene.request(0.85, system=round((0.85 - added) * WINDOW))
    assert scene.skipped == ([] if worth else [("little_to_gain", 0.85)])
    assert len(scene.triggers) == int(worth)


async def test_what_the_last_compaction_left_does_not_count_as_new() -> None:
    scene = Scene("A summary.", "Another.")
    scene.fill(0.9)
    outcome = await scene.compaction.compact(scene.run, "manual")
    for number in range(6):
        scene.run.session.emit(UserMessage(content=f"more {number}"))
    left = outcome.tokens_after
    await scene.request(0.82, system=round(0.82 * WINDOW) - left - 999)
    assert scene.skipped == [("little_to_gain", 0.82)]
    await scene.request(0.82, system=round(0.82 * WINDOW) - left - 1_000)
    assert scene.triggers == ["manual", "threshold"]


async def test_a_model_that_failed_is_not_asked_in_the_background() -> None:
    scene = Scene("never")
    scene.writers.note_failure(Writer.of(scene.run), None)
    await scene.request(0.9)
    assert scene.skipped == [("writer_failed", 0.9)]
    await scene.request(0.95)
    (done,) = scene.of("session.compaction_complete")
    assert done.outcome == "mechanical"


async def test_a_full_window_without_conversation_is_warned_of_once() -> None:
    scene = Scene()
    for _ in range(2):
        await scene.request(0.97, system=round(0.9 * WINDOW))
    (warning,) = scene.of("session.warning")
    assert warning.warning_type == "context_full"
    assert scene.triggers == []


@pytest.mark.parametrize(
    ("history", "seconds", "share", "summarised"),
    [
        ("cache", CACHE_SECONDS + 1, 0.4, True),
        ("cache", CACHE_SECONDS, 0.4, False),
        ("cache", CACHE_SECONDS + 1, 0.39, False),
        ("summarized", CACHE_SECONDS + 1, 0.4, False),
    ],
)
async def test_a_conversation_whose_cache_expired_may_be_summarised_early(
    history: Any, seconds: float, share: float, summarised: bool
) -> None:
    scene = Scene("A summary.", thresholds=Thresholds(history=history))
    await scene.request(share)
    assert scene.triggers == [], "nothing was sent before"
    scene.now += seconds
    await scene.request(share)
    assert len(scene.of("session.compaction_complete")) == int(summarised)


async def test_a_conversation_with_too_many_bytes_is_full() -> None:
    scene = Scene("A summary.", byte_limit=1_000)
    await scene.request(0.1)
    assert len(scene.of("session.compaction_complete")) == 1


async def test_images_are_removed_before_a_conversation_is_summarised_for_its_bytes() -> None:
    scene = Scene("A summary.", byte_limit=1_000)
    scene.run.session.emit(UserMessage(content="look", attachments=[PICTURE]))
    await scene.request(0.2)
    assert scene.triggers == []
    assert scene.skipped == [("low_utilization", 0.2)]


async def test_the_window_of_the_model_counts_where_it_is_known() -> None:
    scene = Scene("A summary.", prompt_limit=2 * WINDOW)
    await scene.request(0.9)
    assert scene.skipped == [("low_utilization", 0.45)]


@pytest.mark.parametrize(
    ("category", "messages", "image", "again"),
    [
        ("too_large", 6, False, True),
        ("too_large", 3, False, False),
        ("too_large", 6, True, False),
        ("rate_limit", 6, False, False),
    ],
)
async def test_a_request_that_was_too_large_is_made_again_after_a_compaction(
    category: str, messages: int, image: bool, again: bool
) -> None:
    scene = Scene("A summary.", messages=messages)
    if image:
        scene.run.session.emit(UserMessage(content="look", attachments=[PICTURE]))
    error = ModelError("No.", category=category)
    assert await scene.compaction.on_request_error(scene.run, error, 0) is again
    assert scene.triggers == (["context_limit_retry"] if again else [])


async def test_a_new_prompt_may_force_compactions_again() -> None:
    scene, error = Scene(*["A summary."] * 5), ModelError("No.", category="too_large")

    async def force() -> bool:
        for number in range(5):
            scene.run.session.emit(UserMessage(content=f"again {number}"))
        return await scene.compaction.on_request_error(scene.run, error, 0)

    assert [await force() for _ in range(MAX_FORCED + 1)] == [True] * MAX_FORCED + [False]
    prompt = Prompt(text="next")
    assert await scene.compaction.on_prompt(scene.run, prompt) is prompt
    assert await force()


async def test_a_summary_that_a_person_asks_for_waits_for_the_one_under_way() -> None:
    scene = Scene("First.", "Second.")
    await scene.request(0.8)
    outcome = await scene.compaction.compact(scene.run, "manual", "mind the tests")
    assert outcome.success
    assert scene.triggers == ["threshold", "manual"]
    first, second = scene.of("session.compaction_complete")
    assert first.summary_content.startswith("First.")
    assert second.summary_content.startswith("Second.")
    assert (first.custom_instructions, second.custom_instructions) == (None, "mind the tests")
    assert second.token_limit == WINDOW


async def test_failed_models_are_remembered_for_the_session_or_at_least_for_the_run() -> None:
    scene = Scene()
    assert scene.compaction.writers is scene.writers
    alone = Compaction(Notes, WINDOW, None)
    assert alone.writers is alone.writers
