"""Autopilot as the model is told about it, ends without task_complete, and retried statuses."""

import json
from typing import Any

import pytest

from clikit import Cli, bash, serving
from trimtab import Runtime, SessionOptions
from trimtab.contracts.processor import Processor
from trimtab.testing import Script, ScriptedProvider

COMPLETE = {"name": "task_complete", "arguments": {"summary": "It is done."}}


async def told(cli: Cli) -> tuple[str, str]:
    """The description of task_complete, and what a model is told that stops without it."""
    async with serving([{"text": "I stop."}, {"tools": [COMPLETE]}]) as server:
        await cli.use(server).ask("go", "--autopilot")
        first, second = (request.json for request in server.requests)
    tools = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
    return tools["task_complete"]["description"], second["messages"][-1]["content"]


@pytest.mark.proves("AUTO-03", "AUTO-04", "AUTO-05", "AUTO-06")
async def test_the_model_is_told_when_to_call_task_complete_and_when_not(cli: Cli) -> None:
    description, _ = await told(cli)
    _, when, when_not = description.split("\n\n")
    for said in ("only when you are confident", "every requested change", "tests", "pass",
                 "seen the result work", "nothing remains"):  # fmt: skip
        assert said in when
    assert when.index("one sentence") < when.index("more detailed summary")
    for said in ("errors are unresolved", "steps remain", "unverified", "wait for input",
                 "in doubt", "keep working"):  # fmt: skip
        assert said in when_not


@pytest.mark.proves("AUTO-08")
async def test_a_model_that_stops_early_is_told_to_go_on_and_what_is_no_reason_to_end(
    cli: Cli,
) -> None:
    _, nudge = await told(cli)
    assert "not marked as complete" in nudge
    assert "stop planning and start implementing" in nudge
    _, barred, _ = nudge.split("\n\n")
    assert "Do not call task_complete" in barred
    for said in ("questions are open", "best judgement", "an error", "resolve it", "steps remain"):
        assert said in barred


@pytest.mark.proves("AUTO-13")
@pytest.mark.parametrize(
    ("flags", "reason", "code"),
    [
        (("--max-turns", "1"), "turn_limit", 6),
        (("--max-autopilot-continues", "0"), "continuation_cap", 3),
        (("--max-tokens", "10"), "budget", 5),
    ],
)
async def test_autopilot_may_end_without_task_complete_and_still_has_one_result(
    cli: Cli, flags: tuple[str, ...], reason: str, code: int
) -> None:
    replies = [{"tools": [bash("true")]}] if reason == "turn_limit" else [{"text": "I stop."}]
    async with serving([*replies, {"text": "x"}]) as server:
        outcome = await cli.use(server).ask("go", "--autopilot", *flags)
    assert not outcome.of("session.task_complete")
    assert (outcome.result["stopReason"], outcome.code) == (reason, code)


@pytest.mark.proves("LOOP-19")
@pytest.mark.parametrize("status", [429, 503, 500, 499, 400])
async def test_a_failed_call_is_retried_with_growing_delays(cli: Cli, status: int) -> None:
    failure = {"error": {"status": status, "body": ""}}
    async with serving([failure, failure, failure, {"text": "at last"}]) as server:
        outcome = await cli.use(server).ask("go")
        assert len(server.requests) == 4
    assert outcome.code == 0
    waits = [retry["retryInSeconds"] for retry in outcome.of("assistant.turn_retry")]
    # Base 0.01 s here, doubled each time, with a jitter of half.
    assert [0.005 * 2**n <= wait <= 0.01 * 2**n for n, wait in enumerate(waits)] == [True] * 3


async def test_a_bad_request_that_names_its_fault_is_not_sent_again(cli: Cli) -> None:
    failure = {"error": {"status": 400, "message": "Unsupported parameter: banana"}}
    async with serving([failure, {"text": "never"}]) as server:
        outcome = await cli.use(server).ask("go")
        assert len(server.requests) == 1
    assert outcome.code == 8
    assert "banana" in outcome.result["error"]["message"]


@pytest.mark.proves("LOOP-05", "OUTER-02")
async def test_an_agent_has_the_processors_of_the_reference_at_their_stages(cli: Cli) -> None:
    settings = {"jitInstructions": {"a": {"instruction": "x", "percentRemainingOfTimeout": 50}}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    runtime = Runtime(env=dict(cli.env), provider=ScriptedProvider(Script.of(["x"])))
    live = await runtime.create(SessionOptions(cwd=str(cli.cwd)))
    try:
        parts: Any = live.controls.agent.parts
        pipeline = live.controls.agent.pipeline
        stages = {
            "before_request": (parts.steering, parts.jit, parts.compaction),
            "before_tool": (parts.permissions, parts.plan_mode),
            "after_tool": (parts.recorder, parts.discovered_instructions),
            "on_request_error": (parts.compaction, parts.image_removal, parts.retry),
        }
        for stage, expected in stages.items():
            acting = [part for part in pipeline
                      if getattr(type(part), stage) is not getattr(Processor, stage)]  # fmt: skip
            assert all(part in acting for part in expected), stage
        await live.ask("hi")
        assert live.model_metrics()  # calls are accounted for
    finally:
        await live.close()
