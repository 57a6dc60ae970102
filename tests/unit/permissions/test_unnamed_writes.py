"""Commands that change files which they do not name, where a rule forbids to write some."""

from pathlib import Path

import msgspec
import pytest

from gitkit import git
from permissionkit import POLICY, rules
from trimtab.contracts.permission import Policy
from trimtab.permissions.decide_shell import decide_shell


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("x")
    (tmp_path / "lib").mkdir()
    root = str(tmp_path.resolve())
    return msgspec.structs.replace(
        POLICY,
        cwd=root,
        roots=(root,),
        allow_all_tools=True,
        allow_destructive=True,
        deny=rules("write(src/)"),
    )


UNNAMED = (
    *("patch -p1 < fix.diff", "patch -p1 -i fix.diff", "git apply fix.diff", "git am fix.mbox"),
    *("tar xf a.tar", "tar -xzf a.tgz -C lib", "unzip a.zip", "cpio -id < a.cpio", "7z x a.zip"),
    *("ed a.txt < commands", "ex -s a.txt < commands", "sqlite3 x.db < q.sql", "split a.txt"),
    *("wget -r http://x.test/", "bash -c 'patch -p1 < fix.diff'", "sudo tar xf a.tar"),
    *("(cd lib && patch < ../fix.diff)", "find . -name '*.diff' -exec patch -i {} ;"),
)
UNSURE = (
    *("python3 -c 'open(1)'", "xargs touch < names", 'read f < names; touch "$f"', "black ."),
    *("rsync -a other/ .", "cp -r other/. .", "chmod -R a+r .", "perl -pi -e s/a/b/ *.py"),
)
CERTAIN = (
    *(
        "ls",
        "touch lib/a",
        "echo x > lib/a",
        "mkdir -p lib/b && cp lib/a lib/b",
        "make",
        "npm test",
    ),
    *(
        "python3 gen.py",
        "tar cf a.tar lib",
        "git status",
        "git commit -m x",
        "rm -r lib",
        "cat src/a.py",
    ),
    *("sed -i s/a/b/ lib/a", "sort -o lib/b lib/a", "curl -o lib/a http://x.test/"),
)


@pytest.mark.parametrize("command", UNNAMED)
def test_what_changes_files_named_in_its_input_is_asked_about(policy: Policy, command: str) -> None:
    decision = decide_shell(command, policy)
    assert decision.verdict == "ask"
    assert "The rule write(src/) forbids some files" in decision.reason


@pytest.mark.parametrize("command", UNNAMED + UNSURE)
def test_where_the_kernel_keeps_the_files_nothing_is_asked(policy: Policy, command: str) -> None:
    kept = msgspec.structs.replace(policy, keeps_writes=True)
    assert decide_shell(command, kept).verdict == "allow"


@pytest.mark.parametrize("command", UNNAMED)
def test_what_does_not_exist_yet_is_kept_by_no_mount(policy: Policy, command: str) -> None:
    kept = msgspec.structs.replace(policy, keeps_writes=True, deny=rules("write(gone/)"))
    assert decide_shell(command, kept).verdict == "ask"


@pytest.mark.parametrize("command", UNSURE)
def test_without_the_kernel_what_is_not_certain_is_asked_about(
    policy: Policy, command: str
) -> None:
    decision = decide_shell(command, policy)
    assert decision.verdict == "ask"
    assert "The rule write(src/) forbids some files" in decision.reason


@pytest.mark.parametrize("command", CERTAIN)
def test_what_changes_only_the_files_it_names_is_not_asked_about(
    policy: Policy, command: str
) -> None:
    assert decide_shell(command, policy).verdict == "allow"
    assert (
        decide_shell(command, msgspec.structs.replace(policy, keeps_writes=True)).verdict == "allow"
    )


@pytest.mark.needs("git")
def test_git_is_asked_about_if_it_has_recorded_a_forbidden_file(policy: Policy) -> None:
    git(Path(policy.cwd), "init", "-q")
    assert decide_shell("git checkout other", policy).verdict == "allow"
    git(Path(policy.cwd), "add", "src")
    assert decide_shell("git checkout other", policy).verdict == "ask"
    kept = msgspec.structs.replace(policy, keeps_writes=True)
    assert decide_shell("git checkout other", kept).verdict == "allow"


def test_rules_for_all_files_and_for_other_kinds_ask_about_nothing(policy: Policy) -> None:
    for deny in (rules("read(src)"), rules("shell(rm)"), ()):
        other = msgspec.structs.replace(policy, deny=deny)
        assert decide_shell("tar xf a.tar", other).verdict == "allow"
