"""A compaction: the room it leaves, the model it asks, and what its events say."""

import asyncio
from typing import Any

import pytest

from loopkit import EchoTool, MemorySession, make_run
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.events.tool import ToolExecutionComplete
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.run import Measured, Run
from trimtab.loop.compact import (
    CANCELLED,
    CLIPPED_RESULT,
    EMPTY,
    INSTEAD,
    NOT_ASKED,
    Checkpoint,
    Job,
    Space,
    SummaryWriters,
    Window,
    clip,
    measure,
)
from trimtab.loop.side_calls import Writer
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider

PICTURE = {"type": "blob", "data": "aGk=", "mimeType": "image/png", "displayName": "a.png"}


class Notes:
    """Carries a fixed text, and notes its budget and what was filed."""

    instruction = "Summarise."

    def __init__(self, carried: str = "CARRIED", checkpoint: Checkpoint | None = None) -> None:
        self.carried, self.checkpoint = carried, checkpoint
        self.budgets: list[int] = []
        self.filed: list[str] = []
        self.writer: Writer | None = None

    async def carry(self, budget: int) -> str:
        self.budgets.append(budget)
        return self.carried

    async def summarizer(self) -> Writer | None:
        return self.writer

    def file(self, summary: str) -> Checkpoint | None:
        self.filed.append(summary)
        return self.checkpoint


def talk(*replies: Any, **options: Any) -> Run:
    """A conversation of four messages: 400, 800, 4,000 and 40 characters."""
    run = make_run(list(replies), tools=[EchoTool()], **options)
    run.session.emit(SystemMessage(role="system", content="s" * 80))
    run.session.emit(UserMessage(content="u" * 400))
    request = {"toolCallId": "c", "name": "echo", "arguments": {"text": "x"}, "type": "function"}
    run.session.emit(AssistantMessage(message_id="m", content="a" * 800, tool_requests=[request]))
    run.session.emit(
        ToolExecutionComplete(tool_call_id="c", success=True, result={"content": "r" * 4_000})
    )
    run.session.emit(UserMessage(content="b" * 40))
    run.measured = Measured(system=20, tools=100, conversation=2_000)
    return run


def session_of(run: Run) -> MemorySession:
    assert isinstance(run.session, MemorySession)
    return run.session


def requests(run: Run) -> list[Any]:
    return run.agent.model.provider.requests  # type: ignore[attr-defined, no-any-return]


def begin(
    run: Run,
    notes: Notes | None = None,
    trigger: str = "manual",
    limit: int = 10_000,
    instructions: str = "",
    writers: SummaryWriters | None = None,
) -> Job:
    return Job(
        run,
        notes or Notes(),
        writers or SummaryWriters(),
        trigger=trigger,
        window=Window(limit, 0.4),
        instructions=instructions,
    )


async def finish(job: Job, *, must: bool = True) -> Any:
    await job.wait()
    return job.finish(must=must)


@pytest.mark.parametrize(
    ("limit", "fixed", "conversation", "characters", "tokens", "per_token"),
    [
        (10_000, 1_000, 1_000, 4_000, 3_000, 4.0),  # 40 % less what is fixed
        (10_000, 3_000, 1_000, 4_000, 2_000, 4.0),  # at least a fifth
        (10_000, 8_000, 1_000, 4_000, 1_000, 4.0),  # or what is left up to nine tenths
        (10_000, 9_900, 1_000, 4_000, 500, 4.0),  # and in any case a twentieth
        (10_000, 1_000, 1_000, 2_000, 3_000, 2.0),
        (10_000, 1_000, 1_000, 100, 3_000, 1.0),
        (10_000, 1_000, 1_000, 90_000, 3_000, 8.0),
        (10_000, 1_000, 0, 4_000, 3_000, 4.0),
        (10_000, 1_000, 1_000, 0, 3_000, 4.0),
    ],
)
def test_the_room_after_a_compaction_is_a_share_of_the_window(
    limit: int, fixed: int, conversation: int, characters: int, tokens: int, per_token: float
) -> None:
    before = Measured(system=fixed - 400, tools=400, conversation=conversation)
    space = Space.find(limit, 0.4, before, characters)
    assert (space.total, space.per_token) == (int(tokens * per_token), per_token)
    assert space.carryover == int(space.total * 0.6)


@pytest.mark.parametrize(
    ("text", "limit", "clipped"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "ab\n[2 characters left out]\nef"),
        ("abcdef", 5, "ab\n[1 character left out]\nef"),
    ],
)
def test_the_middle_of_a_long_text_is_removed(text: str, limit: int, clipped: str) -> None:
    assert clip(text, limit) == clipped


