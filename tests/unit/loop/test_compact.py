"""A model that cannot write summaries is paid for once, and the conversation gets shorter anyway."""

import asyncio
from typing import Any

import pytest

from loopkit import EchoTool, MemorySession, call, change_agent, drained, make_run
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.options import Thresholds
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.compact import Checkpoint, SummaryWriters
from trimtab.loop.processors.compaction import Compaction
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.loop.side_calls import Writer
from trimtab.providers.meter import ContextMeter
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider

CALLS = 50
FAILING: dict[str, Any] = {
    "nothing": {"text": ""},
    "blanks": {"text": " \n "},
    "a server error": {"error": 500},
    "an overload": {"error": 529},
    "a bad request": {"error": 400},
    "too large": {"error": 413},
    "no key": {"error": 401},
}
USELESS: dict[str, Any] = {
    "garbage": {"text": "banana banana"},
    "an echo": {"text": "word " * 100_000},
}


class Notes:
    """Carries as much as it may, as the words of a talkative person do."""

    instruction = "Summarise."

    def __init__(self, writer: Writer | None) -> None:
        self._writer = writer
        self.carried = ""

    async def carry(self, budget: int) -> str:
        words = ("keep it " * 20_000)[:budget]
        return self.carried or f"<user_messages>\n{words}\n</user_messages>"

    async def summarizer(self) -> Writer | None:
        return self._writer

    def file(self, summary: str) -> Checkpoint | None:
        return None


class Bench:
    """A run of fifty calls, each of which fills a share of the window."""

    def __init__(self, answer: Any, *, window: int, growth: float, fixed: float) -> None:
        self.asked = ScriptedProvider(Script.of({"replies": [], "otherwise": answer}))
        self.now = 0.0
        notes = Notes(Writer(provider=self.asked, model="small"))
        self.window = window
        self.compaction = Compaction(
            lambda: notes, window, Thresholds(), lambda: SummaryWriters(lambda: self.now)
        )

        async def fill(args: Any) -> ToolResult:
            for _ in range(20):  # lets the summary be written meanwhile
                await asyncio.sleep(0)
            return ToolResult(text=args["text"] + "x" * int(growth * window * 4))

        steps = [{"tools": [call(text=str(number))]} for number in range(CALLS)]
        self.run: Run = make_run(
            [*steps, "done"],
            "go",
            tools=[EchoTool(on_run=fill)],
            processors=[ContextUsage(ContextMeter("scripted"), window), self.compaction],
            prompt_limit=window,
        )
        self.run.session.emit(SystemMessage(role="system", content="s" * int(fixed * window * 4)))

    async def work(self) -> MemorySession:
        return await drained(self.run)


def shrinkage(session: MemorySession) -> list[float]:
    """For each compaction, the size of the request after it as a share of that before it."""
    shares, before = [], 0
    for event in session.events:
        if event.type == "session.usage_info":
            before = event.data.current_tokens
        elif event.type == "session.compaction_complete" and event.data.summary_content:
            shares.append(event.data.post_compaction_tokens / before)
            before = event.data.post_compaction_tokens
    return shares


@pytest.mark.parametrize("window", [4_000, 64_000])
@pytest.mark.parametrize("name", FAILING)
async def test_a_model_that_fails_is_asked_for_one_summary_in_fifty_calls(
    name: str, window: int
) -> None:
    bench = Bench(FAILING[name], window=window, growth=0.02, fixed=0.1)
    session = await bench.work()
    assert len(bench.asked.requests) <= 2
    assert len(session.of("session.compaction_start")) <= 3
    done = [event for event in session.of("session.compaction_complete") if event.summary_content]
    assert 1 <= len(done) <= 2
    assert all(event.outcome == "mechanical" for event in done)
    assert max(shrinkage(session)) <= 0.6
    warnings = [event.warning_type for event in session.of("session.warning")]
    assert warnings == ["compaction_without_summary"] * len(done)


