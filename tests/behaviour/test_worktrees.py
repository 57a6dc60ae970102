"""`--worktree`: a session that never touches the person's checkout, and `trimtab worktrees`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving
from gitkit import git
from properties.worktree_writers import check

pytestmark = pytest.mark.needs("git")
EDIT: dict[str, Any] = {
    "name": "edit",
    "arguments": {"path": "a.txt", "old_str": "two\n", "new_str": "TWO\n"},
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text("one\ntwo\nthree\n")
    (cli.cwd / ".gitignore").write_text(".env\nnot-copied\n")
    git(cli.cwd, "init", "-q", "-b", "main")
    git(cli.cwd, "add", "-A")
    git(cli.cwd, "commit", "-qm", "base")
    return cli


async def work(cli: Cli, *flags: str, calls: tuple[dict[str, Any], ...] = (EDIT,)) -> Outcome:
    replies = [*({"tools": [call]} for call in calls), {"text": "Done."}]
    async with serving(replies) as server:
        outcome = await cli.use(server).ask("change two", *flags)
    assert outcome.code == 0, outcome.notes
    return outcome


def worktree(cli: Cli, name: str) -> Path:
    return cli.cwd.with_name("project.worktrees") / name


@pytest.mark.proves("VSC-23")
async def test_the_work_is_on_a_branch_of_its_own_and_the_checkout_is_untouched(cli: Cli) -> None:
    (cli.cwd / "dirty.txt").write_text("mine")
    outcome = await work(cli, "--worktree=fix")
    assert (cli.cwd / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert git(cli.cwd, "status", "--short") == "?? dirty.txt\n"
    assert git(cli.cwd, "show", "trimtab/fix:a.txt") == "one\nTWO\nthree\n"
    (used,) = outcome.of("trimtab.worktree")
    assert used["path"] == str(worktree(cli, "fix"))
    said = [data["message"] for data in outcome.of("session.info")]
    assert any("without 1 uncommitted change of" in message for message in said)
    assert any("The work is on branch trimtab/fix: 1 file changed" in message for message in said)


@pytest.mark.proves("VSC-24")
async def test_each_turn_has_checkpoints_at_its_start_and_end(cli: Cli) -> None:
    outcome = await work(cli, "--worktree=fix", "--no-auto-commit")
    start, end = outcome.of("trimtab.checkpoint")
    assert git(cli.cwd, "show", f"{start['ref']}:a.txt") == "one\ntwo\nthree\n"
    assert git(cli.cwd, "show", f"{end['ref']}:a.txt") == "one\nTWO\nthree\n"
    assert git(worktree(cli, "fix"), "status", "--short") == " M a.txt\n"
    assert git(worktree(cli, "fix"), "diff", "--cached", "--name-only") == ""


@pytest.mark.proves("VSC-07")
async def test_the_commits_of_the_session_itself_are_not_changes_by_others(cli: Cli) -> None:
    calls = (bash("echo 1 > 1.txt; git add 1.txt"), bash("echo 2 > 2.txt"))
    await work(cli, "--worktree=fix", calls=calls[:1])
    (worktree(cli, "fix") / "mine.txt").write_text("a person's\n")
    outcome = await work(cli, "--continue", calls=calls[1:])
    again = await work(cli, "--continue", calls=(bash("echo 3 > 3.txt"),))
    (log,) = cli.logs()
    changed = [
        event["data"]
        for event in map(json.loads, log.read_text().splitlines())
        if event["type"] == "trimtab.workspace_changed" and event["data"]["reason"] == "person"
    ]
    paths = [change["path"] for data in changed for change in data["changes"]]
    assert paths == [str(worktree(cli, "fix") / "mine.txt")], (outcome.text, again.text)


async def test_hooks_of_the_repository_do_not_run_for_our_own_git_calls(cli: Cli) -> None:
    hooks = cli.cwd / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "post-commit", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {cli.home}/ran-{name}\n")
        (hooks / name).chmod(0o755)
    await work(cli, "--worktree=fix")
    assert not list(cli.home.glob("ran-*"))


async def test_files_named_in_worktreeinclude_are_copied_and_others_are_not(cli: Cli) -> None:
    (cli.cwd / ".worktreeinclude").write_text(".env\n")
    (cli.cwd / ".env").write_text("KEY=1")
    (cli.cwd / "not-copied").write_text("x")
    await work(cli, "--worktree=fix")
    assert (worktree(cli, "fix") / ".env").read_text() == "KEY=1"
    assert not (worktree(cli, "fix") / "not-copied").exists()


async def test_a_resumed_session_goes_on_in_its_worktree(cli: Cli) -> None:
    first = await work(cli, "--worktree=fix")
    session = first.result["sessionId"]
    await work(cli, f"--resume={session}", calls=(bash("pwd > where.txt"),))
    assert (worktree(cli, "fix") / "where.txt").read_text().strip() == str(worktree(cli, "fix"))
    assert not (cli.cwd / "where.txt").exists()


async def test_removal_is_refused_while_anything_would_be_lost(cli: Cli) -> None:
    await work(cli, "--worktree=fix")
    refused = await cli.run("worktrees", "remove", "fix")
    assert refused.code == 2
    assert "no other branch" in refused.notes
    git(cli.cwd, "merge", "-q", "trimtab/fix")
    (worktree(cli, "fix") / "more.txt").write_text("x")
    refused = await cli.run("worktrees", "remove", "fix")
    assert "uncommitted" in refused.notes
    (worktree(cli, "fix") / "more.txt").unlink()
    assert (await cli.run("worktrees", "remove", "fix")).code == 0
    assert not worktree(cli, "fix").exists()
    assert "trimtab/fix" not in git(cli.cwd, "branch")


async def test_a_worktree_in_use_is_neither_shared_nor_removed(cli: Cli) -> None:
    async with serving([{"tools": [bash("touch started; sleep 30")]}]) as server:
        process = await cli.use(server).start(
            "-p", "go", "--allow-all", "--worktree=fix", "--output-format=json"
        )
        assert process.stdout is not None
        async for line in process.stdout:
            if b'"tool.execution_start"' in line:
                break
        refused = await cli.run("worktrees", "remove", "fix")
        shared = await cli.run("-p", "too", "--worktree=fix", "--allow-all")
        process.kill()
        await process.communicate()
    assert "works in it" in refused.notes
    assert "in use" in shared.notes
    assert worktree(cli, "fix").exists()


async def test_a_worktree_that_others_made_is_left_alone(cli: Cli) -> None:
    git(cli.cwd, "worktree", "add", "-q", str(worktree(cli, "theirs")))
    refused = await cli.run("worktrees", "remove", "theirs")
    assert "not a worktree created by trimtab" in refused.notes
    async with serving([{"text": "Done."}]) as server:
        taken = await cli.use(server).run("-p", "go", "--worktree=theirs")
    assert taken.code == 2
    assert "not created by trimtab" in taken.notes
    assert json.loads((await cli.run("worktrees", "--json")).text) == {"worktrees": []}


@pytest.mark.parametrize("name", ["../out", "-x", "a/b", ".hidden", "a..b"])
async def test_a_name_cannot_lead_elsewhere(cli: Cli, name: str) -> None:
    async with serving([{"text": "Done."}]) as server:
        outcome = await cli.use(server).run("-p", "go", f"--worktree={name}")
    assert outcome.code == 2
    assert "not a valid name for a worktree" in outcome.notes


async def test_without_a_repository_there_is_no_worktree(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "elsewhere")
    async with serving([{"text": "Done."}]) as server:
        outcome = await cli.use(server).run("-p", "go", "--worktree")
    assert outcome.code == 2
    assert "not in a git repository" in outcome.notes


async def test_parallel_writers_that_are_killed_stay_in_their_worktrees(tmp_path: Path) -> None:
    await check(4, seed=os.getpid() % 1000, folder=tmp_path / "writers")


async def test_uncommitted_changes_can_be_copied_and_stay_uncommitted_on_both_sides(
    cli: Cli,
) -> None:
    (cli.cwd / "a.txt").write_text("one\ntwo\nTHREE\n")
    (cli.cwd / "new.txt").write_text("new\n")
    git(cli.cwd, "add", "new.txt")
    before = git(cli.cwd, "status", "--short")
    outcome = await work(cli, "--worktree=fix", "--worktree-changes=copy", "--no-auto-commit")
    assert git(cli.cwd, "status", "--short") == before
    assert (cli.cwd / "a.txt").read_text() == "one\ntwo\nTHREE\n"
    assert (worktree(cli, "fix") / "a.txt").read_text() == "one\nTWO\nTHREE\n"
    assert (worktree(cli, "fix") / "new.txt").read_text() == "new\n"
    assert git(worktree(cli, "fix"), "status", "--short") == " M a.txt\n?? new.txt\n"
    said = [data["message"] for data in outcome.of("session.info")]
    assert any("a copy of 2 uncommitted changes" in message for message in said)


@pytest.mark.proves("VSC-26")
async def test_a_folder_is_made_ready_in_order_and_git_runs_nothing_of_one_not_trusted(
    cli: Cli,
) -> None:
    ran = cli.home / "ran"
    git(cli.cwd, "config", "filter.evil.smudge", f"touch {ran}; cat")
    (cli.cwd / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    (cli.cwd / "mine.txt").write_text("not committed")
    async with serving([{"text": "Done."}]) as server:
        refused = await cli.use(server).run("-p", "go", "--worktree=fix")
        assert (refused.code, server.requests) == (2, [])
    assert "is not trusted" in refused.notes
    assert "start with --trust-folder if you trust it." in refused.notes
    assert not ran.exists()
    assert not worktree(cli, "fix").exists()
    outcome = await work(cli, "--worktree=fix", "--trust-folder", f"--add-dir={cli.home}")
    assert ran.exists()
    (used,) = outcome.of("trimtab.worktree")
    assert used["path"] == str(worktree(cli, "fix"))
    assert any("1 uncommitted" in data["message"] for data in outcome.of("session.info"))


async def test_a_sparse_checkout_loses_nothing_by_a_copy_or_a_commit(cli: Cli) -> None:
    (cli.cwd / "part").mkdir()
    (cli.cwd / "part" / "p.txt").write_text("p\n")
    (cli.cwd / "part" / ".env").write_text("staged although ignored\n")
    git(cli.cwd, "add", "part/p.txt")
    git(cli.cwd, "commit", "-qm", "part")
    git(cli.cwd, "sparse-checkout", "set", "--no-cone", "part")
    (cli.cwd / "part" / "p.txt").write_text("changed\n")
    git(cli.cwd, "add", "-f", "part/.env")
    assert not (cli.cwd / "a.txt").exists()
    outcome = await work(
        cli, "--worktree=fix", "--worktree-changes=copy", calls=(bash("cat part/.env"),)
    )
    assert "staged although ignored" in str(outcome.of("tool.execution_complete"))
    assert git(cli.cwd, "show", "trimtab/fix:part/p.txt") == "changed\n"
    assert git(cli.cwd, "diff", "--name-only", "main", "trimtab/fix") == "part/p.txt\n"
    for checkpoint in outcome.of("trimtab.checkpoint"):
        assert "a.txt" in git(cli.cwd, "ls-tree", "--name-only", checkpoint["ref"])
