"""`trimtab hooks`: what there is, and what it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from hookkit import saying, write_hooks
from trimtab.contracts.hooks import EVENTS
from trimtab.hooks.dry_run import SAMPLES


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def ask(cli: Cli, *args: str) -> Any:
    outcome = await cli.run("hooks", *args, "--json")
    assert outcome.code == 0, outcome.notes
    return json.loads(outcome.out)


async def test_hooks_are_listed_with_their_lines_and_whether_they_run(cli: Cli) -> None:
    write_hooks(cli, {"preToolUse": [{"bash": "one"}]}, "user")
    file = write_hooks(cli, {"agentStop": [{"bash": "two"}], "nonsense": []})
    listed = await ask(cli, "list")
    assert [(hook["does"], hook["source"], hook["runs"]) for hook in listed["hooks"]] == [
        ("one", "user", True),
        ("two", "repository", False),
    ]
    assert listed["hooks"][1]["file"] == str(file)
    assert listed["hooks"][1]["line"] > 1
    assert "nonsense" in listed["problems"][0]
    assert (await ask(cli, "list", "--trust-folder"))["hooks"][1]["runs"]


async def test_each_hook_is_run_and_what_follows_is_said(cli: Cli) -> None:
    hooks = {"preToolUse": [saying({"permissionDecision": "allow"}), {"bash": "exit 3"}]}
    write_hooks(cli, hooks, "user")
    said = await ask(cli, "test", "preToolUse")
    assert said["hooks"][0]["output"] == {"permissionDecision": "allow"}
    assert "code 3" in said["hooks"][1]["problem"]
    assert said["outcome"]["permissionDecision"] == "deny"


async def test_hooks_of_an_untrusted_folder_do_not_run_here_either(cli: Cli) -> None:
    write_hooks(cli, {"preToolUse": [{"bash": "touch $HOME/ran"}]})
    outcome = await cli.run("hooks", "test", "preToolUse")
    assert "1 hook of this folder did not run" in outcome.text
    assert not (cli.home.parent / "ran").exists()
    await ask(cli, "test", "preToolUse", "--trust-folder")
    assert (cli.home.parent / "ran").exists()


async def test_an_input_of_ones_own_can_be_given(cli: Cli) -> None:
    write_hooks(cli, {"preToolUse": [{"bash": "exit 2", "matcher": "edit"}]}, "user")
    (cli.cwd / "input.json").write_text('{"toolName": "edit", "toolArgs": {}}')
    assert (await ask(cli, "test", "preToolUse"))["hooks"] == []
    assert len((await ask(cli, "test", "preToolUse", "--input", "input.json"))["hooks"]) == 1
    outcome = await cli.run("hooks", "test", "preToolUse", "--input", "missing.json")
    assert outcome.code == 2


async def test_every_event_that_is_called_has_a_sample(cli: Cli) -> None:
    assert set(SAMPLES) == set(EVENTS)
    write_hooks(cli, {event: [saying({})] for event in SAMPLES}, "user")
    for event in SAMPLES:
        (said,) = (await ask(cli, "test", event))["hooks"]
        assert said["problem"] is None
        assert {"sessionId", "timestamp", "cwd"} <= said["given"].keys()


async def test_an_unknown_event_is_a_mistake_that_names_the_known(cli: Cli) -> None:
    outcome = await cli.run("hooks", "test", "preTool")
    assert outcome.code == 2
    assert "preToolUse" in outcome.notes


async def test_without_hooks_that_is_said(cli: Cli) -> None:
    outcome = await cli.run("hooks", "list")
    assert outcome.text == "There are no hooks here.\n"


async def test_events_go_by_claudes_names_too(cli: Cli) -> None:
    write_hooks(cli, {"Stop": [saying({})], "PreToolUse": [saying({})]}, "user")
    for name in ("Stop", "PreToolUse"):
        (said,) = (await ask(cli, "test", name))["hooks"]
        assert said["given"]["hook_event_name"] == name


async def test_a_hook_that_changed_since_the_folder_was_trusted_is_not_run(cli: Cli) -> None:
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))
    write_hooks(cli, {"agentStop": [{"bash": "touch $HOME/first"}]})
    async with serving([{"text": "ok"}]) as server:
        await cli.use(server).ask("go")
    assert (cli.home.parent / "first").exists()
    write_hooks(cli, {"agentStop": [{"bash": "touch $HOME/second"}]})
    outcome = await cli.run("hooks", "test", "agentStop")
    assert "did not run (changed since it was trusted)" in outcome.text
    assert (await ask(cli, "list"))["hooks"][0]["runs"] is False
    assert not (cli.home.parent / "second").exists()
    await ask(cli, "test", "agentStop", "--trust-folder")
    assert (cli.home.parent / "second").exists()


async def test_hooks_of_plugins_are_listed_and_run(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "plugin.json").write_text('{"name": "tools"}')
    hooks = {"version": 1, "hooks": {"agentStop": [saying({"decision": "allow"})]}}
    (source / "hooks.json").write_text(json.dumps(hooks))
    assert (await cli.run("plugins", "install", str(source))).code == 0
    assert [hook["source"] for hook in (await ask(cli, "list"))["hooks"]] == ["plugin"]
    assert (await ask(cli, "test", "agentStop"))["outcome"] == {"decision": "allow"}