def test_a_conversation_counts_at_least_as_much_as_its_texts() -> None:
    run = talk()
    assert measure(run).conversation == 2_000
    run.measured = Measured(system=20, tools=100, conversation=7)
    by_texts = measure(run).conversation
    assert 1_300 < by_texts < 1_400
    assert (measure(run).system, measure(run).tools) == (20, 100)
    run.measured = None
    estimated = measure(run)
    assert (estimated.system, estimated.conversation) == (20, by_texts)
    spec = run.agent.specs[0]
    assert estimated.tools == len(f"{spec.name}{spec.description}{spec.parameters}") // 4
    assert estimated.size == run.session.conversation.size > 5_000


@pytest.mark.parametrize(
    ("category", "forgotten"),
    [
        ("retryable", True),
        ("overloaded", True),
        ("rate_limit", True),
        ("transport", True),
        ("auth", False),
        ("too_large", False),
        (None, False),
    ],
)
def test_a_temporary_failure_is_forgotten_after_ten_minutes(category: Any, forgotten: bool) -> None:
    now = [5.0]
    writers = SummaryWriters(lambda: now[0])
    provider = ScriptedProvider(Script.of([]))
    writer = Writer(provider=provider, model="small")
    assert not writers.has_failed(writer)
    writers.note_failure(writer, ModelError("x", category=category) if category else None)
    assert writers.has_failed(writer)
    assert not writers.has_failed(Writer(provider=provider, model="large"))
    now[0] += 599.9
    assert writers.has_failed(writer)
    now[0] += 0.1
    assert writers.has_failed(writer) is not forgotten
    writers.note_success(writer)
    assert not writers.has_failed(writer)


async def test_the_start_of_a_compaction_says_how_large_everything_is() -> None:
    run = talk("A summary.")
    run.turn = 4
    job = begin(run, trigger="threshold")
    (start,) = session_of(run).of("session.compaction_start")
    assert (start.system_tokens, start.tool_definitions_tokens) == (20, 100)
    assert (start.conversation_tokens, start.current_tokens) == (2_000, 2_120)
    assert (start.token_limit, start.trigger, start.turn_id) == (10_000, "threshold", "4")
    assert start.messages_length == 4
    assert run.tasks
    await finish(job)
    assert run.tasks == set()


async def test_a_summary_replaces_the_conversation_and_its_figures_are_recorded() -> None:
    reply = {"text": " A summary. ", "usage": {"input": 2_100, "output": 9}}
    run = talk(reply)
    notes = Notes(checkpoint=Checkpoint(number=3, path="003.md", title="First steps"))
    outcome = await finish(begin(run, notes, instructions="mind the tests"))
    text = "A summary.\n\nCARRIED"
    (done,) = session_of(run).of("session.compaction_complete")
    (start,) = session_of(run).of("session.compaction_start")
    assert done.compaction_attempt_id == start.compaction_attempt_id
    assert (done.success, done.error, done.outcome, done.outcome_reason) == (True, None, None, None)
    assert done.summary_content == text
    assert notes.filed == [text]
    assert (done.checkpoint_number, done.checkpoint_path) == (3, "003.md")
    assert done.checkpoint_title == "First steps"
    assert (done.messages_removed, done.pre_compaction_messages_length) == (3, 4)
    assert (done.custom_instructions, done.trigger) == ("mind the tests", "manual")
    assert done.token_limit == 10_000
    left = int(len(text) / (5_292 / 2_000))
    assert done.tokens_removed == pytest.approx(2_000 - left, abs=5)
    assert done.pre_compaction_tokens == 2_120
    assert done.post_compaction_tokens == 2_120 - done.tokens_removed
    assert done.conversation_tokens == 2_000 - done.tokens_removed
    assert (done.system_tokens, done.tool_definitions_tokens) == (20, 100)
    assert done.compaction_tokens_used["inputTokens"] == 2_100
    assert done.compaction_tokens_used["outputTokens"] == 9
    assert run.measured == Measured(system=20, tools=100, conversation=done.conversation_tokens)
    assert outcome.success
    assert (outcome.messages_removed, outcome.tokens_removed) == (3, done.tokens_removed)
    assert (outcome.tokens_before, outcome.tokens_after) == (2_000, done.conversation_tokens)
    assert (outcome.error, outcome.summary) == (None, text)
    assert len(run.session.conversation.messages) == 1


