"""Compaction: what is summarised, when, and what survives a summary that says nothing."""

from typing import Any

import pytest

from loopkit import EchoTool, call, change_agent, drained, make_run
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.user import UserMessage as SentMessage
from trimtab.contracts.messages import ToolMessage, UserMessage
from trimtab.contracts.options import Thresholds
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.compact import Checkpoint
from trimtab.loop.ledger import Allowance, Ledger, Spending
from trimtab.loop.processors.compaction import MAX_FORCED, Compaction
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.loop.side_calls import Writer
from trimtab.providers.meter import ContextMeter
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider

LIMIT = 1000
LONG = "word " * 400
EARLY = Thresholds(background=0.6, exhausted=0.7)


class Notes:
    """Carries one sentence and remembers what was filed."""

    instruction = "Summarise."

    def __init__(self, writer: Writer | None = None) -> None:
        self.filed: list[str] = []
        self._writer = writer

    async def carry(self, budget: int) -> str:
        return "<user_messages>keep the tests green</user_messages>"

    async def summarizer(self) -> Writer | None:
        return self._writer

    def file(self, summary: str) -> Checkpoint | None:
        self.filed.append(summary)
        return Checkpoint(number=len(self.filed), path=f"{len(self.filed):03}.md")


def compacting(
    replies: Any,
    *prompts: str | Prompt,
    notes: Notes | None = None,
    thresholds: Thresholds | None = EARLY,
) -> Run:
    carryover = notes or Notes()
    return make_run(
        replies,
        *prompts,
        tools=[EchoTool()],
        processors=[
            ContextUsage(ContextMeter("scripted"), LIMIT),
            Compaction(lambda: carryover, LIMIT, thresholds),
        ],
    )


def texts(run: Run) -> list[str]:
    return [
        message.parts[0].text if isinstance(message, UserMessage) else message.text  # type: ignore[union-attr]
        for message in run.session.conversation.messages
    ]


@pytest.mark.proves("COMP-05", "COMP-06")
async def test_nothing_is_summarised_below_the_threshold_or_with_few_messages() -> None:
    run = compacting(["short", "short"], "one", "two")
    session = await drained(run)
    assert not session.of("session.compaction_start")
    run = compacting(["fine"], LONG)
    session = await drained(run)
    assert not session.of("session.compaction_start")


@pytest.mark.proves("COMP-01", "COMP-16", "COMP-18", "COMP-24", "OUTER-06")
async def test_a_full_window_is_summarised_before_the_next_call() -> None:
    notes = Notes()
    run = compacting(
        [
            {"tools": [call(text=LONG)]},
            {"tools": [call(text="again")]},
            "<overview>A summary.</overview>",
            "done",
        ],
        "go",
        notes=notes,
    )
    session = await drained(run)
    (start,) = session.of("session.compaction_start")
    (complete,) = session.of("session.compaction_complete")
    assert start.trigger == complete.trigger == "threshold"
    assert complete.success
    assert complete.tokens_removed > 0
    assert complete.pre_compaction_tokens == start.current_tokens
    assert complete.checkpoint_number == 1
    assert complete.checkpoint_path == "001.md"
    first, *rest = texts(run)
    assert "A summary." in first
    assert "keep the tests green" in first
    assert rest == ["done"]
    (recorded,) = [c for c in session.of("trimtab.model_call") if c.purpose == "compaction"]
    assert recorded.status == "success"
    first_call, _, summary, last_call = run.agent.model.provider.requests  # type: ignore[attr-defined]
    assert "Summarise." in str(summary.messages[-1])
    assert [tool.name for tool in summary.tools] == [tool.name for tool in first_call.tools]
    assert "A summary." in str(last_call.messages[0])
    kinds = session.types()
    last_start = len(kinds) - 1 - kinds[::-1].index("model.call_start")
    assert kinds.index("session.compaction_complete") < last_start


