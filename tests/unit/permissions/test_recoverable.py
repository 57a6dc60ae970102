"""Destruction that the session's undo takes back is not asked about for being final."""

from pathlib import Path

import msgspec
import pytest

from gitkit import git, make_repository
from permissionkit import POLICY, rules
from trimtab.contracts.permission import Policy
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.recoverable import MAX_ENTRIES, MAX_FILE, find_at_risk

MORE = ("shell(git:*)", "shell(find)", "shell(chroot)", "shell(npm:*)")


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    workspace = tmp_path / "work"
    (workspace / "old/deep").mkdir(parents=True)
    (workspace / "old/deep/a.txt").write_text("a")
    (workspace / "away").symlink_to("/etc")
    (tmp_path / "temp").mkdir()
    return msgspec.structs.replace(
        POLICY,
        cwd=str(workspace),
        roots=(str(workspace), str(tmp_path / "temp")),
        undone=(str(workspace),),
        temp=str(tmp_path / "temp"),
        allow=rules("write", "shell(rm)", *MORE),
    )


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf old",
        "rm -rf old/* *.egg-info",
        "rm -r old/deep other",
        "rm -rf dist && npm run build",
        "bash -c 'rm -rf old'",
        "cd old && rm -rf deep",
        "rm -rf ../temp/x",
        "find . -name '*.pyc' -delete",
        "find old -type f -iname '.DS_Store' -delete",
        "git clean -fdx",
        "git reset --hard",
        "git stash drop",
        "git -C old stash drop",
        "git --no-pager -C . reset --hard",
        "git branch -D topic",
        "git commit --amend -m x",
        "cd %W && rm -rf old",
        "cd . && git stash drop",
        "ls . && rm -rf old",
        "rm -rf old && du -sh .",
        "git -C %W reset --hard",
        "git clean -fd .",
        "for d in old other; do rm -rf $d; done",
        'D=old; rm -rf "$D/deep"',
        "git commit --amend -m \"$(cat <<'EOF'\nfix\nEOF\n)\"",
    ],
)
def test_what_undo_takes_back_runs_by_its_rule(policy: Policy, command: str) -> None:
    command = command.replace("%W", policy.cwd)
    assert decide_shell(command, policy).verdict == "allow"
    forgotten = msgspec.structs.replace(policy, undone=())
    decision = decide_shell(command, forgotten)
    assert decision.verdict == "ask"
    assert decision.reason.startswith("It cannot be undone")


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .",
        "cd . && rm -rf .",
        "cd %W && rm -rf %W",
        "git reset --hard; find . -delete",
        "git stash drop; rm -rf .",
        "for d in old ..; do rm -rf $d; done",
        "for d in old *; do rm -rf $d; done",
        "for d in; do :; done; rm -rf $d/",
        'D=; rm -rf "$D/"',
        "cd .. && git reset --hard",
        "rm -rf $x",
        'rm -rf "old/$x"',
        "rm -rf */x",
        "rm -rf o*d/../..",
        "rm -rf ./*",
        "rm -rf *",
        "rm -rf ..",
        "rm -rf ../other",
        "rm -rf ../temp",
        "rm -rf ../temp/*",
        "rm -rf away/x",
        "rm -rf .git",
        "rm -rf .vscode",
        "cd .. && rm -rf other",
        "cd $x && rm -rf old",
        "cd ../temp && git clean -fd",
        "cd ../temp/x && git clean -fd",
        "cd ../temp/x && git reset --hard",
        "cd ../temp/x && git commit --amend --no-edit",
        "git -C ../temp/x reset --hard",
        "rm -rf ../temp/x && git -C ../temp/y stash drop",
        "git -C ../other clean -fd",
        "git push --force",
        "git gc --prune=now",
        "git reflog expire --all",
        "git filter-branch -f x",
        "find . -delete",
        "find -delete",
        "find .. -name '*.pyc' -delete",
        "find -L . -name '*.pyc' -delete",
        "find . -delete -name '*.pyc'",
        "find . -name '*.pyc' -o -delete",
        "find . ! -name '*.pyc' -delete",
        "find old -name '*' -delete",
        "find . -name .git -delete",
        "find . -path './*.pyc' -delete",
        "find . -name '*.pyc' -name x -delete",
        "find -files0-from old -name '*.pyc' -delete",
        "find . -name x -exec rm {} +",
        "find . -name x | xargs rm -rf",
        "env A=1 rm -rf old",
        "nice rm -rf old",
        "chroot . rm -rf old",
        "rsync --delete a b",
        "shred old/deep/a.txt",
    ],
)
def test_what_undo_does_not_reach_is_asked_about_as_ever(policy: Policy, command: str) -> None:
    assert decide_shell(command.replace("%W", policy.cwd), policy).verdict == "ask"


