"""Agents that name a family of models instead of a model."""

import pytest

from clikit import Cli, serving
from customizekit import write
from trimtab.customize.model_families import newest

MODELS = ["scripted", "claude-sonnet-4-20250514", "claude-sonnet-4.5", "claude-3-7-sonnet-20250219"]


@pytest.mark.parametrize(
    ("family", "models", "expected"),
    [
        ("sonnet", MODELS, "claude-sonnet-4.5"),
        ("sonnet", ["claude-sonnet-4", "claude-sonnet-4-thought"], "claude-sonnet-4"),
        ("opus", ["anthropic/claude-opus-4-1-20250805", "anthropic/claude-opus-4-6"], None),
        ("haiku", MODELS, None),
        ("sonnet", ["sonnet-of-somebody-else"], None),
    ],
)
def test_the_highest_version_is_the_newest(
    family: str, models: list[str], expected: str | None
) -> None:
    assert newest(family, models) == (expected if family != "opus" else models[1])


async def test_a_family_means_its_newest_model_that_can_be_reached(cli: Cli) -> None:
    write(cli.home / "agents/ann.md", "---\nmodel: sonnet\n---\nBe Ann.")
    async with serving({"replies": [{"text": "hi"}], "models": MODELS}) as server:
        del cli.use(server).env["COPILOT_MODEL"]
        outcome = await cli.ask("hi", "--agent", "ann")
        assert outcome.code == 0, outcome.notes
        used = [one.json["model"] for one in server.requests if one.json]
    assert used == ["claude-sonnet-4.5"]


async def test_a_family_nobody_offers_is_told_and_the_sessions_model_is_used(cli: Cli) -> None:
    write(cli.home / "agents/ann.md", "---\nmodel: opus\n---\nBe Ann.")
    async with serving({"replies": [{"text": "hi"}], "models": MODELS}) as server:
        outcome = await cli.use(server).ask("hi", "--agent", "ann")
        used = [one.json["model"] for one in server.requests if one.json]
    assert used == ["scripted"]
    (warning,) = outcome.of("session.warning")
    assert "no Claude Opus is available" in warning["message"]


async def test_a_model_the_person_names_wins_and_no_list_is_asked_for(cli: Cli) -> None:
    write(cli.home / "agents/ann.md", "---\nmodel: opus\n---\nBe Ann.")
    async with serving({"replies": [{"text": "hi"}], "models": MODELS}) as server:
        outcome = await cli.use(server).ask("hi", "--agent", "ann", "--model", "claude-sonnet-4.5")
        assert [one.json["model"] for one in server.requests] == ["claude-sonnet-4.5"]
    assert outcome.of("session.warning") == []


async def test_tools_an_agent_is_denied_are_not_offered(cli: Cli) -> None:
    write(cli.home / "agents/ann.md", "---\ndisallowedTools: Bash, Write\n---\nBe Ann.")
    async with serving([{"text": "hi"}]) as server:
        await cli.use(server).ask("hi", "--agent", "ann")
        offered = {tool["function"]["name"] for tool in server.requests[0].json["tools"]}
    assert "view" in offered
    assert not {"bash", "create", "write_bash"} & offered


async def test_hooks_of_claudes_own_settings_run(cli: Cli) -> None:
    home = cli.home.parent
    hooks = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch %s"}]}]}}'
    write(home / ".claude/settings.json", hooks % (cli.cwd / "ran"))
    async with serving([{"text": "hi"}]) as server:
        outcome = await cli.use(server).ask("hi")
    assert outcome.code == 0
    assert (cli.cwd / "ran").exists()
