"""Commands that nobody approved run behind the fence, and what it stops is asked about."""

import asyncio
import json
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from conformance import check_lines
from gitkit import git, make_repository
from trimtab.agents import fence
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.options import Client, PermissionOptions, SandboxSettings, SessionOptions
from trimtab.contracts.permission import Answer
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider
from trimtab.runtime.runtime import Runtime
from trimtab.testing.playing import Played, play, texts

NO_RULES = PermissionOptions()

pytestmark = pytest.mark.needs("landlock", "git")


class Person:
    """Gives every question the same answer and keeps the questions."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.requests: list[Any] = []

    async def __call__(self, request_id: str, request: Any) -> Answer:
        self.requests.append(request)
        return Answer(kind=self.kind)


async def run(folder: Path, *commands: str, **options: Any) -> Played:
    folder.mkdir(exist_ok=True)
    replies = [{"tools": [bash(command)]} for command in commands]
    options.setdefault("permissions", NO_RULES)
    played = await play([*replies, "done"], "go", cwd=str(folder), **options)
    check_lines(played.lines)
    return played


def plant_program(folder: Path, program: str) -> None:
    """Have `git diff` start a program, by a setting in a file that no check of ours reads."""
    make_repository(folder)
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "config", "extensions.worktreeConfig", "true")
    (folder / ".git" / "config.worktree").write_text(f'[diff]\n\texternal = "{program}"\n')
    (folder / "a.txt").write_text("b\n")


async def test_what_the_fence_stops_is_asked_about_and_then_runs_outside(tmp_path: Path) -> None:
    plant_program(tmp_path, "touch made")
    person = Person("approve-once")
    played = await run(tmp_path, "git diff", ask=person)
    (request,) = person.requests
    assert request["kind"] == "shell"
    assert request["fullCommandText"] == "git diff"
    assert request["warning"].startswith("It would write made")
    assert (tmp_path / "made").exists()
    (completed,) = played.of("permission.completed")
    assert completed.result["kind"] == "approved"
    assert len(played.of("tool.execution_complete")) == 1


async def test_a_rejection_ends_the_turn_and_nothing_has_happened(tmp_path: Path) -> None:
    plant_program(tmp_path, "touch made")
    played = await run(tmp_path, "git diff", ask=Person("reject"))
    assert not (tmp_path / "made").exists()
    (completed,) = played.of("permission.completed")
    assert completed.result["kind"] == "denied-interactively-by-user"


async def test_with_nobody_to_ask_it_is_denied_with_what_it_tried(tmp_path: Path) -> None:
    plant_program(tmp_path, "touch made")
    played = await run(tmp_path, "git diff")
    assert not (tmp_path / "made").exists()
    (completed,) = played.of("permission.completed")
    assert completed.decision_source == "unattended_fallback"
    (ended,) = played.of("tool.execution_complete")
    assert ended.error["code"] == "denied"
    assert "It would write made" in texts(played.requests)[-1]


@pytest.mark.parametrize(
    ("program", "effect"),
    [
        ("./program", "run ./program"),
        ("cat ../secret", "read ../secret"),
        ("curl -s -S http://127.0.0.1:{port}/x #", "connect to"),
        ("kill -9 {pid} #", "signal process"),
    ],
)
async def test_the_question_says_what_was_tried(tmp_path: Path, program: str, effect: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").write_text("s3cret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        plant_program(work, program.format(port=port, pid=os.getpid()))
        (work / "program").write_text("#!/bin/sh\ntouch made\n")
        (work / "program").chmod(0o755)
        permissions = PermissionOptions(temp_dir=False)
        played = await run(work, "git diff", permissions=permissions)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert f"It would {effect}" in texts(played.requests)[-1]
    assert "s3cret" not in "".join(texts(played.requests))
    assert not (work / "made").exists()


async def test_a_file_that_the_person_cannot_read_either_is_not_asked_about(
    tmp_path: Path,
) -> None:
    person = Person("approve-once")
    played = await run(tmp_path, "cat missing.txt; ls nowhere", "grep x missing.txt", ask=person)
    assert person.requests == []
    assert "No such file" in texts(played.requests)[-1]


async def test_a_rule_that_names_the_command_runs_it_outside_the_fence(tmp_path: Path) -> None:
    plant_program(tmp_path, "touch made")
    permissions = PermissionOptions(allow=("shell(git diff)",))
    await run(tmp_path, "git diff", permissions=permissions)
    assert (tmp_path / "made").exists()


async def test_a_command_that_outlives_the_session_is_asked_about(tmp_path: Path) -> None:
    person = Person("reject")
    call = bash("tail -f x.log")
    call["arguments"]["detach"] = True
    await play(
        [{"tools": [call]}, "done"], "go", cwd=str(tmp_path), permissions=NO_RULES, ask=person
    )
    assert len(person.requests) == 1


async def test_files_that_rules_forbid_to_read_stay_closed_to_fenced_commands(
    tmp_path: Path,
) -> None:
    plant_program(tmp_path, "cat .env")
    (tmp_path / ".env").write_text("s3cret")
    permissions = PermissionOptions(deny=("read(.env)",))
    played = await run(tmp_path, "git diff", permissions=permissions)
    assert "s3cret" not in "".join(texts(played.requests))


@pytest.mark.parametrize("allow", [("shell(mv)", "write"), None])
async def test_a_denied_file_stays_closed_under_the_names_it_is_given(
    tmp_path: Path, allow: tuple[str, ...] | None
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/secret").write_text("s3cret")
    os.link(tmp_path / "config/secret", tmp_path / "other")
    permissions = PermissionOptions(
        allow=allow or (), allow_all_tools=allow is None, deny=("read(config/secret)",)
    )
    move = "mv config moved"
    played = await run(tmp_path, move, "cat m*/* o*", "ls *; cat other", permissions=permissions)
    assert (tmp_path / "moved/secret").read_text() == "s3cret"
    assert "Permission denied" in "".join(texts(played.requests))
    assert "s3cret" not in "".join(texts(played.requests))


async def test_the_temp_folder_of_fenced_commands_is_removed_with_the_session(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    await run(tmp_path / "work", "ls *; cat <<< x", home=str(home))
    assert not [path for path in home.rglob("temp") if path.is_dir()]


NO_FENCE = SandboxSettings(fence="none")


def is_about_the_fence(event: Event) -> bool:
    return isinstance(event.data, SessionInfo) and event.data.info_type == "sandbox"


NO_BACKEND = SandboxSettings(fence="seatbelt")
"""The fence of another system, which cannot work on this one."""


async def say_of_the_fence(folder: Path, seconds: float) -> list[str]:
    """Return what is said of it in a session without commands that lasts some time at most."""
    said: list[str] = []
    heard = asyncio.Event()

    def on_event(event: Event, line: bytes) -> None:
        if is_about_the_fence(event):
            said.append(event.data.message)
            heard.set()

    env = {"COPILOT_HOME": str(folder / "home"), "PATH": os.defpath, "HOME": str(folder)}
    runtime = Runtime(env=env, provider=ScriptedProvider(Script.of(["hello"])))
    options = SessionOptions(cwd=str(folder), sandbox_settings=NO_BACKEND)
    live = await runtime.create(options, Client(on_event=on_event))
    with suppress(TimeoutError):
        await asyncio.wait_for(heard.wait(), seconds)
    await live.close()
    return said


async def test_a_missing_fence_is_said_before_the_first_command(tmp_path: Path) -> None:
    (message,) = await say_of_the_fence(tmp_path, 20)
    assert message == (
        "No fence works (there is no sandbox-exec): only commands that are harmless as they "
        "are written run unasked."
    )


async def test_nothing_is_said_of_the_fence_to_a_session_that_has_ended(tmp_path: Path) -> None:
    said = await say_of_the_fence(tmp_path, 0)
    await asyncio.sleep(fence.LOOK_SECONDS + 0.3)
    assert said == []


async def test_a_missing_fence_is_said_once_with_the_first_command(tmp_path: Path) -> None:
    played = await run(tmp_path, "ls", "ls *", "sleep 1.2", sandbox_settings=NO_BACKEND)
    assert len([event for event in played.events if is_about_the_fence(event)]) == 1


async def test_without_a_fence_only_what_is_harmless_as_written_runs_unasked(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    plain = ["ls -la", "cat a.txt | wc -l", "grep -n 'a.*' a.txt; pwd && echo \"x y\""]
    played = await run(tmp_path, *plain, sandbox_settings=NO_FENCE)
    assert played.of("permission.requested") == []
    for doubtful in ("ls *", "cat $HOME/x", "git status", "echo $(pwd)", "cat < a.txt", "wc ~/x"):
        played = await run(tmp_path, doubtful, sandbox_settings=NO_FENCE)
        assert len(played.of("permission.requested")) == 1, doubtful


async def test_a_fence_that_is_switched_off_is_said_once_at_the_start(tmp_path: Path) -> None:
    played = await run(tmp_path, "ls", "ls *", sandbox_settings=NO_FENCE)
    said = [event for event in played.events if is_about_the_fence(event)]
    assert played.events.index(said[0]) < played.types().index("user.message")
    (message,) = [event.data.message for event in said]
    assert message == (
        "The fence is switched off: only commands that are harmless as they are written run "
        "unasked."
    )


async def test_without_a_fence_a_program_of_the_workspace_is_not_run_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ls").write_text("#!/bin/sh\ntouch made\n")
    (tmp_path / "ls").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    played = await run(tmp_path, "ls", sandbox_settings=NO_FENCE)
    assert len(played.of("permission.requested")) == 1
    played = await run(tmp_path, "ls -l")
    assert not (tmp_path / "made").exists()


RULE = PermissionOptions(allow=("shell(git diff)", "shell(sort)"))


async def test_a_command_that_only_reads_runs_fenced_although_a_rule_allows_it(
    tmp_path: Path,
) -> None:
    plant_program(tmp_path, "touch made 2>/dev/null || true")
    await run(tmp_path, "git diff", permissions=RULE)
    assert not (tmp_path / "made").exists()


async def test_what_the_fence_stops_runs_outside_unasked_if_a_rule_allows_it(
    tmp_path: Path,
) -> None:
    plant_program(tmp_path, "touch made")
    person = Person("reject")
    played = await run(tmp_path, "git diff", permissions=RULE, ask=person)
    assert (tmp_path / "made").exists()
    assert person.requests == []
    assert "Permission denied" not in texts(played.requests)[-1]


async def test_the_log_says_behind_which_fence_a_command_ran(tmp_path: Path) -> None:
    person = Person("approve-once")
    played = await run(tmp_path, "ls *", "touch made", ask=person)
    fences = [data.fence for data in played.of("tool.execution_complete")]
    assert fences == ["Landlock", None]


async def test_what_no_rule_names_does_not_leave_the_fence_beside_what_one_names(
    tmp_path: Path,
) -> None:
    plant_program(tmp_path, "touch made")
    person = Person("reject")
    allowed = PermissionOptions(allow=("shell(sort)",))
    await run(tmp_path, "sort a.txt && git diff", permissions=allowed, ask=person)
    assert not (tmp_path / "made").exists()
    assert "It would write made" in person.requests[0]["warning"]


async def test_a_background_command_that_a_rule_allows_runs_outside_the_fence(
    tmp_path: Path,
) -> None:
    plant_program(tmp_path, "touch made")
    background = bash("git diff")
    background["arguments"] |= {"mode": "async", "shellId": "one"}
    wait = {"name": "read_bash", "arguments": {"shellId": "one", "delay": 10}}
    replies = [{"tools": [call]} for call in (background, wait)]
    await play([*replies, "done"], "go", cwd=str(tmp_path), permissions=RULE)
    assert (tmp_path / "made").exists()


async def test_an_unknown_word_that_becomes_an_option_is_asked_about_in_spite_of_a_rule(
    tmp_path: Path,
) -> None:
    (tmp_path / "words").write_text("-omade\n")
    person = Person("reject")
    await run(tmp_path, "sort $(cat words) words", permissions=RULE, ask=person)
    (request,) = person.requests
    assert "It would write made" in request["reason"]
    assert not (tmp_path / "made").exists()


async def test_commands_run_fenced_while_planning_whatever_is_allowed(tmp_path: Path) -> None:
    plant_program(tmp_path, "touch made")
    played = await run(
        tmp_path, "git diff", mode="plan", permissions=PermissionOptions(allow_all_tools=True)
    )
    assert not (tmp_path / "made").exists()
    assert "It would write made" in texts(played.requests)[-1]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def test_explain_names_the_fence_and_the_reason(cli: Cli) -> None:
    fenced = await cli.run("permissions", "explain", "git status")
    assert "fence: Landlock: nobody approved it, so it may change nothing\n" in fenced.text
    rule = "--allow-tool=shell(git status)"
    allowed = await cli.run("permissions", "explain", "git status", rule)
    outside = "what that stops, shell(git status) allows outside"
    assert f"fence: Landlock: it only reads; {outside}\n" in allowed.text
    asked = await cli.run("permissions", "explain", "git push")
    assert "fence" not in asked.text


async def test_doctor_names_the_fence(cli: Cli) -> None:
    found = json.loads((await cli.run("doctor", "--json")).out)["findings"]
    (about,) = [finding for finding in found if finding["subject"] == "fence"]
    assert about["message"] == "commands that nobody approved run behind Landlock"


class Late(Person):
    """Approves once, and makes a file before."""

    def __init__(self, path: Path) -> None:
        super().__init__("approve-once")
        self.path = path

    async def __call__(self, request_id: str, request: Any) -> Answer:
        self.path.write_text("s3cret")
        return await super().__call__(request_id, request)


@pytest.mark.parametrize("command", ["git diff", "python3 -c 'print(open(\".env\").read())'"])
async def test_what_runs_outside_after_an_answer_does_not_read_denied_files(
    tmp_path: Path, command: str
) -> None:
    plant_program(tmp_path, "touch made; cat .env")
    person = Late(tmp_path / ".env")
    permissions = PermissionOptions(deny=("read(.env)",))
    played = await run(tmp_path, command, ask=person, permissions=permissions)
    assert len(person.requests) == 1
    assert (tmp_path / "made").exists() is (command == "git diff")
    assert "s3cret" not in "".join(texts(played.requests))


@pytest.mark.needs("bubblewrap")
async def test_a_fence_that_is_removed_in_the_session_is_named(cli: Cli) -> None:
    """The reason was looked for by a thread that could read no modules any more."""
    program = cli.cwd / "bin/bwrap"
    program.parent.mkdir()
    shutil.copy(shutil.which("bwrap") or "", program)
    cli.env["PATH"] = f"{program.parent}:{cli.env['PATH']}"
    (cli.home / "settings.json").write_text(json.dumps({"sandbox": {"fence": "bubblewrap"}}))
    commands = ("echo one", f"rm {program}", "echo two")
    replies = [{"tools": [bash(command)]} for command in commands]
    async with serving([*replies, "done"]) as server:
        outcome = await cli.use(server).run(
            "-p", "go", "--output-format", "json", "--allow-tool=shell(rm)"
        )
    first, _, last = outcome.of("tool.execution_complete")
    assert first["success"], first
    assert f"no such program: {program}" in last["error"]["message"]
