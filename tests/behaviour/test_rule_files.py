"""Permission rules in settings files, in runs of the installed program."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving
from hookkit import tool_errors

DONE = {"text": "Done."}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def write_rules(cli: Cli, where: str, **permissions: list[str]) -> Path:
    folder = cli.home if where == "user" else cli.cwd / ".github/copilot"
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"permissions": permissions})
    file = folder / "settings.json"
    file.write_text(f"// rules\n{content}")
    return file


async def run(cli: Cli, command: str, *args: str) -> Outcome:
    async with serving([{"tools": [bash(command)]}, DONE]) as server:
        cli.use(server)
        return await cli.run("-p", "go", "--output-format", "json", *args)


async def test_the_persons_rules_allow_and_deny(cli: Cli) -> None:
    write_rules(cli, "user", allow=["shell(touch)"], deny=["shell(mkdir)"])
    await run(cli, "touch one")
    assert (cli.cwd / "one").exists()
    outcome = await run(cli, "mkdir two", "--allow-all")
    assert "The rule shell(mkdir) forbids" in tool_errors(outcome)[0]


async def test_a_rule_that_asks_is_asked_even_when_everything_is_allowed(cli: Cli) -> None:
    write_rules(cli, "user", ask=["shell(touch)"])
    outcome = await run(cli, "touch one", "--allow-all")
    assert "wants touch to be asked about" in outcome.text + outcome.notes
    assert not (cli.cwd / "one").exists()


async def test_a_repositorys_rules_count_when_it_is_trusted(cli: Cli) -> None:
    write_rules(cli, "repository", allow=["shell(touch)"], deny=["shell(mkdir)"])
    outcome = await run(cli, "touch one")
    assert not (cli.cwd / "one").exists()
    assert outcome.of("trimtab.left_out")[0]["items"][0]["kind"] == "settings"
    await run(cli, "touch one", "--trust-folder")
    assert (cli.cwd / "one").exists()


async def test_what_a_trusted_repository_allows_later_does_not_count(cli: Cli) -> None:
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))
    write_rules(cli, "repository", allow=["shell(touch)"])
    await run(cli, "touch one")
    assert (cli.cwd / "one").exists()
    write_rules(cli, "repository", allow=["shell(touch)", "shell(mkdir)"], deny=["shell(cp)"])
    outcome = await run(cli, "mkdir two")
    assert not (cli.cwd / "two").exists()
    (left,) = outcome.of("trimtab.left_out")
    assert left["reason"] == "changed"
    assert left["items"][0]["path"].endswith("allows shell(mkdir)")
    await run(cli, "touch three")
    assert (cli.cwd / "three").exists()


@pytest.mark.parametrize("who", ["user", "repository"])
@pytest.mark.parametrize(
    ("permissions", "problem"),
    [
        ({"deny": ["shell("]}, "The permission rule 'shell(' cannot be read"),
        ({"allow": ["shell(", "shell(touch)"]}, "The permission rule 'shell(' cannot be read"),
        ({"deny": ["shel(rm)"]}, "did you mean shell?"),
        ({"denny": ["shell(rm)"]}, "there is no setting permissions.denny; did you mean deny?"),
        ({"deny": "shell(rm)"}, "`permissions.deny` is not a list of texts"),
        ({"deny": [["shell(rm)"]]}, "`permissions.deny` is not a list of texts"),
        (["shell(rm)"], "`permissions` is not an object"),
    ],
)
async def test_a_rule_that_cannot_be_read_is_an_error_at_the_start(
    cli: Cli, who: str, permissions: Any, problem: str
) -> None:
    """A typo opened a door: the rule was left out with a warning, and the run went on."""
    file = write_rules(cli, who, deny=[])
    file.write_text(json.dumps({"permissions": permissions}))
    outcome = await run(cli, "touch one", "--allow-all", "--trust-folder")
    assert outcome.code == 2
    assert problem in outcome.text + outcome.notes
    assert not (cli.cwd / "one").exists()


@pytest.mark.parametrize("who", ["user", "repository"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"permissions": {"deny": ["shell(rm)"', "so its rules are not known; correct it"),
        ('{"contentExclusion": {"*": [".env"]}} }', "so its rules are not known; correct it"),
        ('{"permission": {"deny": ["shell(rm)"]}}', "did you mean permissions?"),
        ('{"Permissions": {"deny": ["shell(rm)"]}}', "did you mean permissions?"),
        ('{"contentExclusions": {"*": [".env"]}}', "did you mean contentExclusion?"),
        ('{"denyTools": ["shell(rm)"]}', "did you mean permissions.deny?"),
        ('{"allow": ["shell(ls)"]}', "did you mean permissions.allow?"),
        ('{"sandbox": true}', "`sandbox` is not an object"),
        ('{"limits": 5}', "`limits` is not an object"),
        ('{"deniedUrls": "evil.test"}', "`deniedUrls` is not a list of texts"),
        ('{"permissions": {"deny": ["x"], "deny": []}}', "permissions.deny is given twice"),
        ('{"permissions": {}, /* x */ "permissions": {}}', "permissions is given twice"),
        ('{"permissions": {"deny": []}, "permissions.deny": []}', "permissions.deny is given"),
        ('{"permissions.deny": ["shel(rm)"]}', "did you mean shell?"),
        ('{"deniedURLs": ["x.test"]}', "did you mean deniedUrls?"),
        ('{"permissions": null}', "`permissions` is not an object"),
        ('{"permissions": {"deny": null}}', "`permissions.deny` is not a list of texts"),
        ('{"deniedUrls": null}', "`deniedUrls` is not a list of texts"),
        ('{"sandbox": "on"}', "`sandbox` is not an object"),
        ('["permissions"]', "so its rules are not known; correct it"),
    ],
)
async def test_settings_whose_rules_may_be_missing_are_an_error_at_the_start(
    cli: Cli, who: str, text: str, problem: str
) -> None:
    """The rules were left out with a warning or without a word, and the run went on."""
    write_rules(cli, who, deny=[]).write_text(text)
    outcome = await run(cli, "touch one", "--allow-all", "--trust-folder")
    assert outcome.code == 2
    assert problem in outcome.text + outcome.notes
    assert not (cli.cwd / "one").exists()


async def test_rules_under_a_name_with_a_dot_count(cli: Cli) -> None:
    write_rules(cli, "user").write_text('{"permissions.deny": ["shell(mkdir)"]}')
    outcome = await run(cli, "mkdir two", "--allow-all")
    assert "The rule shell(mkdir) forbids" in tool_errors(outcome)[0]


async def test_doctor_names_rules_that_cannot_be_read(cli: Cli) -> None:
    write_rules(cli, "user", deny=["shel(rm)"])
    outcome = await cli.run("doctor", "--offline")
    assert "did you mean shell?" in outcome.text


@pytest.mark.parametrize("value", ["", " ", ","])
async def test_an_empty_rule_of_a_flag_is_an_error(cli: Cli, value: str) -> None:
    for flag in ("--deny-tool", "--allow-tool", "--deny-url", "--allow-url"):
        outcome = await run(cli, "touch one", f"{flag}={value}", "--allow-all-tools")
        assert outcome.code == 2
        assert f"{flag} has no " in outcome.text + outcome.notes
    outcome = await run(cli, "touch one", f"--excluded-tools={value}", "--allow-all-tools")
    assert outcome.code == 2
    assert "--excluded-tools names no tool" in outcome.text + outcome.notes


async def test_a_rule_for_a_command_without_its_kind_is_an_error(cli: Cli) -> None:
    """`--deny-tool touch` denied a tool called touch, and there is none."""
    outcome = await run(cli, "touch one", "--deny-tool=touch", "--allow-all-tools")
    assert outcome.code == 2
    assert "write shell(touch)" in outcome.text + outcome.notes
    assert not (cli.cwd / "one").exists()


@pytest.mark.parametrize("name", ["view", "read_file", "nobody-has-this", "sleep"])
async def test_a_rule_for_a_tool_that_somebody_may_have_is_none(cli: Cli, name: str) -> None:
    servers = {"mcpServers": {"sleep": {"command": "sleep", "args": ["0"]}}}
    (cli.home / "mcp-config.json").write_text(json.dumps(servers))
    outcome = await run(cli, "touch one", f"--deny-tool={name}", "--allow-all-tools")
    assert outcome.code == 0
    assert (cli.cwd / "one").exists()


@pytest.mark.parametrize("broken", ["{", '{"model": "x",'])
async def test_rules_that_deny_stay_when_somebody_saves_half_a_file(cli: Cli, broken: str) -> None:
    write_rules(cli, "user", deny=["shell(mkdir)"])
    await run(cli, "true")
    (cli.home / "settings.json").write_text(broken)
    outcome = await run(cli, "mkdir two", "--allow-all")
    assert "The rule shell(mkdir) forbids" in tool_errors(outcome)[0]
    assert any(
        "its last good copy is used" in one["message"] for one in outcome.of("session.warning")
    )
