"""Compaction seen from outside: nothing a person said is lost, whatever the summary says."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from livekit import opened
from trimtab.contracts.errors import UsageError

PLANTED = "Never touch the file vendor/legacy.c, and keep Python 3.11."
FILLER = {"tools": [bash("seq 1 3000")]}


def stored(cli: Cli, wire_name: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in cli.logs()[-1].read_text().splitlines()]
    return [event["data"] for event in events if event["type"] == wire_name]


@pytest.mark.parametrize("summary", ["", "banana banana", "<overview>All is well.</overview>"])
@pytest.mark.proves("COMP-15", "OUTER-06")
async def test_words_and_files_survive_a_useless_summary(tmp_path: Path, summary: str) -> None:
    cli = Cli(tmp_path)
    create = {"name": "create", "arguments": {"path": "made.py", "file_text": "x = 1\n"}}
    script = {
        "replies": [
            {"when": {"last": "about to be replaced by a summary"}, "text": summary},
            {"tools": [create]},
            *[FILLER] * 3,
            "all done",
        ]
    }
    async with serving(script) as server:
        cli.use(server)
        small = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "9000"}
        outcome = await cli.ask(PLANTED, env=small)
        assert outcome.result["status"] == "success"
        last = server.requests[-1].json["messages"]
    texts = json.dumps(last)
    assert len(last) < 9
    assert PLANTED in texts
    assert "made.py" in texts
    complete = stored(cli, "session.compaction_complete")
    done = [one for one in complete if "summaryContent" in one]
    failures = [one["error"] for one in complete if not one["success"]]
    assert all("cancelled" in error or "summary" in error for error in failures)
    (checkpoint, *_) = (Path(one["checkpointPath"]) for one in done)
    assert PLANTED in checkpoint.read_text()
    assert "| 1 |" in (checkpoint.parent / "index.md").read_text()
    paid = [one for one in stored(cli, "trimtab.model_call") if one["purpose"] == "compaction"]
    assert len(paid) <= 2 * len(complete)


async def test_a_session_that_was_compacted_resumes_with_its_summary(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    script = {
        "replies": [
            {"when": {"last": "about to be replaced by a summary"}, "text": "SUMMARY"},
            *[FILLER] * 3,
            "first done",
            "second done",
        ]
    }
    async with serving(script) as server:
        cli.use(server)
        small = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "9000"}
        await cli.ask(PLANTED, env=small)
        await cli.ask("go on", "--continue")
        messages = server.requests[-1].json["messages"]
    assert messages[1]["content"].startswith("SUMMARY")
    assert PLANTED in messages[1]["content"]
    assert "go on" in messages[-1]["content"]


async def test_a_model_of_its_own_may_write_the_summaries(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    script = {
        "replies": [
            {"when": {"last": "about to be replaced by a summary"}, "text": "SUMMARY"},
            *[FILLER] * 3,
            "done",
        ]
    }
    async with serving(script) as server:
        registry = {
            "providers": [{"name": "here", "baseUrl": server.base_url}],
            "models": [
                {"provider": "here", "id": "big", "maxPromptTokens": 9000},
                {"provider": "here", "id": "small"},
            ],
            "default": "here/big",
            "roles": {"compaction": "here/small"},
        }
        (cli.home / "providers.json").write_text(json.dumps(registry))
        outcome = await cli.ask("fill it")
        assert outcome.code == 0, outcome.notes
        asked = [request.json["model"] for request in server.requests]
    assert set(asked) == {"big", "small"}
    paid = [one for one in stored(cli, "trimtab.model_call") if one["purpose"] == "compaction"]
    assert {one["model"] for one in paid} == {"small"}


@pytest.mark.proves("COMP-20")
async def test_compacting_while_the_agent_works_is_refused_and_later_works(tmp_path: Path) -> None:
    replies = ["one", "two", "SUMMARY", "three"]
    async with opened(tmp_path, replies) as (live, watch, _):
        live.send("first")
        with pytest.raises(UsageError, match="The agent is working"):
            await live.compact()
        await live.finished()
        await live.ask("second")
        outcome = await live.compact("mind the gap")
        assert outcome.success
        await live.ask("third")
        (complete,) = watch.of("session.compaction_complete")
        first = live.projections.conversation.messages[0]
    assert complete.trigger == "manual"
    assert "SUMMARY" in str(first)
    assert "second" in str(first)


async def test_a_result_takes_at_most_half_of_the_prompt(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    (cli.cwd / "big.txt").write_text("line\n" * 6000)
    view = {"name": "view", "arguments": {"path": "big.txt", "forceReadLargeFiles": True}}
    async with serving([{"tools": [bash("seq 1 4000"), view]}, "done"]) as server:
        cli.use(server)
        window = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "4000"}
        await cli.ask("go", "--available-tools", "bash,view", env=window)
        results = [m for m in server.requests[-1].json["messages"] if m["role"] == "tool"]
    assert len(results) == 2
    assert all(len(result["content"]) < 8000 for result in results), results


@pytest.mark.parametrize("answer", [{"text": ""}, {"error": {"status": 500}}, {"error": 400}])
async def test_fifty_calls_pay_for_one_summary_that_fails(tmp_path: Path, answer: Any) -> None:
    """Four compactions were begun in fifty calls, with two paid attempts each."""
    cli = Cli(tmp_path)
    summary = {"when": {"last": "about to be replaced by a summary"}, **answer}
    # 600 tokens or so, another output each time.
    work = {"tools": [bash("seq {n}000 {n}350")], "repeat": 50}
    async with serving({"replies": [summary, work, "all done"]}) as server:
        window = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "30000"}
        outcome = await cli.use(server).ask(PLANTED, env=window)
        assert outcome.code == 0, outcome.notes
        sizes = [len(request.body) for request in server.requests]
        last = json.dumps(server.requests[-1].json["messages"])
    assert PLANTED in last
    paid = [one for one in stored(cli, "trimtab.model_call") if one["purpose"] == "compaction"]
    assert len(paid) == 2
    begun = stored(cli, "session.compaction_start")
    assert len(begun) <= 3
    complete = stored(cli, "session.compaction_complete")
    done = [one for one in complete if "summaryContent" in one]
    assert len(done) == 1
    assert not any(one["success"] for one in complete)
    assert (done[0]["outcome"], bool(done[0]["error"])) == ("mechanical", True)
    smaller = [after / before for before, after in pairwise(sizes)]
    assert min(smaller) < 0.6
