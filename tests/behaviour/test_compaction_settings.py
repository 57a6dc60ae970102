"""Compaction: its thresholds, what a failed one says, how history and titles are chosen."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from clikit import Cli, bash, serving
from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.options import Thresholds
from trimtab.contracts.run import Measured, Run
from trimtab.loop.compact import Checkpoint
from trimtab.loop.processors.compaction import CACHE_SECONDS, Compaction
from trimtab.loop.side_calls import Writer

SUMMARY = {"when": {"last": "about to be replaced by a summary"}}
WINDOW = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "16000"}


class Notes:
    instruction = "Summarise."

    async def carry(self, budget: int) -> str:
        return "<user_messages>words</user_messages>"

    async def summarizer(self) -> Writer | None:
        return None

    def file(self, summary: str) -> Checkpoint | None:
        return None


class Endless(Notes):
    async def carry(self, budget: int) -> str:
        await asyncio.Event().wait()
        return ""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def stored(cli: Cli, wire_name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in cli.logs()[0].read_bytes().splitlines()]
    return [line["data"] for line in lines if line["type"] == wire_name]


async def before(
    fullness: float, messages: int, notes: Callable[[], Notes] = Notes, **options: Any
) -> tuple[Run, Compaction, Clock]:
    """A run whose last request filled so much of the window, before its next one."""
    clock = Clock()
    compaction = Compaction(notes, 1000, Thresholds(**options), clock=clock)
    replies = [{"tools": [call(text="x")]} for _ in range(messages // 2 - 1)]
    run = make_run([*replies, "done", "SUMMARY"], "go", tools=[EchoTool()])
    await drained(run)
    run.measured = Measured(system=0, tools=0, conversation=int(fullness * 1000))
    return run, compaction, clock


@pytest.mark.proves("COMP-02", "COMP-23")
@pytest.mark.parametrize(
    ("fullness", "messages", "begins", "waits", "reason"),
    [
        (0.79, 6, False, False, "low_utilization"),
        (0.80, 6, True, False, ""),
        (0.94, 6, True, False, ""),
        (0.95, 6, True, True, ""),
        (0.99, 2, False, False, "too_few_messages"),
        (0.80, 4, True, False, ""),
    ],
)
async def test_the_default_thresholds_are_80_and_95_percent_and_four_messages(
    fullness: float, messages: int, begins: bool, waits: bool, reason: str
) -> None:
    run, compaction, _ = await before(fullness, messages)
    assert await compaction.before_request(run) is None
    session: Any = run.session
    assert len(session.of("session.compaction_start")) == begins
    assert len(session.of("session.compaction_complete")) == waits
    told = [(skip.reason, skip.utilization, skip.threshold)
            for skip in session.of("trimtab.compaction_skipped")]  # fmt: skip
    assert told == ([(reason, fullness, 0.8)] if reason else [])
    for task in list(run.tasks):
        task.cancel()


@pytest.mark.proves("COMP-04")
@pytest.mark.parametrize(
    ("measured", "begins"),
    [
        (Measured(system=0, tools=0, conversation=790), False),
        (Measured(system=0, tools=10, conversation=790), True),
        (Measured(system=300, tools=300, conversation=200), True),
        (Measured(system=300, tools=299, conversation=200), False),
    ],
)
async def test_a_window_is_filled_by_messages_and_the_definitions_of_tools(
    measured: Measured, begins: bool
) -> None:
    run, compaction, _ = await before(0.1, 6)
    run.measured = measured
    assert await compaction.before_request(run) is None
    session: Any = run.session
    assert len(session.of("session.compaction_start")) == begins
    for task in list(run.tasks):
        task.cancel()


class Slow(Notes):
    """Carries nothing over until it may."""

    may = asyncio.Event()

    async def carry(self, budget: int) -> str:
        await self.may.wait()
        return ""


@pytest.mark.proves("COMP-08", "COMP-09")
async def test_a_full_window_waits_for_the_summary_that_is_being_made() -> None:
    run, compaction, _ = await before(0.85, 6, Slow)
    Slow.may = asyncio.Event()
    session: Any = run.session
    await compaction.before_request(run)
    await compaction.before_request(run)
    assert len(session.of("session.compaction_start")) == 1
    assert not session.of("session.compaction_complete")
    run.measured = Measured(system=0, tools=0, conversation=960)
    waiting = asyncio.ensure_future(compaction.before_request(run))
    await asyncio.sleep(0)
    assert not waiting.done()
    Slow.may.set()
    async with asyncio.timeout(50):
        await waiting
    (complete,) = session.of("session.compaction_complete")
    assert complete.success


async def test_a_skipped_compaction_is_told_once_for_each_tenth_of_the_window() -> None:
    run, compaction, _ = await before(0.31, 6)
    for fullness in (0.31, 0.35, 0.42, 0.05):
        run.measured = Measured(system=0, tools=0, conversation=int(fullness * 1000))
        await compaction.before_request(run)
    session: Any = run.session
    told = [skip.utilization for skip in session.of("trimtab.compaction_skipped")]
    assert told == [0.31, 0.42]


@pytest.mark.proves("COMP-21")
@pytest.mark.parametrize(
    ("history", "seconds", "fullness", "begins"),
    [
        ("summarized", CACHE_SECONDS + 1, 0.5, False),
        ("cache", CACHE_SECONDS + 1, 0.5, True),
        ("cache", CACHE_SECONDS - 1, 0.5, False),
        ("cache", CACHE_SECONDS + 1, 0.3, False),
        ("cache", CACHE_SECONDS - 1, 0.85, True),
        ("verbatim", CACHE_SECONDS + 1, 0.9, False),
        ("verbatim", CACHE_SECONDS + 1, 0.99, False),
    ],
)
async def test_the_history_is_verbatim_or_summarised_by_choice_and_by_the_cache(
    history: str, seconds: float, fullness: float, begins: bool
) -> None:
    run, compaction, clock = await before(0.1, 6, history=history)
    await compaction.before_request(run)
    clock.now += seconds
    run.measured = Measured(system=0, tools=0, conversation=int(fullness * 1000))
    await compaction.before_request(run)
    session: Any = run.session
    assert len(session.of("session.compaction_start")) == begins
    for task in list(run.tasks):
        task.cancel()


@pytest.mark.proves("COMP-13", "COMP-14", "COMP-17")
async def test_a_summary_covers_what_was_there_at_its_start_and_reports_its_end(cli: Cli) -> None:
    todo = {"name": "sql", "arguments": {"description": "x",
            "query": "INSERT INTO todos (id, title) VALUES ('a-todo', 'Paint the shed')"}}  # fmt: skip
    script = {"replies": [{**SUMMARY, "text": "<overview>THE SUMMARY</overview>"},
                          {"tools": [todo]}, *[{"tools": [bash("seq 1000 3500")]}] * 3, "done"]}  # fmt: skip
    async with serving(script) as server:
        await cli.use(server).ask("remember the shed", env=WINDOW)
        asked = [request.json["messages"] for request in server.requests
                 if "about to be replaced" in json.dumps(request.json["messages"][-1])]  # fmt: skip
        last = json.dumps(server.requests[-1].json["messages"])
    (start, *_), (complete, *_) = (
        stored(cli, f"session.compaction_{name}") for name in ("start", "complete")
    )
    assert complete["success"]
    assert "THE SUMMARY" in complete["summaryContent"]
    assert int(start["turnId"]) >= 2
    assert start["currentTokens"] > 0.8 * 16000
    # The thread that is summarised: our system prompt once, in front, and no other such message.
    assert [message["role"] for message in asked[0]].count("system") == 1
    assert asked[0][0]["role"] == "system"
    assert start["messagesLength"] == len(asked[0]) - 2
    assert "remember the shed" in last
    assert "Paint the shed" in last


async def test_an_aborted_compaction_is_recorded_as_cancelled() -> None:
    run, compaction, _ = await before(0.85, 6, Endless)
    await compaction.before_request(run)
    (job,) = run.tasks
    await asyncio.sleep(0)  # it begins to write the summary
    job.cancel()
    await asyncio.wait((job,))
    session: Any = run.session
    (complete,) = session.of("session.compaction_complete")
    assert (complete.success, complete.outcome) == (False, "cancelled")
    run.measured = Measured(system=0, tools=0, conversation=100)
    await compaction.before_request(run)
    assert len(session.of("session.compaction_complete")) == 1


async def test_a_summary_that_failed_is_not_called_one(cli: Cli) -> None:
    failing = {"error": 400, "when": "checkpoint_title"}
    async with serving({"replies": [failing, "hello"]}) as server:
        await cli.use(server).ask("hi")
        outcome = await cli.ask("/compact", "--continue")
    said = [data["message"] for data in outcome.of("session.info") if data["infoType"] == "command"]
    assert said[-1].startswith("1 message shortened without a summary: the conversation went from")
    (complete,) = stored(cli, "session.compaction_complete")
    assert (complete["success"], complete["outcome"]) == (False, "mechanical")


@pytest.mark.proves("COMP-22")
@pytest.mark.parametrize(
    ("setting", "wanted"), [({"title": True}, True), ({"title": False}, False), ({}, True)]
)
async def test_a_title_is_asked_for_unless_the_setting_says_no(
    cli: Cli, setting: dict[str, bool], wanted: bool
) -> None:
    (cli.home / "settings.json").write_text(json.dumps({"compaction": setting}))
    text = "<overview>x</overview><checkpoint_title>Paint the shed</checkpoint_title>"
    script = {"replies": [{**SUMMARY, "text": text if wanted else "x"}, "hello", "again"]}
    async with serving(script) as server:
        await cli.use(server).ask("hi")
        await cli.ask("/compact", "--continue")
        instruction = server.requests[-1].json["messages"][-1]["content"]
    assert ("checkpoint_title" in json.dumps(instruction)) is wanted
    (complete,) = stored(cli, "session.compaction_complete")
    assert complete.get("checkpointTitle") == ("Paint the shed" if wanted else None)


@pytest.mark.parametrize("value", [{"history": "x"}, {"nope": 1}, {"background": 2}, 7])
async def test_a_wrong_setting_is_refused_with_what_to_do(cli: Cli, value: Any) -> None:
    (cli.home / "settings.json").write_text(json.dumps({"compaction": value}))
    async with serving(["x"]) as server:
        outcome = await cli.use(server).run("-p", "hi")
    assert outcome.code == (0 if value == 7 else 2)
    assert "compaction" in outcome.notes


async def test_the_setting_chooses_the_history(cli: Cli) -> None:
    (cli.home / "settings.json").write_text(json.dumps({"compaction": {"history": "verbatim"}}))
    script = [*[{"tools": [bash("seq 1000 3500")]}] * 3, "done"]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", env=WINDOW)
    assert not outcome.of("session.compaction_start")
    assert outcome.of("trimtab.compaction_skipped")[-1]["reason"] == "verbatim"
