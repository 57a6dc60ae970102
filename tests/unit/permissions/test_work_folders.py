"""Folders elsewhere that a rule opens for work."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.permission import Answer, Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import describe_cover, generalise, offer_rules, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.decide import decide
from trimtab.permissions.processor import Permissions
from trimtab.permissions.read_folders import freeze
from trimtab.permissions.work_folders import find_opened, name_work_folder, widen


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    """A workspace beside another repository, both in a home."""
    for name in ("work", "other/.git/hooks", "other/src", "tool"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "other/.env").write_text("secret")
    cwd = str(tmp_path / "work")
    return msgspec.structs.replace(POLICY, cwd=cwd, home=str(tmp_path), roots=(cwd,))


def allow(policy: Policy, *texts: str) -> Policy:
    """Return the policy with rules, in which `~H` stands for the home."""
    given = freeze(rules(*(text.replace("~H", policy.home) for text in texts)))
    return widen(msgspec.structs.replace(policy, allow=given))


def shell(text: str, policy: Policy) -> Access:
    return Access(kind="shell", target=text.replace("~H", policy.home))


def offer(text: str, policy: Policy) -> list[str]:
    access = shell(text, policy)
    analysis = read_script(access.target, policy)
    given = to_rules(generalise(access, analysis, policy), "session")
    return [str(rule).replace(policy.home, "~H") for rule in given]


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("cd ~H/other && git commit -m x", "shell(git commit)"),
        ("cd ~H/other && cp src/a src/b", "shell(cp)"),
        ("cd ~H/other && git stash && git merge x", "shell(git:*)"),
        ("cd ~H/other && make", "shell(make)"),
        ("rm ~H/other/src/a", "shell(rm)"),
        ("mkdir -p ~H/other/made", "shell(mkdir)"),
    ],
)
def test_one_answer_lets_commands_work_in_another_repository(
    policy: Policy, command: str, rule: str
) -> None:
    asked = allow(policy, rule, "read(~H/other/)")
    assert decide(shell(command, policy), asked).verdict == "ask"
    (*others, folder) = offer(command, asked)
    assert folder == "write(~H/other/)"
    opened = allow(policy, rule, folder, *others)
    assert decide(shell(command, policy), opened).verdict == "allow"


def test_reading_elsewhere_offers_no_more_than_reading(policy: Policy) -> None:
    assert offer("cd ~H/other && git status", policy) == ["read(~H/other/)"]
    assert offer("cp ~H/other/src/a b", policy) == ["shell(cp)", "read(~H/other/)"]


@pytest.mark.parametrize(
    "command",
    [
        "cp a ~H/b",
        "cd ~H && git commit -m x",
        "cp a ~H/.ssh/config",
        "cp a ~H/other/.env/x",
        "cp a /etc/x",
        "mkdir /proc/x ~H/other/made",
        "cp a ~H/other/.git/hooks/x",
        'cp a "$x" ~H/other/b; $y',
    ],
)
def test_no_folder_is_offered_that_belongs_to_all_or_holds_secrets(
    policy: Policy, command: str
) -> None:
    assert not any("write(~H" in rule for rule in offer(command, policy))


@pytest.mark.parametrize(
    ("kind", "path", "verdict"),
    [
        ("read", "other/src/a", "allow"),
        ("read", "other/.env", "allow"),
        ("write", "other/src/a", "allow"),
        ("write", "other/.git/hooks/x", "ask"),
        ("write", "other2/a", "ask"),
        ("write", "a", "ask"),
        ("write", "work/a", "ask"),
        ("read", "tool/a", "ask"),
    ],
)
def test_an_opened_folder_is_like_the_working_directory(
    policy: Policy, kind: str, path: str, verdict: str
) -> None:
    opened = allow(policy, "write(~H/other/)")
    access = Access(kind=kind, target=f"{policy.home}/{path}")
    assert decide(access, opened).verdict == verdict


def test_a_rule_that_denies_stays_stronger(policy: Policy) -> None:
    opened = allow(policy, "write(~H/other/)", "shell(cp)")
    denied = rules(f"write({policy.home}/other/src/)", "read(.env)")
    opened = msgspec.structs.replace(opened, deny=denied)
    assert decide(shell("cp a ~H/other/src/a", policy), opened).verdict == "deny"
    access = Access(kind="read", target=f"{policy.home}/other/.env")
    assert decide(access, opened).verdict == "deny"


def test_what_cannot_be_undone_is_asked_about_there(policy: Policy) -> None:
    opened = allow(policy, "write(~H/other/)", "shell(rm)", "shell(git reset)")
    for command in ("rm -r ~H/other/src", "cd ~H/other && git reset --hard"):
        assert decide(shell(command, policy), opened).verdict == "ask"


def test_a_link_in_the_place_of_a_folder_opens_nothing(policy: Policy) -> None:
    home = Path(policy.home)
    opened = allow(policy, "write(~H/other/)")
    assert find_opened(opened) == (f"{home}/other",)
    (home / "other").rename(home / "moved")
    (home / "other").symlink_to("/etc")
    assert find_opened(opened) == ()
    assert widen(msgspec.structs.replace(policy, allow=opened.allow)).roots == policy.roots


@pytest.mark.parametrize(
    ("rule", "folder"),
    [
        (Rule("write", "/a/b/"), "/a/b"),
        (Rule("write", "/a/b"), ""),
        (Rule("write", "/"), ""),
        (Rule("write", "a/"), ""),
        (Rule("write", "../a/"), ""),
        (Rule("write", "/a/.claude/"), ""),
        (Rule("write", None), ""),
        (Rule("read", "/a/"), ""),
        (Rule("write", "/a/", root="/r"), ""),
    ],
)
def test_a_whole_folder_named_in_full_is_opened(rule: Rule, folder: str) -> None:
    assert name_work_folder(rule) == folder


def test_a_file_of_a_repository_opens_no_folder(policy: Policy) -> None:
    source = f"{policy.cwd}/.github/copilot/settings.json"
    given = freeze((Rule("write", f"{policy.home}/other/", source),))
    assert find_opened(msgspec.structs.replace(policy, allow=given)) == ()


def test_an_answer_opens_a_folder_until_it_is_revoked(policy: Policy) -> None:
    sandboxed = msgspec.structs.replace(policy, writable=(policy.cwd,))
    permissions = Permissions(sandboxed)
    access = shell("cd ~H/other && git commit -m x", policy)
    permissions.settle(access, Answer(kind="approve-for-session"))
    opened = permissions.policy
    assert opened.roots == opened.writable == (policy.cwd, f"{policy.home}/other")
    assert permissions.given.roots == (policy.cwd,)
    permissions.forbid(rules("shell(rm)"))
    permissions.revoke(lambda _: True, ("for-session",))
    closed = permissions.policy
    assert closed.allow == ()
    assert closed.roots == closed.writable == (policy.cwd,)


async def test_undo_covers_a_folder_that_is_opened_for_work(policy: Policy) -> None:
    tracked: list[str] = []

    async def can_restore(paths: Sequence[str]) -> bool:
        return bool(paths)

    recorded = allow(policy, "shell(rm)", "shell(git stash)")
    permissions = Permissions(msgspec.structs.replace(recorded, undone=(policy.cwd,)))
    permissions.rely_on_undo(can_restore, tracked.extend)
    deletion = shell("cd ~H/other && rm -rf src && git stash drop", policy)
    assert decide(deletion, permissions.policy).verdict == "ask"
    for _ in range(2):
        permissions.grant(rules(f"write({policy.home}/other/)"))
    assert tracked == [f"{policy.home}/other"]
    assert decide(deletion, permissions.policy).verdict == "allow"
    outside = shell("cd ~H/tool && rm -rf x", policy)
    assert decide(outside, permissions.policy).verdict == "ask"


def test_a_home_that_is_opened_is_not_covered_by_undo(policy: Policy) -> None:
    recorded = msgspec.structs.replace(policy, undone=(policy.cwd,))
    opened = allow(recorded, "write(~H/)")
    assert opened.roots == (policy.cwd, policy.home)
    assert opened.undone == (policy.cwd,)


def test_what_is_excluded_in_a_folder_that_an_answer_opens_is_denied(policy: Policy) -> None:
    other = f"{policy.home}/other"
    searched: list[str] = []

    def find(folders: Sequence[str]) -> list[Rule]:
        searched.extend(folders)
        return [Rule("read", "/src/**", "policy", folder) for folder in folders]

    permissions = Permissions(policy)
    permissions.follow_exclusions(find, policy.roots)
    assert searched == []
    for _ in range(2):
        permissions.grant(rules(f"read({other}/)"))
    assert searched == [other]
    access = Access(kind="read", target=f"{other}/src/a")
    assert permissions.judge(access, "view").verdict == "deny"
    permissions.adopt(policy)
    assert permissions.policy.deny[0].root == other


def test_a_folder_is_not_opened_if_its_exclusions_cannot_be_read(policy: Policy) -> None:
    def fail(_: Sequence[str]) -> list[Rule]:
        raise ConfigurationError("The policy cannot be read: have it corrected.")

    permissions = Permissions(policy)
    permissions.follow_exclusions(fail, policy.roots)
    with pytest.raises(ConfigurationError):
        permissions.grant(rules(f"write({policy.home}/other/)"))
    assert permissions.policy.allow == ()


def test_a_rule_for_a_folder_can_be_typed(policy: Policy) -> None:
    rule = f"write({policy.home}/other/)"
    offered, approval = offer_rules({}, rule)
    assert offered["suggestedRules"] == [rule]
    assert [str(rule) for rule in to_rules(approval, "session")] == [rule]


def test_the_question_says_what_is_opened() -> None:
    assert describe_cover([Rule("write", "/a/b/")]) == (
        "reading and changing everything below /a/b/, as in this folder."
    )


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("ln -s ~H/other/src y", "read(~H/other/)"),
        ("ln -s ~H/other/src", "read(~H/other/)"),
        ("ln -sfn ~H/other y", "read(~H/other/)"),
        ("cp -r ~H/other/src .", "read(~H/other/)"),
        ("tar czf a.tgz ~H/other/src", "read(~H/other/)"),
        ("tar xzf ~H/other/src/a.tgz", "read(~H/other/)"),
        ("zip -r a.zip ~H/other/src", "read(~H/other/)"),
        ("unzip ~H/other/src/a.zip -d out", "read(~H/other/)"),
        ("install -m 644 ~H/other/src/a b", "read(~H/other/)"),
        ("ln ~H/other/src/a y", "write(~H/other/)"),
        ("cp -r ~H/other .", "write(~H/other/)"),
        ("tar czf a.tgz ~H/other", "write(~H/other/)"),
        ("tar czf ~H/other/a.tgz .", "write(~H/other/)"),
        ("tar -C ~H/other -xf a.tar", "write(~H/other/)"),
        ("zip -rm a.zip ~H/other/src", "write(~H/other/)"),
        ("ln -s ../work ~H/other/link", "write(~H/other/)"),
        ("cp ~H/other/src/a . && sed -i s/a/b/ ~H/other/src/a", "write(~H/other/)"),
    ],
)
def test_a_folder_is_opened_for_work_only_if_reading_is_not_enough(
    policy: Policy, command: str, folder: str
) -> None:
    access = shell(command, policy)
    approval = generalise(access, read_script(access.target, policy), policy)
    offered = to_rules(approval, "session")
    assert str(offered[-1]) == folder.replace("~H", policy.home)
    approved = widen(msgspec.structs.replace(policy, allow=offered))
    assert decide(access, approved).verdict == "allow"


def test_a_rule_for_reading_a_folder_does_not_copy_the_secrets_in_it(policy: Policy) -> None:
    copying = allow(policy, "shell(cp)", "shell(tar)", "read(~H/other/)")
    assert decide(shell("cp -r ~H/other/src .", copying), copying).verdict == "allow"
    for command in ("cp -r ~H/other .", "tar czf a.tgz ~H/other"):
        assert decide(shell(command, copying), copying).verdict == "ask"


def test_a_rule_for_reading_does_not_cover_what_another_command_changes(policy: Policy) -> None:
    reading = allow(policy, "shell(cp)", "shell(sed)", "read(~H/other/)")
    line = "cp ~H/other/src/a . && sed -i s/a/b/ ~H/other/src/a"
    assert decide(shell(line, reading), reading).verdict == "ask"