@pytest.mark.proves("COMP-07", "COMP-08", "COMP-10", "COMP-12")
async def test_between_the_thresholds_the_agent_goes_on_and_later_messages_survive() -> None:
    writer = ScriptedProvider(Script.of([{"text": "SUMMARY", "delay": 0.05}]))
    notes = Notes(Writer(provider=writer, model="small"))
    run = compacting(
        [
            {"tools": [call(text=LONG)]},
            {"tools": [call(text="beside"), call(text="also")]},
            {"tools": [call(text="later")], "delay": 0.2},
            "done",
        ],
        "go",
        notes=notes,
        thresholds=Thresholds(background=0.5, exhausted=30.0),
    )
    session = await drained(run)
    kinds = session.types()
    began = kinds.index("session.compaction_start")
    ended = kinds.index("session.compaction_complete")
    assert "tool.execution_complete" in kinds[began:ended], "the agent worked meanwhile"
    assert texts(run)[0].startswith("SUMMARY")
    kept = [m for m in run.session.conversation.messages if isinstance(m, ToolMessage)]
    assert "echo later" in [message.text for message in kept]
    (recorded,) = [c for c in session.of("trimtab.model_call") if c.purpose == "compaction"]
    assert recorded.requested_model == "small"


@pytest.mark.proves("COMP-11", "COMP-19")
async def test_a_request_that_is_too_large_forces_a_compaction_and_is_made_again() -> None:
    run = compacting(
        [
            {"tools": [call(text="one")]},
            {"tools": [call(text="two")]},
            {"error": {"status": 413, "message": "too large"}},
            "SHORT",
            "done",
        ],
        "go",
        thresholds=None,
    )
    session = await drained(run)
    (complete,) = session.of("session.compaction_complete")
    assert complete.trigger == "context_limit_retry"
    assert complete.success
    assert texts(run)[-1] == "done"


async def test_a_conversation_that_stays_too_large_ends_after_two_compactions() -> None:
    too_large = {"error": {"status": 413, "message": "too large"}}
    steps: list[Any] = [{"tools": [call(text=str(n))]} for n in range(4)]
    for _ in range(8):
        steps += [too_large, "SHORT"]
    run = compacting(steps, "go", thresholds=None)
    with pytest.raises(Exception, match="too large"):
        await drained(run)
    assert len(run.session.of("session.compaction_complete")) <= 2  # type: ignore[attr-defined]


@pytest.mark.proves("COMP-17")
@pytest.mark.parametrize("answer", ["", {"error": {"status": 500, "message": "broken"}}])
async def test_two_useless_summaries_leave_what_matters_and_say_so(answer: Any) -> None:
    run = compacting(
        [{"tools": [call(text=LONG)]}, {"tools": [call(text="x")]}, answer, answer, "done"], "go"
    )
    session = await drained(run)
    paid = [c for c in session.of("trimtab.model_call") if c.purpose == "compaction"]
    assert len(paid) == 2
    (complete,) = session.of("session.compaction_complete")
    assert (complete.success, complete.outcome) == (False, "mechanical")
    assert complete.error
    assert texts(run)[-1] == "done"  # the session goes on
    assert "keep the tests green" in texts(run)[0]
    assert "echo x" in texts(run)[0]
    warnings = [w.warning_type for w in session.of("session.warning")]
    assert warnings == ["compaction_without_summary"]


async def test_a_summary_is_not_bought_when_the_budget_does_not_allow_it() -> None:
    run = compacting(
        [{"tools": [call(text=LONG)]}, {"tools": [call(text="x")]}, "done"],
        "go",
    )
    usage = run.session.projections.usage  # type: ignore[attr-defined]
    ledger = Ledger(Allowance(tokens=10), lambda: Spending(calls=usage.calls))
    change_agent(run, budget=ledger)
    session = await drained(run)
    assert not [c for c in session.of("trimtab.model_call") if c.purpose == "compaction"]
    (complete,) = session.of("session.compaction_complete")
    assert complete.outcome == "mechanical"
    assert "budget" in complete.error


async def test_a_person_may_ask_for_it_with_words_of_their_own() -> None:
    run = compacting(["first", "second", "MADE"], "one", "two", thresholds=None)
    session = await drained(run)
    (compaction,) = [p for p in run.agent.pipeline if isinstance(p, Compaction)]
    outcome = await compaction.compact(run, "manual", "mind the tests")
    assert outcome.success
    assert outcome.messages_removed == 3
    (message,) = run.session.conversation.messages
    assert isinstance(message, UserMessage)
    assert session.of("session.compaction_complete")[0].custom_instructions == "mind the tests"


async def test_a_service_that_finds_everything_too_large_is_not_asked_for_ever() -> None:
    run = compacting([], "go")
    compaction = run.agent.pipeline[-1]
    error = ModelError("Too large.", category="too_large")
    tried = []
    for attempt in range(MAX_FORCED + 2):
        for number in range(20):
            run.session.emit(SentMessage(content=f"word {number}"))
        tried.append(await compaction.on_request_error(run, error, attempt))
    assert tried == [True] * MAX_FORCED + [False] * 2
