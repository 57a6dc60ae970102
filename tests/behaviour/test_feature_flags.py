"""Feature flags: each has an effect that can be turned on and off, and says what decided it."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from toolkit import open_bench
from trimtab.agents.toolset import ToolConditions, find_refused_exits
from trimtab.contracts.questions import PlanReady, PlanVerdict
from trimtab.tools.exit_plan_mode.tool import ExitPlanMode
from tuikit import conversing

OF_THE_SEED = {
    "AUTOPILOT_MODE": "experimental",
    "FLEET_COMMAND": "experimental",
    "LSP_TOOLS": "on",
    "VSCODE_INTEGRATION": "staff",
    "QUEUED_COMMANDS": "staff",
    "SKILLS_INSTRUCTIONS": "staff",
    "IMAGE_PASTE_FALLBACK": "staff",
    "DISABLE_WEB_TOOLS": "off",
}
EDIT = {"name": "edit", "arguments": {"path": "a.txt", "old_str": "old", "new_str": "new"}}


async def listed(cli: Cli, *args: str, **env: str) -> dict[str, Any]:
    outcome = await cli.run("flags", "--json", *args, env=env)
    assert outcome.code == 0, outcome.notes
    return {flag["name"]: flag for flag in json.loads(outcome.text)["flags"]}


@pytest.mark.proves("FLAG-02")
async def test_the_command_lists_the_tier_state_and_effect_of_every_flag(cli: Cli) -> None:
    flags = await listed(cli)
    assert {name: flags[name]["tier"] for name in OF_THE_SEED} == OF_THE_SEED
    assert all(flag["does"] for flag in flags.values())
    assert flags["AUTOPILOT_MODE"]["state"] == "on request"
    assert flags["DISABLE_WEB_TOOLS"]["state"] == "off"
    assert (await listed(cli, "--experimental"))["FLEET_COMMAND"]["state"] == "on"
    shown = (await cli.run("flags")).text
    assert all(name in shown for name in flags)


async def test_file_and_variable_and_option_decide_in_this_order(cli: Cli) -> None:
    config = cli.home / "config.json"
    config.write_text(
        '{"feature_flags": {"enabled": ["CODE_SCANNING"], "disabled": ["LSP_TOOLS"]}}'
    )
    by_file = await listed(cli)
    assert (by_file["LSP_TOOLS"]["enabled"], by_file["LSP_TOOLS"]["source"]) == (False, str(config))
    assert by_file["CODE_SCANNING"]["enabled"]
    by_variable = await listed(cli, COPILOT_CLI_CODE_SCANNING="0")
    assert not by_variable["CODE_SCANNING"]["enabled"]
    assert by_variable["CODE_SCANNING"]["source"] == "COPILOT_CLI_CODE_SCANNING"
    async with serving([{"text": "ok"}]) as server:
        await cli.use(server).ask("go", "--feature", "DISABLE_WEB_TOOLS")
        assert "web_fetch" not in str(server.requests[0].json["tools"])


@pytest.mark.parametrize(
    ("flags", "env", "said"),
    [
        (["--no-experimental"], {}, "--no-experimental"),
        ([], {"COPILOT_CLI_AUTOPILOT_MODE": "off"}, "COPILOT_CLI_AUTOPILOT_MODE"),
        (["--feature", "AUTOPILOT_MODE=off"], {}, "--feature"),
    ],
)
async def test_autopilot_is_refused_if_somebody_turned_it_off(
    cli: Cli, flags: list[str], env: dict[str, str], said: str
) -> None:
    async with serving([]) as server:
        outcome = await cli.use(server).run("-p", "go", "--autopilot", *flags, env=env)
        assert outcome.code == 2
        assert f"{said} turns the feature AUTOPILOT_MODE off" in outcome.notes
        switched = await cli.run("-p", "/mode autopilot", *flags, env=env)
        assert switched.code == 2
        assert "Autopilot cannot be used" in switched.notes
        assert not server.requests


async def test_asking_for_autopilot_is_enough(cli: Cli) -> None:
    complete = {"name": "task_complete", "arguments": {"summary": "done"}}
    async with serving([{"tools": [complete]}]) as server:
        outcome = await cli.use(server).ask("go", "--autopilot")
    assert outcome.result["status"] == "success"


@pytest.mark.parametrize(
    ("refused", "offered"),
    [
        ((), ("autopilot", "autopilot_fleet", "interactive", "exit_only")),
        (("FLEET_COMMAND",), ("autopilot", "interactive", "exit_only")),
        (("AUTOPILOT_MODE",), ("interactive", "exit_only")),
    ],
)
async def test_a_plan_cannot_be_left_by_a_feature_that_is_off(
    tmp_path: Path, refused: tuple[str, ...], offered: tuple[str, ...]
) -> None:
    asked: list[PlanReady] = []

    async def decide(plan: PlanReady) -> PlanVerdict:
        asked.append(plan)
        return PlanVerdict(approved=False)

    now = ToolConditions(mode="plan", model="m", refused=refused)
    async with open_bench(tmp_path) as bench:
        bench.tools["exit_plan_mode"] = ExitPlanMode(decide, find_refused_exits(now))
        await bench.call("exit_plan_mode", summary="x", recommendedAction="autopilot_fleet")
    assert asked[0].actions == offered
    assert asked[0].recommended in offered


async def test_a_model_is_told_nothing_about_skills_if_that_is_off(cli: Cli) -> None:
    skill = cli.home / "skills/tidy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tidy\ndescription: Tidies up.\n---\nSweep the floor.\n")
    async with serving([{"text": "ok"}] * 3) as server:
        await cli.use(server).ask("go")
        await cli.ask("go", "--feature", "SKILLS_INSTRUCTIONS=off")
        await cli.ask("/tidy", "--feature", "SKILLS_INSTRUCTIONS=off")
        on, off, called = (json.dumps(request.json) for request in server.requests)
    assert "Tidies up." in on
    assert "Tidies up." not in off
    assert '"skill"' not in off
    assert "Sweep the floor." in called


async def test_the_servers_of_an_editor_are_not_read_if_that_is_off(cli: Cli) -> None:
    (cli.cwd / ".vscode").mkdir()
    (cli.cwd / ".vscode/mcp.json").write_text('{"servers": {"mine": {"command": "true"}}}')
    env = {"COPILOT_ALLOW_ALL": "true"}
    on = await cli.run("mcp", "list", "--json", env=env)
    off = await cli.run("mcp", "list", "--json", env=env | {"COPILOT_CLI_VSCODE_INTEGRATION": "0"})
    assert "mine" in on.text
    assert "mine" not in off.text


@pytest.mark.parametrize(("state", "queued"), [("on", True), ("off", False)])
async def test_a_command_waits_for_the_agent_only_if_commands_may_wait(
    cli: Cli, state: str, queued: bool
) -> None:
    async with (
        serving([{"tools": [bash("sleep 60")]}, {"text": "On."}]) as server,
        conversing(
            cli.use(server), "-i", "go", "--allow-all", "--feature", f"QUEUED_COMMANDS={state}"
        ) as terminal,
    ):
        await terminal.sees("○ bash sleep 60")
        await terminal.send("/compact\x11")
        await terminal.shows("queued: /compact" if queued else "cannot wait, because the feature")
        terminal.type("\x15\x1b")
        await terminal.shows("Stopped by the user")


@pytest.mark.parametrize(("state", "attached"), [("on", True), ("off", False)])
async def test_an_empty_paste_attaches_the_image_in_the_clipboard(
    cli: Cli, state: str, attached: bool
) -> None:
    program = cli.home / "bin/wl-paste"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\ncase $1 in --list-types) echo image/png;; *) printf '\\211PNG1234';; esac\n"
    )
    program.chmod(0o755)
    cli.env["PATH"] = f"{program.parent}:{cli.env['PATH']}"
    async with (
        serving([]) as server,
        conversing(cli.use(server), "--feature", f"IMAGE_PASTE_FALLBACK={state}") as terminal,
    ):
        await terminal.ready()
        terminal.type("see \x1b[200~\x1b[201~here")
        await terminal.sees(r"see.*here")
        if attached:
            await terminal.sees(r"\[image")
        assert ("[image" in terminal.visible) is attached
        terminal.type("\x15")
        await terminal.ready()


async def test_an_unknown_feature_and_a_wrong_state_are_refused(cli: Cli) -> None:
    unknown = await cli.run("-p", "go", "--feature", "NOPE=on")
    assert unknown.code == 2
    assert "There is no feature 'NOPE'" in unknown.notes
    wrong = await cli.run("-p", "go", "--feature", "LSP_TOOLS=maybe")
    assert wrong.code == 2
    assert "write LSP_TOOLS=on or LSP_TOOLS=off" in wrong.notes


@pytest.mark.proves("HEAD-13")
@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        ([], None),
        (["--enable-reasoning-summaries"], {"summary": "auto"}),
        (["--enable-reasoning-summaries", "--effort", "low"], {"effort": "low", "summary": "auto"}),
    ],
)
async def test_reasoning_summaries_are_asked_for(
    cli: Cli, flags: list[str], asked: dict[str, str] | None
) -> None:
    env = {"COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_WIRE_API": "responses"}
    async with serving([{"text": "ok", "reasoning": "Because."}]) as server:
        outcome = await cli.use(server).ask("go", *flags, env=env)
    assert server.requests[0].json.get("reasoning") == asked
    assert outcome.of("assistant.reasoning")[0]["content"] == "Because."


@pytest.mark.proves("HEAD-08")
@pytest.mark.parametrize(("flags", "coloured"), [((), True), (("--plain-diff",), False)])
async def test_diffs_are_shown_without_colours_on_request(
    cli: Cli, flags: tuple[str, ...], coloured: bool
) -> None:
    (cli.cwd / "a.txt").write_text("old\n")
    async with (
        serving([{"tools": [EDIT]}, {"text": "Edited."}]) as server,
        conversing(cli.use(server), "-i", "go", "--allow-all", *flags) as terminal,
    ):
        await terminal.shows(r"Edited\.")
        await terminal.shows(r"1 \+ new")
    sent = terminal.bytes.decode("utf-8", "replace")
    assert ("\x1b[32m    1 + " in sent) is coloured
    assert "    1 + " in sent
