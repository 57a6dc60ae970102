"""Fleets that a session starts: for clients of the SDK, after a plan, and in a conversation."""

import json
from pathlib import Path
from typing import Any

import pytest
from copilot.generated.rpc import (
    CommandsInvokeRequest,
    FleetStartRequest,
    ModeSetRequest,
)
from copilot.generated.session_events import SessionMode

from clikit import serving
from fleetkit import Fleet, script_of, writes
from gitkit import git, make_repository
from sdkkit import Sdk, talking, use
from terminalkit import talking as terminal_talking
from tuikit import conversing

pytestmark = pytest.mark.needs("git")

QUERY = (
    "INSERT INTO todos (id, title, description) VALUES ('a', 'Part a', 'TODO-a-HERE'), "
    "('b', 'Part b', 'TODO-b-HERE')"
)
PLAN = {
    "when": {"last": "Split the goal into todos"},
    **use("sql", description="plan", query=QUERY),
}
RULES = [PLAN, writes("a", "a.txt", "a"), writes("b", "b.txt", "b")]
REPORTED = {"when": {"last": "The fleet .* has ended"}, "text": "Both parts are merged."}


@pytest.fixture
def project(sdk: Sdk) -> Path:
    make_repository(sdk.cwd)
    (sdk.cwd / "base.txt").write_text("base\n")
    git(sdk.cwd, "add", "-A")
    git(sdk.cwd, "commit", "-qm", "base")
    return sdk.cwd


def merged_files(project: Path) -> list[str]:
    (branch,) = git(
        project, "for-each-ref", "--format=%(refname)", "refs/heads/trimtab/**/merged"
    ).split()
    return sorted(git(project, "ls-tree", "--name-only", branch).split())


@pytest.mark.proves("VSC-08")
async def test_a_client_starts_a_fleet_and_waits_for_its_end(sdk: Sdk, project: Path) -> None:
    script = script_of([REPORTED, *RULES])
    async with talking(sdk, script, working_directory=str(project)) as talk:
        started = await talk.session.rpc.fleet.start(
            FleetStartRequest(prompt="Make it better", wait=True), timeout=60
        )
        assert started.started is True
        infos = [
            data.message for data in talk.heard.of("session.info") if data.info_type == "fleet"
        ]
        (note,) = talk.heard.of("system.notification")
        modes = [str(data.new_mode.value) for data in talk.heard.of("session.mode_changed")]
        invoked = await talk.session.rpc.commands.invoke(CommandsInvokeRequest(name="context"))
        assert invoked is not None
    assert merged_files(project) == ["a.txt", "b.txt", "base.txt"]
    assert sorted(path.name for path in project.iterdir()) == [".git", "base.txt"]
    assert any("a: merged" in line for line in infos)
    assert "exit code 0" in note.content
    assert modes == ["plan", "interactive"]
    answer = talk.heard.of("assistant.message")[-1]
    assert answer.content == "Both parts are merged."


async def test_where_there_is_no_repository_sub_agents_share_the_folder(sdk: Sdk) -> None:
    part = use("task", description="a", prompt="Do a.", agent_type="task", mode="sync")
    script = [part, {"text": "a is done"}, {"text": "All is done."}]
    async with talking(sdk, script) as talk:
        started = await talk.session.rpc.fleet.start(
            FleetStartRequest(prompt="Make it {better}", wait=True), timeout=60
        )
        assert started.started is True
        (note,) = [
            data.message for data in talk.heard.of("session.info") if data.info_type == "fleet"
        ]
        assert "not in a git repository" in note
        assert "<goal>\nMake it {better}\n</goal>" in talk.prompt(0)
        assert talk.heard.of("assistant.message")[-1].content == "All is done."
        assert talk.heard.of("subagent.completed")
    assert list(sdk.cwd.iterdir()) == []


async def test_a_fleet_that_is_turned_off_is_refused_without_a_repository_too(sdk: Sdk) -> None:
    async with talking(sdk, [], feature_flags={"FLEET_COMMAND": False}) as talk:
        with pytest.raises(Exception, match="FLEET_COMMAND off"):
            await talk.session.rpc.fleet.start(FleetStartRequest(prompt="x"))


