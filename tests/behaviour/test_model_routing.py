"""The model of a prompt is chosen after hooks have seen the prompt."""

import json
from typing import Any

import pytest

from clikit import Cli, serving
from customizekit import write
from hookkit import stored, write_hooks
from livekit import opened

PLAN = {"planModel": "planner", "planEffortLevel": "high"}


@pytest.mark.proves("HOOK-17")
async def test_hooks_see_a_prompt_when_all_is_assembled_and_before_a_model_is_chosen(
    cli: Cli,
) -> None:
    write(cli.home / "settings.json", json.dumps(PLAN))
    write(cli.cwd / "AGENTS.md", "Answer in rhymes.")
    skill = "---\ndescription: deploys things\n---\nRun make deploy."
    write(cli.home / "skills/deploy/SKILL.md", skill)
    agent = "---\ndescription: reviews things\n---\nReview."
    write(cli.home / "agents/reviewer.md", agent)
    folder = f"{cli.home}/session-state"
    keep = {"type": "command", "bash": f"cat {folder}/*/events.jsonl > $HOME/then"}
    write_hooks(cli, {"userPromptSubmitted": [keep]}, where="user")
    async with serving([{"text": "ok"}]) as server:
        await cli.use(server).ask("go", "--mode", "plan")
        (request,) = server.requests
    lines = (cli.home.parent / "then").read_text().split("\n")
    before = [json.loads(line) for line in lines if line]
    (system,) = [one["data"]["content"] for one in before if one["type"] == "system.message"]
    for part in ("Answer in rhymes.", "deploys things"):
        assert part in system
    assert "session.model_change" not in [one["type"] for one in before]
    assert "user.message" not in [one["type"] for one in before]
    (change,) = stored(cli, "session.model_change")
    assert (change["previousModel"], change["newModel"]) == ("scripted", "planner")
    assert request.json["model"] == "planner"
    assert "reviewer" in json.dumps(request.json["tools"])


async def test_a_prompt_that_hooks_withdraw_chooses_no_model(cli: Cli) -> None:
    write(cli.home / "settings.json", json.dumps(PLAN))
    block = {"type": "command", "bash": 'echo \'{"decision": "block", "reason": "no"}\''}
    write_hooks(cli, {"userPromptSubmitted": [block]}, where="user")
    async with serving(["never"]) as server:
        await cli.use(server).ask("go", "--mode", "plan")
        assert not server.requests
    assert stored(cli, "session.model_change") == []


def models(provider: Any) -> list[tuple[str, str | None]]:
    return [(request.model, request.effort) for request in provider.requests]


async def test_the_usual_model_goes_on_when_planning_is_over(tmp_path: Any) -> None:
    write(tmp_path / "home/settings.json", json.dumps(PLAN))
    session = opened(tmp_path, ["one", "two", "three"], model="usual", effort="low")
    async with session as (live, watch, provider):
        await live.ask("a")
        live.controls.set_mode("plan")
        await live.ask("b")
        live.controls.set_mode("interactive")
        await live.ask("c")
        told = [one.new_model for one in watch.of("session.model_change")]
    assert models(provider) == [("usual", "low"), ("planner", "high"), ("usual", "low")]
    assert told == ["planner", "usual"]


async def test_a_model_that_is_chosen_while_planning_stays(tmp_path: Any) -> None:
    write(tmp_path / "home/settings.json", json.dumps(PLAN))
    session = opened(tmp_path, ["one", "two", "three"], model="usual", mode="plan")
    async with session as (live, _, provider):
        await live.ask("a")
        live.controls.set_model("mine")
        await live.ask("b")
        live.controls.set_mode("interactive")
        await live.ask("c")
    assert [model for model, _ in models(provider)] == ["planner", "mine", "mine"]
