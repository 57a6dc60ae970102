"""`trimtab customizations` and the commands beside it, as a person runs them."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from customizekit import write
from gitkit import make_repository

TRUST = {"COPILOT_ALLOW_ALL": "true"}


async def view(cli: Cli, *args: str, **options: Any) -> dict[str, Any]:
    outcome = await cli.run("customizations", "--json", *args, **options)
    assert outcome.code == 0, outcome.notes
    shown: dict[str, Any] = json.loads(outcome.text)
    return shown


def fill(cli: Cli) -> None:
    make_repository(cli.cwd)
    write(cli.cwd / "AGENTS.md", "Use tabs.\n")
    write(cli.cwd / "GEMINI.md", "Use tabs.\n")
    write(cli.cwd / ".github/skills/deploy/SKILL.md", "---\ndescription: Deploys\n---\nx\n")
    write(cli.cwd / ".claude/skills/deploy/SKILL.md", "other")
    write(cli.cwd / ".claude/commands/fix.md", "Fix $1")
    write(cli.cwd / ".github/agents/rev.md", "---\ndescription: Reviews\n---\nx\n")
    write(cli.cwd / ".mcp.json", '{"mcpServers": {"db": {"command": "npx", "args": ["db"]}}}')
    write(cli.cwd / ".github/copilot/settings.json", '{"model": "m"}')
    hook = {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "true"}]}}
    write(cli.cwd / ".github/hooks/h.json", json.dumps(hook))
    write(cli.home / "settings.json", '{"model": "u"}')


@pytest.mark.proves("FLOW-02")
async def test_every_kind_is_in_one_list_with_file_source_and_what_wins(cli: Cli) -> None:
    fill(cli)
    shown = await view(cli, env=TRUST)
    entries = {(one["kind"], one["name"], one["file"]): one for one in shown["customizations"]}
    kinds = [one["kind"] for one in shown["customizations"]]
    assert list(dict.fromkeys(kinds)) == [
        "instruction",
        "skill",
        "command",
        "agent",
        "mcp-server",
        "hook",
        "setting",
    ]
    agents_md = entries["instruction", "AGENTS.md", str(cli.cwd / "AGENTS.md")]
    assert agents_md["tokens"] > 0
    twin = entries["instruction", "GEMINI.md", str(cli.cwd / "GEMINI.md")]
    assert twin["overriddenBy"] == "AGENTS.md"
    loser = entries["skill", "deploy", str(cli.cwd / ".claude/skills/deploy/SKILL.md")]
    assert loser["overriddenBy"] == str(cli.cwd / ".github/skills/deploy/SKILL.md")
    assert loser["why"] == "the folder that is read first wins"
    user_model = entries["setting", "model", str(cli.home / "settings.json")]
    assert user_model["overriddenBy"] == "the repository settings"
    assert all(one["trusted"] for one in shown["customizations"])


async def test_without_trust_what_the_folder_configures_is_marked_and_instructions_are_not(
    cli: Cli,
) -> None:
    fill(cli)
    shown = await view(cli)
    assert shown["trusted"] is False
    for one in shown["customizations"]:
        inside = one["file"].startswith(str(cli.cwd))
        assert one["trusted"] == (not inside or one["kind"] == "instruction"), one
    text = (await cli.run("customizations")).text
    assert "deploy (repository) [not used: the folder is not trusted]" in text


async def test_one_customization_is_explained(cli: Cli) -> None:
    fill(cli)
    outcome = await cli.run("customizations", "explain", "deploy", env=TRUST)
    assert "state    used" in outcome.text
    assert "wins, because the folder that is read first wins" in outcome.text
    nothing = await cli.run("customizations", "explain", "nothing")
    assert nothing.code == 2


async def test_problems_name_file_and_line(cli: Cli) -> None:
    write(cli.home / "skills/bad/SKILL.md", "---\ndescription: [\n---\nx\n")
    write(cli.home / "skills/worse/SKILL.md", b"\0")
    write(cli.home / "mcp-config.json", '{\n"mcpServers": {]}}')
    shown = await view(cli)
    bad = next(one for one in shown["customizations"] if one["name"] == "bad")
    assert [(one["line"], one["severity"]) for one in bad["problems"]] == [(3, "problem")]
    left = {Path(one["file"]).name: one["line"] for one in shown["problems"]}
    assert left == {"SKILL.md": 0, "mcp-config.json": 2}


async def test_a_skill_is_added_disabled_enabled_and_removed(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "mine/SKILL.md", "---\ndescription: Mine\n---\nx\n")
    assert (await cli.run("skills", "add", str(tmp_path / "mine"))).code == 0
    assert (await cli.run("skills", "add", str(tmp_path / "mine"))).code == 2
    assert "mine (user" in (await cli.run("skills")).text
    assert (await cli.run("skills", "disable", "mine")).code == 0
    assert "[disabled]" in (await cli.run("skills", "list")).text
    async with serving([{"text": "Hello."}]) as server:
        outcome = await cli.use(server).ask("hi")
    assert outcome.of("session.skills_loaded")[-1]["skills"][0]["enabled"] is False
    assert (await cli.run("skills", "enable", "mine")).code == 0
    assert "[disabled]" not in (await cli.run("skills")).text
    assert (await cli.run("skills", "remove", "mine")).code == 0
    assert not (cli.home / "skills/mine").exists()
    assert (await cli.run("skills", "remove", "../..")).code == 2


async def test_an_agent_is_added_to_the_repository_and_removed(cli: Cli, tmp_path: Path) -> None:
    source = write(tmp_path / "a.agent.md", "---\ndescription: d\n---\nx\n")
    assert (await cli.run("agents", "add", str(source), "--project")).code == 0
    assert (cli.cwd / ".github/agents/a.agent.md").exists()
    listed = json.loads((await cli.run("agents", "--json", env=TRUST)).text)["customizations"]
    assert [one["name"] for one in listed if one["source"] == "repository"] == ["a"]
    assert (await cli.run("agents", "remove", "a", "--project")).code == 0
    assert not (cli.cwd / ".github/agents/a.agent.md").exists()


async def test_servers_are_added_shown_without_secrets_disabled_and_removed(cli: Cli) -> None:
    add = (
        "mcp",
        "add",
        "db",
        "--env",
        "KEY=very-secret",
        "--timeout",
        "500",
        "--",
        "npx",
        "db",
        "-v",
    )
    assert (await cli.run(*add)).code == 0
    assert (await cli.run(*add)).code == 2
    web = (
        "mcp",
        "add",
        "web",
        "--transport",
        "http",
        "--header",
        "Authorization: Bearer t",
        "https://x/mcp",
    )
    assert (await cli.run(*web)).code == 0
    shown = await cli.run("mcp", "get", "db", "--json")
    assert "very-secret" not in shown.text
    server = json.loads(shown.text)
    assert (server["command"], server["args"], server["timeout"]) == ("npx", ["db", "-v"], 500)
    assert "very-secret" in (await cli.run("mcp", "get", "db", "--show-secrets")).text
    assert (await cli.run("mcp", "disable", "web")).code == 0
    assert "web (user) [disabled]" in (await cli.run("mcp")).text
    assert (await cli.run("mcp", "remove", "db")).code == 0
    assert list(json.loads((cli.home / "mcp-config.json").read_text())["mcpServers"]) == ["web"]
    assert (await cli.run("mcp", "remove", "db")).code == 2


async def test_init_writes_what_the_repository_says_and_replaces_nothing_unasked(cli: Cli) -> None:
    write(cli.cwd / "README.md", "# Shop\n\nA shop that sells tea to people who like tea.\n")
    write(cli.cwd / "Makefile", "test:\n\tpytest\n\nx = 1\n")
    write(cli.cwd / "package.json", '{"scripts": {"build": "tsc"}}')
    (cli.cwd / "src").mkdir()
    assert (await cli.run("init")).code == 0
    text = (cli.cwd / ".github/copilot-instructions.md").read_text()
    for part in ("sells tea", "- `make test`", "- `npm run build`", "- `src/`"):
        assert part in text
    assert (await cli.run("init")).code == 2
    assert (await cli.run("init", "--force")).code == 0
    listed = (await cli.run("instructions")).text
    assert ".github/copilot-instructions.md (repository," in listed


async def test_an_agent_is_disabled_for_other_agents_and_enabled_again(cli: Cli) -> None:
    write(cli.home / "agents/prices.agent.md", "---\ndescription: Checks prices\n---\nx\n")
    write(cli.home / "settings.json", '{"subagents": {"maxDepth": 2}} // mine\n')
    assert (await cli.run("agents", "disable", "nobody")).code == 2
    for action, state in (("disable", False), ("disable", False), ("enable", True)):
        assert (await cli.run("agents", action, "prices")).code == 0
        listed = json.loads((await cli.run("agents", "--json")).text)["customizations"]
        assert [one["enabled"] for one in listed if one["name"] == "prices"] == [state]
        async with serving([{"text": "ok"}]) as server:
            await cli.use(server).ask("hi")
            assert ("Checks prices" in json.dumps(server.requests[0].json)) == state
    text = (cli.home / "settings.json").read_text()
    assert '"maxDepth": 2' in text
    assert "// mine" in text


async def test_hooks_are_listed_without_another_word(cli: Cli) -> None:
    short, long = await cli.run("hooks"), await cli.run("hooks", "list")
    assert (short.code, short.text) == (0, long.text)