def test_without_a_rule_it_is_asked_about_like_any_other_command(policy: Policy) -> None:
    bare = msgspec.structs.replace(policy, allow=())
    assert decide_shell("rm -rf old", bare).reason == "No rule allows rm."
    only_writes = msgspec.structs.replace(policy, allow=rules("write"))
    assert decide_shell("rm -rf old", only_writes).verdict == "allow"


def test_a_protected_folder_is_deleted_only_if_a_rule_opens_it(policy: Policy) -> None:
    assert decide_shell("rm -rf .claude/skills", policy).verdict == "ask"
    rule = f"write({policy.cwd}/.claude/)"
    opened = msgspec.structs.replace(policy, allow=(*policy.allow, *rules(rule)))
    assert decide_shell("rm -rf .claude/skills", opened).verdict == "allow"
    assert decide_shell("rm -rf .claude/hooks", opened).verdict == "ask"
    assert decide_shell("touch .claude/a && git stash drop", opened).verdict == "allow"


def test_files_that_undo_would_not_keep_are_asked_about(policy: Policy) -> None:
    large = Path(policy.cwd) / "old/large"
    with large.open("wb") as file:
        file.truncate(MAX_FILE + 1)
    assert decide_shell("rm -rf old", policy).verdict == "ask"
    assert decide_shell("rm -rf old/*", policy).verdict == "ask"
    large.unlink()
    assert decide_shell("rm -rf old", policy).verdict == "allow"


@pytest.mark.parametrize(
    ("name", "repository", "tracked", "made_again"),
    [
        ("node_modules", False, False, True),
        (".venv", True, True, True),
        ("dist", True, False, True),
        ("dist", True, True, False),
        ("dist", False, False, False),
        ("data", True, False, False),
    ],
)
def test_a_folder_that_tools_make_again_needs_no_copy(
    policy: Policy, name: str, repository: bool, tracked: bool, made_again: bool
) -> None:
    folder = Path(policy.cwd) / name
    folder.mkdir()
    with (folder / "large").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    if repository:
        make_repository(Path(policy.cwd))
    if tracked:
        git(Path(policy.cwd), "add", "-f", name)
    verdict = decide_shell(f"rm -rf {name}", policy).verdict
    assert verdict == ("allow" if made_again else "ask")
    assert find_at_risk(f"rm -rf {name}", policy, "bash") is None, "nothing waits for undo"


def test_a_folder_too_large_to_be_looked_at_is_asked_about(policy: Policy) -> None:
    folder = Path(policy.cwd) / "many"
    folder.mkdir()
    for number in range(MAX_ENTRIES):
        (folder / str(number)).touch()
    assert decide_shell("rm -rf many", policy).verdict == "allow"
    (folder / "one more").touch()
    assert decide_shell("rm -rf many", policy).verdict == "ask"


def test_beside_a_workspace_in_the_temp_folder_nothing_is_disposable(policy: Policy) -> None:
    wider = msgspec.structs.replace(policy, temp=str(Path(policy.cwd).parent))
    assert decide_shell("rm -rf ../temp/x", wider).verdict == "ask"
    assert decide_shell("rm -rf old", wider).verdict == "allow"


def test_a_home_as_the_workspace_is_not_covered(policy: Policy) -> None:
    elsewhere = msgspec.structs.replace(policy, undone=("/somewhere/else",))
    assert decide_shell("rm -rf old", elsewhere).verdict == "ask"
