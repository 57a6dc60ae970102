"""`trimtab doctor` as a person runs it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from trimtab.workspace.sandbox.detection import detect


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def findings(cli: Cli, subject: str, **options: Any) -> list[dict[str, str]]:
    ran = await cli.run("doctor", "--json", **options)
    document = json.loads(ran.out)
    assert ran.code == (0 if document["ok"] else 1)
    return [one for one in document["findings"] if one["subject"] == subject]


async def test_every_line_has_a_state_and_bad_ones_say_what_to_do(cli: Cli) -> None:
    async with serving([]) as server:
        ran = await cli.use(server).run("doctor")
    assert ran.code == 0, ran.text
    for subject in ("python", "search", "git", "home", "disk", "models", "sandbox", "trust"):
        assert f" {subject} " in ran.text
    lines = json.loads((await cli.run("doctor", "--json")).out)["findings"]
    assert {one["state"] for one in lines} <= {"ok", "warn", "fail"}
    assert all(one["advice"] for one in lines if one["state"] != "ok")


async def test_models_are_ok_only_if_something_can_answer(cli: Cli) -> None:
    """Models were called ok as soon as an address was known, whoever answered there."""
    (nothing,) = await findings(cli, "models")
    assert nothing["state"] == "fail"
    assert nothing["message"] == "no model is available"
    assert "OPENAI_API_KEY" in nothing["advice"]
    looked_for = {"TRIMTAB_LOCAL_SERVERS": "mine=http://127.0.0.1:1/v1"}
    (unanswered,) = await findings(cli, "models", env=looked_for)
    assert unanswered["state"] == "fail"
    cli.env |= {"COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:1/v1", "COPILOT_MODEL": "mine"}
    (dead,) = await findings(cli, "models")
    assert dead["state"] == "fail"
    assert "nothing listens there" in dead["advice"]
    ran = await cli.run("doctor", "--json", "--offline")
    (unseen,) = [one for one in json.loads(ran.out)["findings"] if one["subject"] == "models"]
    assert unseen["state"] == "warn"
    async with serving({"replies": [], "models": ["scripted"]}) as server:
        (good,) = await findings(cli.use(server), "models")
        (wrong,) = await findings(cli, "models", env={"COPILOT_MODEL": "skripted"})
        assert server.usage.requests == 0, "listing models costs nothing"
    assert good["state"] == "ok"
    assert good["message"].startswith("scripted at http://127.0.0.1:")
    assert wrong["state"] == "fail"
    assert wrong["advice"] == "did you mean scripted?"
    async with serving({"replies": [], "models": []}) as server:
        (unlisted,) = await findings(cli.use(server), "models")
    assert unlisted["state"] == "warn"


async def test_the_sandbox_is_named_with_the_reason_for_a_lesser_one(cli: Cli) -> None:
    hidden = {"PATH": os.path.dirname(os.path.realpath("/bin/sh")) + "-none"}
    one, use = await findings(cli, "sandbox", env=hidden)
    assert "bubblewrap is not installed" in one["message"]
    assert use["message"] == "commands run outside it unless --sandbox is given"


async def test_a_home_that_cannot_be_made_fails(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (one,) = await findings(cli, "home", env={"COPILOT_HOME": str(tmp_path / "file")})
    assert one["state"] == "fail"


async def test_wrong_settings_and_rule_files_are_named(cli: Cli) -> None:
    (cli.home / "settings.json").write_text(
        '{"stream": 3, "sandbox": {"network": "maybe"}, "permissions": {"deny": ["shell(rm)"]}}'
    )
    assert "stream" in (await findings(cli, "settings"))[0]["message"]
    assert (await findings(cli, "rules"))[0]["message"] == str(cli.home / "settings.json")
    assert (await findings(cli, "sandbox"))[-1]["state"] == "fail"


async def test_an_untrusted_folder_is_said_to_be_one(cli: Cli) -> None:
    hooks = cli.cwd / ".github" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "one.json").write_text('{"version": 1, "hooks": {}}')
    (one,) = await findings(cli, "trust")
    assert one["state"] == "warn"
    assert "--trust-folder" in one["advice"]


async def test_protected_names_that_the_sandbox_leaves_open_are_named(cli: Cli) -> None:
    for name in ("packages/web/.vscode", "node_modules/tool/.vscode", ".vscode", "deep/.git/hooks"):
        (cli.cwd / name).mkdir(parents=True)
    said = [one["message"] for one in await findings(cli, "sandbox")]
    if detect(os.environ).backend == "bubblewrap":
        assert "it does not protect these names here: node_modules/tool/.vscode" in said
    assert not any("packages/web" in one or "deep" in one for one in said)


async def test_what_is_excluded_is_told_with_its_source(cli: Cli) -> None:
    settings = cli.home / "settings.json"
    settings.write_text('{"contentExclusion": {"*": ["**/.env", "*.key"], "other": ["x"]}}')
    (one,) = await findings(cli, "excluded")
    assert one["message"] == f"2 patterns for paths here, by {settings}"
    settings.write_text('{"contentExclusion": {"*": "x"}}')
    assert (await findings(cli, "excluded"))[0]["state"] == "fail"


async def test_rule_sources_depend_on_trust(cli: Cli) -> None:
    repository = cli.cwd / ".github/copilot/settings.json"
    repository.parent.mkdir(parents=True)
    repository.write_text('{"permissions": {"deny": ["shell(rm)"]}}')
    assert "no files" in (await findings(cli, "rules"))[0]["message"]
    assert (await findings(cli, "trust"))[0]["state"] == "warn"
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))
    assert (await findings(cli, "rules"))[0]["message"] == str(repository)
    assert (await findings(cli, "trust"))[0]["message"] == f"{cli.cwd} is trusted"
