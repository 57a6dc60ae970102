"""Repositories that a command destroyed come back whole: files, history and objects."""

import subprocess
from pathlib import Path

import pytest

from clikit import Cli, bash, serving
from properties.worktree_writers import git
from undokit import tree, work


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text("one\n")
    return cli


def fsck(folder: Path) -> str:
    found = subprocess.run(
        ["git", "-C", folder, "fsck", "--full", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout + found.stderr if found.returncode else ""


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .git",
        "rm -rf .git && git init -q && git add -A",
        "mv .git /tmp/nowhere-$$ && rm -rf /tmp/nowhere-$$",
        "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
        "rm -rf sub",
        "git clean -ffdxq",
    ],
)
async def test_a_deleted_repository_comes_back_whole(cli: Cli, command: str) -> None:
    repository = cli.cwd
    (repository / "sub").mkdir()
    for folder in (repository, repository / "sub"):
        git(folder, "init", "-q", "-b", "main")
        for text in ("one", "two"):
            (folder / "note.txt").write_text(text)
            git(folder, "add", "note.txt")
            git(folder, "commit", "-qm", text)
    git(repository / "sub", "gc", "-q")
    before = tree(repository)
    history = git(repository, "log", "--format=%H"), git(repository / "sub", "log", "--format=%H")
    await work(cli, [bash(command)], flags=("--allow-destructive",))
    undone = await cli.run("undo")
    assert undone.code == 0, undone.text
    assert tree(repository) == before
    assert fsck(repository) + fsck(repository / "sub") == ""
    assert history == (
        git(repository, "log", "--format=%H"),
        git(repository / "sub", "log", "--format=%H"),
    )
    assert git(repository / "sub", "status", "--short") == ""


async def test_objects_that_git_still_has_are_let_go_at_the_end(cli: Cli) -> None:
    git(cli.cwd, "init", "-q")
    git(cli.cwd, "add", "-A")
    git(cli.cwd, "commit", "-qm", "base")
    await work(cli, [bash("echo x > a.txt; git commit -qam changed")])
    assert not list(cli.home.rglob("git-objects"))


async def test_a_repository_destroyed_by_a_killed_session_comes_back_too(cli: Cli) -> None:
    git(cli.cwd, "init", "-q")
    git(cli.cwd, "add", "-A")
    git(cli.cwd, "commit", "-qm", "base")
    async with serving([{"tools": [bash("rm -rf .git; echo gone; sleep 30")]}]) as server:
        flags = ("--allow-all", "--allow-destructive", "--output-format=json")
        running = await cli.use(server).start("-p", "go", *flags)
        assert running.stdout is not None
        async for line in running.stdout:
            if b'"tool.execution_partial_result"' in line:
                break
        running.kill()
        await running.communicate()
    assert not (cli.cwd / ".git").exists()
    assert (await cli.run("undo", "--file", ".git")).code == 0
    assert fsck(cli.cwd) == ""
    assert git(cli.cwd, "log", "--format=%s") == "base\n"
