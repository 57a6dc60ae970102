"""Git commands that run without a question start no programs of the repository."""

import os
from pathlib import Path

import pytest

from clikit import bash
from gitkit import git, make_repository
from trimtab.contracts.options import PermissionOptions
from trimtab.policy.git_programs import find_git_programs, own_git_variables, safe_git_variables
from trimtab.testing.playing import ALLOW_ALL, Played, play

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    make_repository(folder)
    (folder / "file").write_text("a\n")
    git(folder, "add", "file")
    git(folder, "commit", "-qm", "x")
    (folder / "file").write_text("b\n")
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/evil\n")
    script.chmod(0o755)
    return folder


async def run(folder: Path, command: str) -> Played:
    script = [{"tools": [bash(command)]}, "done"]
    return await play(script, "go", cwd=str(folder), permissions=PermissionOptions())


async def test_a_monitor_of_the_repository_is_not_started(repository: Path) -> None:
    git(repository, "config", "core.fsmonitor", str(repository.parent / "evil.sh"))
    played = await run(repository, "git status --short && git diff")
    (end,) = played.of("tool.execution_complete")
    assert end.success
    assert "+b" in end.result["content"]
    assert not (repository.parent / "evil").exists()


SETTINGS = ["diff.external", "diff.x.textconv", "diff.x.command", "filter.x.clean"]


@pytest.mark.parametrize("setting", SETTINGS)
async def test_what_no_variable_prevents_is_asked_about(repository: Path, setting: str) -> None:
    git(repository, "config", setting, str(repository.parent / "evil.sh"))
    (repository / ".gitattributes").write_text("* diff=x filter=x\n")
    played = await run(repository, "git diff")
    (end,) = played.of("tool.execution_complete")
    assert not end.success
    assert "makes git start a program" in end.model_text
    assert not (repository.parent / "evil").exists()


async def test_only_what_nobody_was_asked_about_runs_with_caution(repository: Path) -> None:
    command = "git log --oneline; printenv GIT_OPTIONAL_LOCKS"
    for allowed, expected in ((False, "\n0\n"), (True, "exit code 1")):
        options = PermissionOptions(allow_all_tools=allowed, allow_all_paths=allowed)
        script = [{"tools": [bash(command)]}, "done"]
        played = await play(script, "go", cwd=str(repository), permissions=options)
        (end,) = played.of("tool.execution_complete")
        assert expected in end.result["content"]


def test_variables_go_on_counting_where_the_person_stopped() -> None:
    variables = safe_git_variables({"GIT_CONFIG_COUNT": "2"})
    assert variables["GIT_CONFIG_KEY_2"] == "core.fsmonitor"
    assert variables["GIT_CONFIG_COUNT"] == "7"
    assert safe_git_variables({"GIT_CONFIG_COUNT": "x"})["GIT_CONFIG_KEY_0"] == "core.fsmonitor"


def test_large_files_and_ordinary_settings_are_no_reason_to_ask(repository: Path) -> None:
    git(repository, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    git(repository, "config", "diff.renames", "true")
    assert find_git_programs(str(repository)) == ""
    assert find_git_programs(os.path.join("/", "no", "such", "place")) == ""


@pytest.mark.parametrize(
    ("rule", "happens"), [("shell(git:*)", False), ("shell(mv)", False), (None, True)]
)
async def test_a_rule_for_git_lets_no_committed_files_be_a_repository(
    repository: Path, rule: str | None, happens: bool
) -> None:
    files = {"config": f"[alias]\n\tx = !{repository.parent}/evil.sh\n", "H": "ref: refs/heads/x\n"}
    for name in ("objects", "refs"):
        (repository / "bare" / name).mkdir(parents=True)
    for name, content in files.items():
        (repository / "bare" / name).write_text(content)
    permissions = PermissionOptions(allow=("shell(mv)", rule or "")) if rule else ALLOW_ALL
    script = [{"tools": [bash("mv bare/H bare/HEAD && git -C bare x")]}, "done"]
    await play(script, "go", cwd=str(repository), permissions=permissions)
    assert (repository.parent / "evil").exists() is happens


def test_the_variables_add_to_settings_that_are_there() -> None:
    found = own_git_variables({"GIT_CONFIG_COUNT": "2"})
    assert found == {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_2": "safe.bareRepository",
        "GIT_CONFIG_VALUE_2": "explicit",
    }