@pytest.mark.parametrize("fixed", [0.1, 0.5])
@pytest.mark.parametrize("growth", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("name", [*FAILING, *USELESS])
async def test_every_compaction_makes_room_and_the_next_is_not_due_at_once(
    name: str, growth: float, fixed: float
) -> None:
    answer = (FAILING | USELESS)[name]
    bench = Bench(answer, window=16_000, growth=growth, fixed=fixed)
    session = await bench.work()
    done = [event for event in session.of("session.compaction_complete") if event.summary_content]
    said = CALLS * growth
    assert len(done) <= 2 + said / (0.4 if fixed < 0.5 else 0.1)
    assert len(bench.asked.requests) <= (2 if name in FAILING else len(done) + 1)
    assert max(shrinkage(session), default=0.0) <= 0.92
    sizes = [event.current_tokens for event in session.of("session.usage_info")]
    assert max(sizes) <= bench.window * (1.05 + growth)


async def test_a_window_full_of_tools_is_said_once_and_not_compacted_over_and_over() -> None:
    bench = Bench(FAILING["nothing"], window=16_000, growth=0.002, fixed=0.96)
    session = await bench.work()
    warnings = [event.warning_type for event in session.of("session.warning")]
    assert warnings.count("context_full") == 1
    assert len(session.of("session.compaction_start")) <= 2
    assert len(bench.asked.requests) <= 2


@pytest.mark.parametrize(("name", "again"), [("an overload", True), ("nothing", False)])
async def test_a_failure_that_passes_is_forgotten_after_a_while(name: str, again: bool) -> None:
    bench = Bench(FAILING[name], window=4_000, growth=0.1, fixed=0.1)
    await bench.work()
    assert len(bench.asked.requests) == 2
    bench.now += 601
    writer = Writer(provider=bench.asked, model="small")
    assert bench.compaction.writers.has_failed(writer) != again


async def test_another_model_is_asked_at_once() -> None:
    bench = Bench(FAILING["nothing"], window=4_000, growth=0.1, fixed=0.1)
    await bench.work()
    other = Writer(provider=bench.asked, model="large")
    assert not bench.compaction.writers.has_failed(other)


async def test_a_person_who_asks_for_a_summary_gets_another_try() -> None:
    bench = Bench(FAILING["nothing"], window=4_000, growth=0.05, fixed=0.1)
    await bench.work()
    assert len(bench.asked.requests) == 2
    await bench.compaction.compact(bench.run, "manual")
    assert len(bench.asked.requests) == 4
    await bench.compaction.compact(bench.run, "context_limit_retry")
    assert len(bench.asked.requests) == 4


def summarised_once(summary: str, carried: str = "") -> Bench:
    """A run whose first compaction gets a summary, and no later one."""
    bench = Bench({"text": ""}, window=4_000, growth=0.1, fixed=0.1)
    answers = {"replies": [{"text": summary}], "otherwise": {"text": ""}}
    bench.asked = ScriptedProvider(Script.of(answers))
    notes = Notes(Writer(provider=bench.asked, model="small"))
    notes.carried = carried
    pipeline = (
        ContextUsage(ContextMeter("scripted"), bench.window),
        Compaction(lambda: notes, bench.window, Thresholds()),
    )
    change_agent(bench.run, pipeline=pipeline)
    return bench


def summaries(session: MemorySession) -> list[str]:
    done = session.of("session.compaction_complete")
    return [event.summary_content for event in done if event.summary_content]


async def test_a_summary_made_before_survives_when_the_next_cannot_be_written() -> None:
    done = summaries(await summarised_once("The secret is in vault 7.").work())
    assert len(done) >= 3
    assert all("vault 7" in summary for summary in done)
    assert done[-1].count("<user_messages>") == 1
    assert done[-1].count("<earlier_summary>") == 1


async def test_a_long_summary_made_before_leaves_room_for_the_last_messages() -> None:
    carried = "<user_messages>\nkeep it\n</user_messages>"
    bench = summarised_once("It is long. " * 5_000, carried)
    earlier, _, rest = summaries(await bench.work())[1].partition("</earlier_summary>")
    assert earlier.startswith("<earlier_summary>\nIt is long.")
    assert len(earlier) < 4_000
    assert "xxxx" in rest


@pytest.mark.parametrize(("name", "shorter"), [("too large", True), ("a server error", False)])
async def test_only_a_request_that_was_too_large_is_tried_again_with_less(
    name: str, shorter: bool
) -> None:
    bench = Bench(FAILING[name], window=64_000, growth=0.02, fixed=0.1)
    await bench.work()
    first, second = (len(repr(request.messages)) for request in bench.asked.requests[:2])
    assert (second < first) == shorter
