"""The settings below `host.`: each has its default and an effect that a person can see."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from gitkit import git, make_repository
from livekit import opened
from trimtab import Runtime, SessionOptions
from trimtab.commands.table import list_commands
from trimtab.config.host_settings import HOST_SETTINGS
from trimtab.config.paths import Home, find_home
from trimtab.config.settings import Settings
from trimtab.contracts.errors import UsageError
from trimtab.host.hosted import HostedSession
from trimtab.host.session_list import list_sessions
from trimtab.models.sources import Offer
from trimtab.session.store import SessionStore
from trimtab.testing import Script, ScriptedProvider
from trimtab.transports.acp.settings import Settings as EditorSettings
from trimtab.transports.tui.links import Links
from trimtab.transports.tui.local_client import CAPABILITIES, LocalClient
from trimtab.transports.tui.preferences import read_preferences
from trimtab.transports.tui.theme import DARK, encode
from tuikit import conversing

DEFAULTS = {
    "mcp.enabled": True,
    "branchSupport.enabled": False,
    "showExternalSessions": True,  # false in VS Code: docs/decisions/0022
    "planExitMode.enabled": True,
    "planCommand.enabled": True,
    "aiGenerateBranchNames.enabled": True,
    "forkSessions.enabled": True,
    "isolationOption.enabled": True,
    "autoCommit.enabled": True,
    "sessionController.enabled": False,
    "thinkingEffort.enabled": True,
    "sessionControllerForSessionsApp.enabled": False,
    "terminalLinks.enabled": True,
}


def put(home: Path, **settings: Any) -> None:
    home.mkdir(parents=True, exist_ok=True)
    host = {f"host.{name.replace('_', '.')}": value for name, value in settings.items()}
    (home / "settings.json").write_text(json.dumps(host))


def names(live: Any) -> set[str]:
    return {command.name for command in list_commands(live)}


def test_every_setting_has_the_default_of_its_statement() -> None:
    assert {name: setting.default for name, setting in HOST_SETTINGS.items()} == DEFAULTS


def test_settings_of_an_editor_are_known_and_can_be_read(tmp_path: Path) -> None:
    put(tmp_path, sessionController_enabled=True, sessionControllerForSessionsApp_enabled=True)
    settings = Settings(Home(config=str(tmp_path), state=str(tmp_path)))
    assert settings.get("host.sessionController.enabled", bool, False)
    assert not settings.problems
    page = (Path(__file__).parents[2] / "docs/reference/settings.md").read_text()
    (row,) = [line for line in page.split("\n") if "`host.sessionController.enabled` | `" in line]
    assert "No effect here" in row


@pytest.mark.proves("VSC-33")
async def test_plan_switches_to_plan_mode_and_sends_the_prompt_unless_it_is_off(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, [{"text": "The plan."}]) as (live, watch, _provider):
        assert "plan" in names(live)
        await live.ask("/plan tidy the house")
        assert live.mode == "plan"
        assert [data.content for data in watch.of("user.message")] == ["tidy the house"]
    put(tmp_path / "home", planCommand_enabled=False)
    async with opened(tmp_path, []) as (live, _, _provider):
        assert "plan" not in names(live)
        with pytest.raises(UsageError, match=r"/plan is switched off; set host\.planCommand"):
            live.check_command("/plan tidy")


async def offered_tools(folder: Path) -> set[str]:
    """Return the tools of a session in plan mode whose client can show plans and questions."""
    env = {"COPILOT_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    hosted = HostedSession("", lambda _: None)
    hosted.join(LocalClient(lambda *_: None), CAPABILITIES)
    runtime = Runtime(env=env, provider=ScriptedProvider(Script.of([])))
    options = SessionOptions(cwd=str(folder), mode="plan")
    live = await runtime.create(options, hosted.as_client())
    hosted.attach(live)
    try:
        return {tool.spec.name for tool in live.controls.tools}
    finally:
        await live.close()


@pytest.mark.proves("VSC-32")
async def test_a_finished_plan_comes_with_choices_unless_they_are_off(tmp_path: Path) -> None:
    assert {"exit_plan_mode", "ask_user"} <= await offered_tools(tmp_path)
    put(tmp_path / "home", planExitMode_enabled=False)
    tools = await offered_tools(tmp_path)
    assert "exit_plan_mode" not in tools
    assert "ask_user" in tools


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-36")
async def test_a_person_is_offered_a_worktree_unless_that_is_off(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    make_repository(cli.cwd)
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "First words")
    write = {"name": "create", "arguments": {"path": "a.txt", "file_text": "a\n"}}
    script = [{"tools": [write]}, {"text": "Done."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "--allow-all-tools", "--trust-folder") as terminal,
    ):
        await terminal.ready()
        terminal.type("/worktree fix\r")
        await terminal.shows("The old session is kept")
        terminal.type("write\r")
        await terminal.shows("The work is on branch trimtab/fix")
    assert not (cli.cwd / "a.txt").exists()
    assert git(cli.cwd, "show", "trimtab/fix:a.txt") == "a\n"
    put(cli.home, isolationOption_enabled=False)
    async with serving([]) as server, conversing(cli.use(server), "--trust-folder") as terminal:
        await terminal.ready()
        terminal.type("/worktree fix\r")
        await terminal.shows("/worktree is switched off; set host.isolationOption.enabled to true")


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-30")
async def test_branches_are_listed_made_and_switched_if_that_is_on(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    make_repository(project)
    git(project, "commit", "-q", "--allow-empty", "-m", "First words")
    home = tmp_path / "project" / "home"
    async with opened(project, []) as (live, _, _provider):
        assert "branch" not in names(live)
        with pytest.raises(UsageError, match=r"host\.branchSupport\.enabled"):
            await live.run_command("/branch")
    put(home, branchSupport_enabled=True)
    async with opened(project, []) as (live, _, _provider):
        assert await live.run_command("/branch fix/it") == (
            "Made the branch fix/it and switched to it."
        )
        assert git(project, "branch", "--show-current").strip() == "fix/it"
        listed = await live.run_command("/branch")
        assert listed is not None
        assert "* fix/it" in listed
        assert "First words" in listed
        assert await live.run_command("/branch main") == "Switched to main."
        with pytest.raises(UsageError, match="not a valid name"):
            await live.run_command("/branch a..b")
    assert git(project, "branch", "--show-current").strip() == "main"


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-34")
async def test_without_names_of_the_model_a_branch_is_named_by_the_persons_words(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    bare = tmp_path / "origin.git"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    make_repository(cli.cwd)
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "First words")
    git(cli.cwd, "remote", "add", "origin", str(bare))
    git(cli.cwd, "push", "-q", "-u", "origin", "main")
    git(cli.cwd, "remote", "set-head", "origin", "main")
    (cli.cwd / "hello.txt").write_text("hello\n")
    put(cli.home, aiGenerateBranchNames_enabled=False)
    async with serving([{"text": "Say hello"}, {"text": "Say hello\n\nIt is polite."}]) as server:
        outcome = await cli.use(server).ask("/create-pr be polite", "--allow-all-tools")
    assert "be-polite" in git(bare, "branch", "--format=%(refname:short)"), outcome.notes


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-34")
@pytest.mark.parametrize("named_by", ["model", "nobody", "person"])
async def test_the_branch_of_a_worktree_is_named_by_what_was_done_unless_that_is_off(
    tmp_path: Path, named_by: str
) -> None:
    cli = Cli(tmp_path)
    make_repository(cli.cwd)
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "First words")
    git(cli.cwd, "branch", "trimtab/feat-greet-world")
    if named_by == "nobody":
        put(cli.home, aiGenerateBranchNames_enabled=False)
    write = {"name": "create", "arguments": {"path": "a.txt", "file_text": "hello\n"}}
    replies: list[Any] = [{"text": "I look."}, {"tools": [write]}, {"text": "Done."}]
    replies.append({"text": "`feat/Greet World`"})
    flag = "--worktree=mine" if named_by == "person" else "--worktree"
    async with serving(replies) as server:
        await cli.use(server).ask("look around", flag)
        outcome = await cli.ask("greet the world", "--continue")
        asked = server.requests[-1].body.decode()
    folder = cli.logs()[-1].parent
    name = {
        "model": "trimtab/feat-greet-world-2",
        "nobody": f"trimtab/{folder.name[:8]}",
        "person": "trimtab/mine",
    }[named_by]
    assert outcome.code == 0, outcome.notes
    assert git(cli.cwd, "show", f"{name}:a.txt") == "hello\n"
    assert f"The work is on branch {name}:" in outcome.text
    assert json.loads((folder / "host.json").read_text())["worktree"]["branch"] == name
    (listed,) = json.loads((await cli.run("worktrees", "--json")).text)["worktrees"]
    assert listed["branch"] == name
    if named_by == "model":
        assert "greet the world" in asked
        assert "+hello" in asked
    assert outcome.result["usage"]["modelCalls"] == (4 if named_by == "model" else 3)


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-34")
async def test_a_branch_that_was_pushed_or_a_turn_that_failed_is_not_named(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    bare = tmp_path / "origin.git"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    make_repository(cli.cwd)
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "First words")
    git(cli.cwd, "remote", "add", "origin", str(bare))
    push = bash("echo x > x; git push -q -u origin HEAD")
    async with serving([{"tools": [push]}, "Done.", "a-name"]) as server:
        outcome = await cli.use(server).ask("go", "--worktree")
    branch = f"trimtab/{cli.logs()[-1].parent.name[:8]}"
    assert f"The work is on branch {branch}:" in outcome.text
    async with serving([{"tools": [bash("echo y > y")]}, {"error": 400}]) as server:
        failed = await cli.use(server).ask("go", "--worktree")
        calls = len(server.requests)
    assert failed.code == 8
    assert calls == 2


@pytest.mark.proves("VSC-35")
async def test_sessions_are_copied_unless_that_is_off(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with serving([{"text": "hello"}]) as server:
        await cli.use(server).ask("greet")
    session = cli.logs()[-1].parent.name
    assert (await cli.run("sessions", "fork", session)).code == 0
    put(cli.home, forkSessions_enabled=False)
    refused = await cli.run("sessions", "fork", session)
    assert refused.code == 2
    assert "set host.forkSessions.enabled to true" in refused.notes
    command = await cli.ask("/fork", "--continue")
    assert command.code == 2
    assert "/fork is switched off; set host.forkSessions" in command.result["error"]["message"]
    assert len(list(cli.home.glob("session-state/*"))) == 2


@pytest.mark.needs("git")
@pytest.mark.proves("VSC-37")
async def test_work_in_a_worktree_is_committed_unless_that_is_off(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    make_repository(cli.cwd)
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "First words")
    write = {"name": "create", "arguments": {"path": "a.txt", "file_text": "a\n"}}
    put(cli.home, autoCommit_enabled=False)
    async with serving([{"tools": [write]}, {"text": "Done."}]) as server:
        await cli.use(server).ask("write", "--worktree=one", "--allow-all-tools")
    assert git(cli.cwd, "rev-list", "--count", "main..trimtab/one").strip() == "0"
    put(cli.home)
    async with serving([{"tools": [write]}, {"text": "Done."}]) as server:
        await cli.use(server).ask("write", "--worktree=two", "--allow-all-tools")
    assert git(cli.cwd, "rev-list", "--count", "main..trimtab/two").strip() == "1"


async def test_sessions_of_other_programs_are_listed_unless_the_person_wants_none(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, []) as (live, _, _provider):
        live.send("mine")
        await live.finished()
    home = find_home({"COPILOT_HOME": str(tmp_path / "home")})
    folder, log = SessionStore(home).create(cwd=str(tmp_path))
    log.close()
    folder.update_metadata(client_name="copilot-cli")
    assert {summary.id for summary in list_sessions(home)} == {live.id, folder.id}
    put(tmp_path / "home", showExternalSessions=False)
    assert [summary.id for summary in list_sessions(home)] == [live.id]


OFFERS = [Offer(choice="scripted", name="scripted", efforts=("low", "high"))]


@pytest.mark.proves("VSC-39")
async def test_the_effort_is_chosen_for_each_model_unless_that_is_off(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as (live, _, _provider):
        editor = EditorSettings(live, booleans=True)
        editor.offers = OFFERS
        assert "reasoning_effort" in {option["id"] for option in editor.describe_options()}
        assert await live.run_command("/effort high") == "The effort of scripted is high."
        live.controls.set_model("other")
        await live.run_command("/effort low")
        assert live.controls.effort == "low"
        live.controls.set_model("scripted")
        assert live.controls.effort == "high"
        live.controls.set_model("other")
        assert live.controls.effort == "low"
    put(tmp_path / "home", thinkingEffort_enabled=False)
    async with opened(tmp_path, []) as (live, _, _provider):
        editor = EditorSettings(live, booleans=True)
        editor.offers = OFFERS
        assert "reasoning_effort" not in {option["id"] for option in editor.describe_options()}
        with pytest.raises(UsageError, match=r"set host\.thinkingEffort"):
            await live.run_command("/effort high")


@pytest.mark.proves("VSC-40")
def test_addresses_and_paths_are_links_unless_that_is_off(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    line = (("", "see src/a.py:12 and https://example.org/x. Not src/b.py"),)
    marked = Links(str(tmp_path), "/nowhere").mark(line)
    linked = {text: style for style, text in marked if style}
    assert set(linked) == {"src/a.py:12", "https://example.org/x"}
    assert linked["https://example.org/x"] == "link=https://example.org/x"
    assert linked["src/a.py:12"].endswith(f"{tmp_path}/src/a.py")
    home = Home(config=str(tmp_path), state=str(tmp_path))

    def shown(env: dict[str, str]) -> str:
        chosen = read_preferences(
            Settings(home), env, no_color=False, plain_diff=False, may_ask=True
        )
        return encode(marked, chosen.adapt(DARK))

    assert "\x1b]8;;https://example.org/x\x1b\\" in shown({"TERM": "xterm-256color"})
    assert "\x1b]8" not in shown({"TERM": "linux"})
    put(tmp_path, terminalLinks_enabled=False)
    assert "\x1b]8" not in shown({"TERM": "xterm-256color"})
