"""Repositories that a command destroyed come back whole: files, history and objects."""

import subprocess
from pathlib import Path

import pytest

from clikit import Cli, bash, serving
from gitkit import git, make_repository
from undokit import tree, work

pytestmark = pytest.mark.needs("git")


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


def state(folder: Path) -> str:
    """Everything git knows of a checkout: branches, worktrees, index, what it is in the middle of."""
    told = (
        ("rev-parse", "HEAD"),
        ("for-each-ref", "--format=%(objectname) %(refname)"),
        ("worktree", "list"),
        ("status",),
    )
    return "".join(git(folder, *args) for args in told) + fsck(folder)


def commit(folder: Path, text: str) -> None:
    (folder / "note.txt").write_text(f"{text}\n")
    git(folder, "add", "note.txt")
    git(folder, "commit", "-qm", text)


@pytest.fixture
def repository(cli: Cli) -> Path:
    make_repository(cli.cwd)
    commit(cli.cwd, "one")
    commit(cli.cwd, "two")
    return cli.cwd


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -q other",
        "echo three > note.txt; git commit -qam three; git checkout -q -b new",
        "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
        "git checkout -q --detach HEAD~1; echo mine > note.txt; git commit -qam x; git rebase main",
        "git gc -q; git branch -D other",
    ],
)
async def test_what_a_command_did_in_a_linked_worktree_is_taken_back(
    cli: Cli, repository: Path, command: str
) -> None:
    git(repository, "branch", "other")
    linked = cli.cwd.parent / "linked"
    git(repository, "worktree", "add", "-q", str(linked), "-b", "trimtab/own")
    commit(linked, "own")
    before = state(linked)
    cli.cwd = linked
    await work(cli, [bash(f"{command}; true")], flags=("--allow-destructive",))
    assert state(linked) != before
    assert (await cli.run("undo")).code == 0
    assert state(linked) == before


@pytest.mark.parametrize("kind", ["separate", "link", "submodule"])
async def test_a_git_folder_that_is_elsewhere_is_taken_back_too(
    cli: Cli, repository: Path, kind: str
) -> None:
    if kind == "submodule":
        allow = ("-c", "protocol.file.allow=always")
        git(repository, *allow, "submodule", "--quiet", "add", str(repository), "lib")
        git(repository, "commit", "-qm", "lib")
        cli.cwd = repository / "lib"
    else:
        git(repository, "init", "-q", "--separate-git-dir", str(repository.parent / "gd"))
    if kind == "link":
        (repository / ".git").unlink()
        (repository / ".git").symlink_to("../gd")
    before = state(cli.cwd)
    who = "git -c user.name=P -c user.email=p@example.org"
    await work(cli, [bash(f"echo three > note.txt; {who} commit -qam three")])
    assert state(cli.cwd) != before
    assert (await cli.run("undo")).code == 0
    assert state(cli.cwd) == before


@pytest.mark.parametrize(
    "command",
    [
        "git branch -D lfs/a objects/b worktrees/c build",
        "rm -rf .git",
        "git pack-refs --all; git commit -q --allow-empty -m empty",
        "git worktree add -q inside -b inside; cd inside; git commit -q --allow-empty -m empty",
    ],
)
async def test_branches_of_any_name_and_of_others_are_never_lost(
    cli: Cli, repository: Path, command: str
) -> None:
    for branch in ("lfs/a", "objects/b", "worktrees/c", "build"):
        git(repository, "branch", branch)
    for branch in ("theirs", "trimtab/session"):
        place = cli.cwd.parent / branch.replace("/", "-")
        git(repository, "worktree", "add", "-q", str(place), "-b", branch)
    git(repository, "commit-graph", "write", "--reachable", "--split")
    before = state(repository)
    await work(cli, [bash(command)], flags=("--allow-destructive",))
    undone = await cli.run("undo")
    assert undone.code == 0, undone.text
    assert state(repository) == before


async def test_what_others_commit_in_their_worktrees_meanwhile_stays(
    cli: Cli, repository: Path
) -> None:
    theirs = cli.cwd.parent / "theirs"
    git(repository, "worktree", "add", "-q", str(theirs), "-b", "theirs")
    await work(
        cli,
        [bash(f"echo x > a.txt; cd {theirs}; echo y > y; git add y; git commit -qm y")],
    )
    tip = git(theirs, "rev-parse", "HEAD")
    assert (await cli.run("undo")).code == 0
    assert (repository / "a.txt").read_text() == "one\n"
    assert git(theirs, "rev-parse", "HEAD") == tip
    assert git(theirs, "status", "--short") == ""