async def test_the_outcome_is_recorded_once() -> None:
    run = talk("A summary.")
    job = begin(run)
    assert await finish(job) is job.finish(must=False)
    assert len(session_of(run).of("session.compaction_complete")) == 1


async def test_messages_that_arrive_meanwhile_stay_and_count() -> None:
    run = talk("A summary.")
    job = begin(run)
    run.session.emit(UserMessage(content="later " * 200))
    await finish(job)
    (done,) = session_of(run).of("session.compaction_complete")
    assert (done.messages_removed, done.pre_compaction_messages_length) == (3, 5)
    assert "later" in str(run.session.conversation.messages[1])
    assert done.tokens_removed < 2_000 - 1_200 / 4


async def test_the_model_is_asked_as_in_the_conversation_itself() -> None:
    run = talk("A summary.", stream=False)
    await finish(begin(run, instructions="mind the tests"))
    (request,) = requests(run)
    assert (request.system, request.stream) == ("s" * 80, False)
    assert [tool.name for tool in request.tools] == ["echo"]
    assert request.cache_key == run.session.id
    assert len(request.messages) == 5
    asked = request.messages[-1].parts[0].text
    assert asked == "Summarise.\n\nThe person adds: mind the tests"
    (recorded,) = session_of(run).of("trimtab.model_call")
    assert (recorded.purpose, recorded.attempt) == ("compaction", 0)


@pytest.mark.parametrize(("trigger", "cut"), [("context_limit_retry", True), ("manual", False)])
async def test_results_are_clipped_if_the_service_found_the_request_too_large(
    trigger: str, cut: bool
) -> None:
    run = talk("A summary.")
    await finish(begin(run, trigger=trigger))
    text = requests(run)[0].messages[2].text
    assert ("left out" in text) == cut
    assert len(text) == (CLIPPED_RESULT + len("\n[2,000 characters left out]\n") if cut else 4_000)
    assert requests(run)[0].messages[0].parts[0].text == "u" * 400


@pytest.mark.parametrize(
    ("status", "attempts", "remembered"),
    [(401, 1, True), (402, 1, True), (500, 2, True), (400, 2, True)],
)
async def test_an_error_that_another_try_cannot_help_is_not_paid_twice(
    status: int, attempts: int, remembered: bool
) -> None:
    run, writers = (
        talk({"error": {"status": status, "message": "no"}, "repeat": 3}),
        SummaryWriters(),
    )
    outcome = await finish(begin(run, writers=writers))
    calls = session_of(run).of("trimtab.model_call")
    assert [call.attempt for call in calls] == list(range(attempts))
    assert writers.has_failed(Writer.of(run)) is remembered
    assert outcome.error


async def test_a_second_try_may_succeed_and_clears_the_model() -> None:
    run, writers = talk({"text": ""}, "A summary."), SummaryWriters()
    writers.note_failure(Writer.of(run), None)
    outcome = await finish(begin(run, writers=writers))
    assert outcome.summary.startswith("A summary.")
    assert not writers.has_failed(Writer.of(run))


async def test_without_a_summary_the_carryover_and_the_last_messages_are_kept() -> None:
    run = talk({"text": "", "repeat": 2})
    run.session.emit(UserMessage(content="look", attachments=[PICTURE]))
    outcome = await finish(begin(run, Notes(checkpoint=Checkpoint(number=1, path="1.md"))))
    (done,) = session_of(run).of("session.compaction_complete")
    assert (done.success, done.error, done.outcome) == (False, EMPTY, "mechanical")
    assert (done.outcome_reason, done.checkpoint_title) == (INSTEAD, None)
    assert done.checkpoint_number == 1
    carried, _, recent = done.summary_content.partition("\n\n")
    assert carried == "CARRIED"
    lines = recent.split("\n")
    assert (lines[0], lines[-1]) == ("<recent_messages>", "</recent_messages>")
    assert lines[1] == f"user: {'u' * 400}"
    assert lines[2].startswith("assistant: " + "a" * 300)
    assert any("left out]" in line for line in lines)
    assert "[calls echo(" in recent
    assert "user: " + "b" * 40 in lines
    assert "look\n[image]" in recent or "[image]" in recent
    assert outcome.success, "the conversation is shorter"
    (warning,) = session_of(run).of("session.warning")
    assert warning.warning_type == "compaction_without_summary"
    assert EMPTY in warning.message


