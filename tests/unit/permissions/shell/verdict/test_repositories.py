"""Repositories below, by which git starts programs."""

import os
from pathlib import Path

import msgspec
import pytest

from gitkit import git, make_repository
from permissionkit import POLICY, rules
from trimtab.contracts.permission import Policy
from trimtab.permissions.assess import forget_scripts
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.shell.verdict.repositories import (
    find_starting,
    holds_links,
    starts_programs,
)


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep/sub/.git/hooks").mkdir(parents=True)
    cwd = str(tmp_path)
    return msgspec.structs.replace(POLICY, cwd=cwd, roots=(cwd,), allow=rules("shell(git:*)"))


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = ../evil\n",
        "[core]fsmonitor=../evil",
        '[filter "x"]\n\tclean = cat | ./evil\n',
        '[filter "x"]\n\tprocess = true && ./evil\n',
        '[filter "x"]\n\tclean = git-lfs clean; ./evil\n'.replace(";", " |"),
        "\ufeff[include]\n\tpath = ../more\n",
        "# \n" * 600_000,
    ],
)
def test_git_starts_what_a_repository_below_says_when_it_looks_for_changes(
    policy: Policy, settings: str
) -> None:
    """`git add .` ran a program of a repository that an archive had brought along."""
    sub = Path(policy.cwd) / "deep/sub"
    for command in ("git add .", "git commit -am x", "git stash", "git add a && git status"):
        assert decide_shell(command, policy).verdict == "allow"
        (sub / ".git/config").write_text(settings)
        assert find_starting(policy.cwd) == str(sub)
        assert starts_programs(str(sub))
        assert decide_shell(command, policy).verdict == "ask"
        assert decide_shell("git status", policy).harmless
        (sub / ".git/config").write_text("[core]\n\tbare = false\n")


def test_hooks_and_data_in_other_places_count(policy: Policy) -> None:
    sub = Path(policy.cwd) / "deep/sub"
    assert not starts_programs(str(sub))
    (sub / ".git/hooks/pre-commit.sample").touch()
    assert not starts_programs(str(sub))
    (sub / ".git/hooks/pre-commit").touch()
    assert starts_programs(str(sub))
    assert decide_shell("git -C deep/sub commit -m x", policy).verdict == "ask"
    assert find_starting(policy.cwd) == ""  # it runs for a commit there only
    (sub / ".git/hooks/post-index-change").touch()
    assert find_starting(policy.cwd) == str(sub)
    os.rename(sub / ".git", Path(policy.cwd) / ".git/data")
    (sub / ".git").write_text("gitdir: ../../.git/data\n")
    assert find_starting(policy.cwd) == str(sub)
    assert starts_programs(str(sub))


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\thooksPath = .husky\n\teditor = vim\n\tpager = less ; mine\n",
        '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n',
        "[core]\n\tfsmonitor = false # slow\n",
    ],
)
def test_ordinary_repositories_below_are_left_alone(policy: Policy, settings: str) -> None:
    (Path(policy.cwd) / "deep/sub/.git/config").write_text(settings)
    assert find_starting(policy.cwd) == ""
    assert decide_shell("git add .", policy).verdict == "allow"


def test_generated_folders_are_searched_only_if_git_may_look_there(policy: Policy) -> None:
    inner = Path(policy.cwd) / "node_modules/x/.git"
    inner.mkdir(parents=True)
    (inner / "config").write_text("[core]\n\tfsmonitor = ../evil\n")
    assert find_starting(policy.cwd) == str(inner.parent)
    assert find_starting(policy.cwd, ("node_modules",)) == ""
    assert decide_shell("git add .", policy).verdict == "allow"
    assert decide_shell("git add -f node_modules/x && git status", policy).verdict == "ask"
    (Path(policy.cwd) / ".git/index").write_bytes(b"DIRC" + b"\0\0\xe0\0" + b"x" * 40)
    assert holds_links(policy.cwd)
    assert decide_shell("git add .", policy).verdict == "ask"


@pytest.mark.needs("git")
def test_the_index_tells_of_other_repositories(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "sub"):
        folder.mkdir(exist_ok=True)
        make_repository(folder)
        (folder / "a").write_text("a")
        git(folder, "add", "a")
        git(folder, "commit", "-q", "-m", "one")
    assert not holds_links(str(tmp_path))
    git(tmp_path, "add", "sub")
    assert holds_links(str(tmp_path))
    git(tmp_path, "update-index", "--split-index")
    assert holds_links(str(tmp_path))


@pytest.mark.parametrize("name", ["q/hooks/update", "q/hooks/pre-receive"])
def test_a_repository_of_the_workspace_that_is_pushed_to_runs_its_hooks(
    policy: Policy, name: str
) -> None:
    """`git push q` ran a hook that a rule for writing had let be put there."""
    commands = ("git push q HEAD", "git push -q ./q HEAD:refs/heads/x", "git remote add o ./q")
    for folder in ("q/hooks", "q/objects"):
        (Path(policy.cwd) / folder).mkdir(parents=True)
    (Path(policy.cwd) / "q/HEAD").touch()
    for command in (*commands, "git push origin main"):
        assert decide_shell(command, policy).verdict == "allow"
    (Path(policy.cwd) / name).touch()
    forget_scripts()
    for command in commands:
        assert decide_shell(command, policy).verdict == "ask"
    assert decide_shell("git push origin main", policy).verdict == "allow"


@pytest.mark.parametrize(
    "command", ["git init --bare r && git push r", "git clone . r; git push ./r"]
)
def test_a_repository_that_a_script_makes_is_not_pushed_to_unasked(
    policy: Policy, command: str
) -> None:
    assert decide_shell(command, policy).verdict == "ask"
    usual = "git init && git remote add origin https://x.test/y && git push -u origin main"
    assert decide_shell(usual, policy).verdict == "allow"


def test_only_the_repositories_that_git_works_in_are_searched(policy: Policy) -> None:
    """A folder of many projects is too large, and most of them are not meant."""
    cwd = Path(policy.cwd)
    (cwd / ".git").rmdir()
    (cwd / "app/.git").mkdir(parents=True)
    (cwd / "deep/sub/.git/config").write_text("[core]\n\tfsmonitor = ./evil\n")
    for command in ("cd app && git add .", "git -C app commit -m x", "git init new"):
        assert decide_shell(command, policy).verdict == "allow"
    (cwd / "app/below/.git").mkdir(parents=True)
    (cwd / "app/below/.git/config").write_text("[core]\n\tfsmonitor = ./evil\n")
    forget_scripts()
    assert decide_shell("cd app && git add .", policy).verdict == "ask"
    assert decide_shell("git -C app commit -m x", policy).verdict == "ask"
    assert decide_shell("git init new", policy).verdict == "allow"
