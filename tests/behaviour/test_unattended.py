"""Runs without a person: instructions in time, the stop gate, the deadline, plan exits."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving
from gitkit import git
from livekit import opened
from trimtab.contracts.options import LimitOptions

DONE = {"text": "All done."}
GLOB = {"name": "glob", "arguments": {"pattern": "*"}}


def create(name: str, text: str = "x\n") -> dict[str, Any]:
    return {"name": "create", "arguments": {"path": name, "file_text": text}}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def set_up(cli: Cli, **settings: Any) -> None:
    (cli.home / "settings.json").write_text(json.dumps(settings))


def from_source(outcome: Outcome, source: str) -> list[str]:
    return [data["content"] for data in outcome.of("user.message") if data.get("source") == source]


@pytest.mark.proves("JIT-01", "JIT-05", "JIT-06")
async def test_an_instruction_is_told_once_before_the_request_in_which_it_applies(
    cli: Cli,
) -> None:
    set_up(cli, jitInstructions={"late": {"instruction": "Hurry now.", "when": {"turns": 1}}})
    async with serving([{"tools": [GLOB]}, {"tools": [GLOB]}, DONE, {"tools": [GLOB]}, DONE]) as s:
        outcome = await cli.use(s).ask("go")
        bodies = [request.json["messages"] for request in s.requests]
        again = await cli.ask("go", "--resume", outcome.result["sessionId"])
    assert from_source(outcome, "jit-instruction") == ["Hurry now."]
    assert "Hurry now." not in str(bodies[0])
    assert bodies[1][-1] == {"role": "user", "content": "Hurry now."}
    assert from_source(again, "jit-instruction") == []


@pytest.mark.proves("JIT-03", "JIT-07")
async def test_an_instruction_for_the_end_of_the_time_waits_for_it(cli: Cli) -> None:
    entry = {"instruction": "Time runs out.", "percentRemainingOfTimeout": 70}
    set_up(cli, jitInstructions={"time": entry})
    script = [{"tools": [GLOB]}, {"tools": [bash("sleep 4.2")]}, DONE]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--deadline", "12")
        bodies = [str(request.json["messages"]) for request in server.requests]
    assert from_source(outcome, "jit-instruction") == ["Time runs out."]
    assert ["Time runs out." in body for body in bodies] == [False, False, True]
    async with serving([DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert from_source(outcome, "jit-instruction") == []


@pytest.mark.needs("git")
@pytest.mark.proves("JIT-04", "JIT-07")
@pytest.mark.parametrize("changed", [False, True])
async def test_an_instruction_for_no_changes_looks_at_git(cli: Cli, changed: bool) -> None:
    git(cli.cwd, "init", "-q")
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "start")
    entry = {"instruction": "Nothing yet.", "whenNoPathsChanged": True, "when": {"turns": 1}}
    set_up(cli, jitInstructions={"none": entry})
    first = bash("echo x > made" if changed else "true")
    async with serving([{"tools": [first]}, DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert from_source(outcome, "jit-instruction") == ([] if changed else ["Nothing yet."])


@pytest.mark.proves("JIT-02")
async def test_a_function_of_the_location_gives_text_and_condition(cli: Cli) -> None:
    code = "def text(facts): return f'You are in {facts.location}.'\n"
    code += "def late(facts): return facts.turns >= 1\ndef broken(facts): return 1 / 0\n"
    (cli.home / "jit.py").write_text(code)
    file = cli.home / "jit.py"
    set_up(
        cli,
        jitInstructions={
            "place": {
                "instruction": {"python": f"{file}:text"},
                "when": {"python": f"{file}:late"},
            },
            "bad": {"instruction": {"python": f"{file}:broken"}},
        },
    )
    async with serving([{"tools": [GLOB]}, DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert from_source(outcome, "jit-instruction") == [f"You are in {cli.cwd}."]
    (warning,) = outcome.of("session.warning")
    assert "The instruction bad is left out: ZeroDivisionError" in warning["message"]


async def test_instructions_look_at_context_budget_and_checks(cli: Cli) -> None:
    usage = {"input": 3000, "output": 100}
    set_up(
        cli,
        stopGate={"checks": ["true"]},
        jitInstructions={
            "spent": {"instruction": "Half is spent.", "when": {"budget": 20}},
            "green": {"instruction": "All is green.", "when": {"checks": "green"}},
            "full": {"instruction": "The window is full.", "when": {"context": 99}},
        },
    )
    script = [{"tools": [bash("true")], "usage": usage}, {**DONE, "usage": usage}]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--max-tokens", "12000")
    told = from_source(outcome, "jit-instruction")
    assert sorted(told) == ["All is green.", "Half is spent."]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"jitInstructions": {"x": {"instruction": 3}}}, "jitInstructions"),
        ({"jitInstructions": {"x": {"instruction": "a", "percentRemainingOfTimeout": 200}}}, "100"),
        ({"stopGate": {"filesread": 1}}, "stopGate"),
    ],
)
async def test_settings_that_are_wrong_are_told(cli: Cli, settings: Any, reason: str) -> None:
    set_up(cli, **settings)
    async with serving([DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 2
    assert reason in outcome.result["error"]["message"]


@pytest.mark.proves("OUTER-15", "OUTER-16")
async def test_a_premature_stop_is_sent_back_with_what_is_missing(cli: Cli) -> None:
    (cli.cwd / "a.txt").write_text("a\n")
    gate = {"filesRead": 1, "filesWritten": 1, "turns": 4, "checks": ["test -e made.txt"]}
    set_up(cli, stopGate=gate)
    script = [
        {"text": "Done already."},
        {"tools": [{"name": "view", "arguments": {"path": "a.txt"}}]},
        {"tools": [create("made.txt")]},
        {"text": "Now?"},
        {"tools": [bash("test -e made.txt")]},
        DONE,
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go")
        first = server.requests[1].json["messages"][-1]["content"]
    assert outcome.code == 0, outcome.notes
    for missing in ("1 file must be read", "1 file must be changed", "4 turns", "test -e made.txt"):
        assert missing in first
    assert len(from_source(outcome, "stop-gate")) == 2
    assert outcome.result["endState"] == "green"


async def test_the_gate_gives_up_after_eight_times_with_exit_code_3(cli: Cli) -> None:
    set_up(cli, stopGate={"checks": ["false"]})
    async with serving({"replies": [], "otherwise": DONE}) as server:
        outcome = await cli.use(server).ask("go")
        assert server.usage.requests == 9
    assert outcome.code == 3
    assert outcome.result["stopReason"] == "stop_gate"
    assert outcome.result["endState"] == "unknown"


@pytest.mark.parametrize(
    ("calls", "state"),
    [
        ([bash("test -e x")], "red"),
        ([create("x"), bash("test -e x")], "green"),
        ([create("x"), bash("test -e x"), create("y")], "unknown"),
    ],
)
async def test_the_end_state_counts_checks_after_the_last_change(
    tmp_path: Path, calls: list[Any], state: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({"stopGate": {"checks": ["test -e x"]}}))
    replies = [*({"tools": [one]} for one in calls), *[DONE] * 9]
    async with opened(tmp_path, replies) as (live, _, _provider):
        await live.ask("go")
        rules = live.controls.agent.parts.stop_rules
        assert rules is not None
        assert rules.checks.end_state == state


async def test_a_deadline_leaves_time_for_last_words_and_ends_on_time(cli: Cli) -> None:
    set_up(cli, stopGate={"checks": ["true"]})
    script = [{"tools": [bash("sleep 60")]}, {"text": "I was asleep."}]
    started = time.monotonic()
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--deadline", "5")
        last = server.requests[-1].json
    took = time.monotonic() - started
    assert outcome.code == 6
    assert outcome.result["stopReason"] == "deadline"
    assert outcome.result["endState"] == "unknown"
    assert "tools" not in last or not last["tools"]
    said = [data["content"] for data in outcome.of("assistant.message")]
    assert said[-1] == "I was asleep."
    assert "This is your last answer" in str(last["messages"][-1])
    assert took < 15


async def test_a_model_that_hangs_is_cut_off_at_the_deadline(tmp_path: Path) -> None:
    limits = LimitOptions(deadline=1.0)
    async with opened(tmp_path, [{"text": "x", "delay": 60}], limits=limits) as (live, _, _p):
        stop = await live.ask("go")
    assert (stop.reason, stop.exit_code) == ("deadline", 6)


async def test_agents_in_the_background_end_at_the_deadline_too(cli: Cli) -> None:
    start = {
        "name": "task",
        "arguments": {
            "description": "d",
            "prompt": "Sleep.",
            "agent_type": "general-purpose",
            "mode": "background",
        },
    }
    rules = {
        "replies": [
            {"when": {"last": "go"}, "repeat": 1, "tools": [start]},
            {"when": {"last": "Sleep"}, "tools": [bash("sleep 60")]},
        ],
        "otherwise": DONE,
    }
    async with serving(rules) as server:
        outcome = await cli.use(server).ask("go", "--deadline", "4")
    assert outcome.code == 6, outcome.result
    assert outcome.of("subagent.completed")[0]["cancelled"]


@pytest.mark.proves("VSC-15")
async def test_plan_then_autopilot_carries_out_the_plan_that_is_in_the_file(cli: Cli) -> None:
    script = [
        {"tools": [bash("touch early")]},
        {"text": "1. Make made.txt"},
        {"tools": [create("made.txt")]},
        {"tools": [{"name": "task_complete", "arguments": {"summary": "Made."}}]},
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", "--plan", "--mode", "autopilot")
        bodies = [request.json["messages"] for request in server.requests]
    assert outcome.code == 0, outcome.notes
    assert not (cli.cwd / "early").exists()
    assert (cli.cwd / "made.txt").exists()
    assert "1. Make made.txt" in bodies[2][-1]["content"]
    assert outcome.of("session.mode_changed")[0]["newMode"] == "autopilot"
    assert outcome.result["stopReason"] == "task_complete"
    both = await cli.ask("go", "--plan", "--mode", "interactive")
    assert both.code == 2