async def test_of_many_messages_the_last_twelve_are_kept() -> None:
    run = make_run([{"text": "", "repeat": 2}])
    for number in range(20):
        run.session.emit(UserMessage(content=f"message {number}"))
    outcome = await finish(begin(run))
    kept = [line for line in outcome.summary.split("\n") if line.startswith("user: ")]
    assert kept == [f"user: message {number}" for number in range(8, 20)]


async def test_a_background_summary_that_fails_changes_nothing() -> None:
    run = talk({"text": "", "repeat": 2})
    outcome = await finish(begin(run, trigger="threshold"), must=False)
    (done,) = session_of(run).of("session.compaction_complete")
    assert (done.success, done.outcome, done.error) == (False, "failed", EMPTY)
    assert (done.summary_content, done.outcome_reason) == (None, None)
    assert (done.messages_removed, done.tokens_removed) == (0, 0)
    assert (outcome.success, outcome.tokens_after) == (False, 2_000)
    assert len(run.session.conversation.messages) == 4
    assert session_of(run).of("session.warning") == []


async def test_a_model_that_failed_before_is_not_asked_unless_a_person_wants_it() -> None:
    run, writers = talk("A summary."), SummaryWriters()
    writers.note_failure(Writer.of(run), None)
    outcome = await finish(begin(run, trigger="threshold", writers=writers))
    assert (outcome.error, requests(run)) == (NOT_ASKED, [])
    outcome = await finish(begin(run, trigger="manual", writers=writers))
    assert outcome.error is None


async def test_a_cancelled_compaction_is_recorded_as_such() -> None:
    run = talk({"text": "never", "delay": 60})
    job = begin(run)
    for _ in range(20):  # lets the call begin
        await asyncio.sleep(0)
    assert requests(run)
    job.cancel()
    outcome = await finish(job)
    assert (outcome.success, outcome.error) == (False, CANCELLED)
    assert (outcome.messages_removed, outcome.tokens_removed) == (0, 0)
    assert (outcome.tokens_before, outcome.tokens_after) == (0, 0)
    (done,) = session_of(run).of("session.compaction_complete")
    assert (done.success, done.outcome, done.error) == (False, "cancelled", CANCELLED)
    assert done.summary_content is None


async def test_a_bug_in_the_carryover_is_not_hidden() -> None:
    class Broken(Notes):
        async def carry(self, budget: int) -> str:
            raise ZeroDivisionError

    job = begin(talk("never"), Broken())
    with pytest.raises(ZeroDivisionError):
        await finish(job)


@pytest.mark.parametrize(("limit", "budget"), [(10_000, 5_000), (1_000, 400)])
async def test_the_carryover_gets_a_share_of_the_room(limit: int, budget: int) -> None:
    run, notes = talk("A summary."), Notes()
    await finish(begin(run, notes, limit=limit))
    (given,) = notes.budgets
    assert given == min(
        Space.find(
            limit, 0.4, Measured(system=20, tools=100, conversation=2_000), run_characters()
        ).carryover,
        max(2_000, limit),
    )
    assert given >= budget


def run_characters() -> int:
    return talk().session.conversation.characters


async def test_a_long_summary_is_clipped_to_the_room_that_the_carryover_leaves() -> None:
    run, notes = talk("long " * 10_000), Notes("c" * 300)
    outcome = await finish(begin(run, notes, limit=1_000))
    space = Space.find(
        1_000, 0.4, Measured(system=20, tools=100, conversation=2_000), run_characters()
    )
    assert "left out]" in outcome.summary
    assert space.total <= len(outcome.summary) < space.total + 60


async def test_another_model_may_write_the_summary() -> None:
    run, notes = talk(), Notes()
    small = ScriptedProvider(Script.of(["By the small one."]))
    notes.writer = Writer(provider=small, model="small")
    outcome = await finish(begin(run, notes))
    assert outcome.summary.startswith("By the small one.")
    assert (len(small.requests), requests(run)) == (1, [])
    assert small.requests[0].model == "small"


async def test_a_second_compaction_without_a_summary_keeps_the_first_one() -> None:
    carried = "<user_messages>\nkeep\n</user_messages>"
    run = talk("The vault is 7.", {"text": "", "repeat": 2})
    await finish(begin(run, Notes(carried)))
    run.session.emit(UserMessage(content="and then"))
    outcome = await finish(begin(run, Notes(carried)))
    assert outcome.summary == (
        "<earlier_summary>\nThe vault is 7.\n</earlier_summary>\n\n"
        f"{carried}\n\n<recent_messages>\nuser: and then\n</recent_messages>"
    )