@pytest.mark.proves("VSC-08")
async def test_the_command_fleet_is_there_for_clients(sdk: Sdk, project: Path) -> None:
    script = script_of([REPORTED, *RULES])
    async with talking(sdk, script, working_directory=str(project)) as talk:
        names = [command.name for command in (await talk.session.rpc.commands.list()).commands]
        assert {"compact", "plan", "fleet"} <= set(names)
        request = CommandsInvokeRequest(name="fleet", input="Make it better")
        await talk.session.rpc.commands.invoke(request)
        await talk.heard.until("system.notification")
    assert merged_files(project) == ["a.txt", "b.txt", "base.txt"]


@pytest.mark.proves("VSC-15")
async def test_a_plan_accepted_for_a_fleet_is_carried_out_by_one(sdk: Sdk, project: Path) -> None:
    async def approve(_: Any, __: Any) -> Any:
        return {"approved": True, "selectedAction": "autopilot_fleet"}

    planned = {"when": {"last": "go on"}, **use("exit_plan_mode", summary="# The plan")}
    script = script_of([REPORTED, planned, *RULES])
    async with talking(
        sdk, script, working_directory=str(project), on_exit_plan_mode_request=approve
    ) as talk:
        await talk.session.rpc.mode.set(ModeSetRequest(mode=SessionMode.PLAN))
        await talk.session.send("go on")
        await talk.heard.until("system.notification")
        (result,) = talk.tool_results(1)
        splitting = next(
            str(request.json["messages"][-1])
            for request in talk.server.requests
            if "Split the goal into todos" in str(request.json["messages"][-1])
        )
    assert "A fleet of agents carries the plan out" in result
    assert "# The plan" in splitting
    assert merged_files(project) == ["a.txt", "b.txt", "base.txt"]


async def test_a_fleet_is_started_in_plain_lines(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    async with (
        serving(script_of([REPORTED, *RULES])) as server,
        terminal_talking(fleet.cli.use(server)) as terminal,
    ):
        await terminal.shows("> $")
        terminal.type("/fleet\n")
        await terminal.shows(r"Say what the fleet is to do[\s\S]*> $")
        terminal.type("/fleet Make it better\n")
        await terminal.shows(r"a: merged[\s\S]*Both parts are merged\.\s+> $")
    assert merged_files(fleet.cli.cwd) == ["a.txt", "b.txt", "base.txt"]
    assert not fleet.processes()


async def test_a_fleet_is_started_in_the_terminal(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    async with (
        serving(script_of([REPORTED, *RULES])) as server,
        conversing(fleet.cli.use(server)) as terminal,
    ):
        await terminal.ready()
        terminal.type("/fleet Make it better\r")
        await terminal.shows(r"a: merged[\s\S]*Both parts are merged\.")
        await terminal.sees("Ask anything")
    assert merged_files(fleet.cli.cwd) == ["a.txt", "b.txt", "base.txt"]


async def test_fleet_as_a_prompt_of_a_script_names_the_flag(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    async with serving([]) as server:
        outcome = await fleet.cli.use(server).run("-p", "/fleet Make it better")
    assert outcome.code == 2
    assert "--fleet" in outcome.notes


async def test_a_fleet_ends_with_the_session_that_started_it_and_can_go_on(
    tmp_path: Path,
) -> None:
    fleet = Fleet(tmp_path)
    waiting = {"when": {"last": "TODO-a-HERE"}, "tools": [{"name": "view", "arguments": {"path": "base.txt"}}], "delay": 30, "repeat": 1}  # fmt: skip
    async with serving(script_of([PLAN, waiting, *RULES[1:]])) as server:
        async with terminal_talking(fleet.cli.use(server)) as terminal:
            await terminal.shows("> $")
            terminal.type("/fleet Make it better\n")
            await terminal.shows(r"b: merged[\s\S]*> $")
        assert not fleet.processes()
        (name,) = fleet.ids()
        shown = await fleet.cli.run("fleet", "show", name, "--json")
        assert json.loads(shown.text)["status"] == "stopped"
        resumed = await fleet.cli.run("fleet", "resume", name)
        assert resumed.code == 0, resumed.text
    assert merged_files(fleet.cli.cwd) == ["a.txt", "b.txt", "base.txt"]
