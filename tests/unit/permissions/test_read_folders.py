"""Folders outside the workspace that a lasting answer lets be read: what is offered, what holds."""

from pathlib import Path

import msgspec
import pytest

from trimtab.contracts.errors import UsageError
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import describe_cover, generalise, offer_rules, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.decide import decide
from trimtab.permissions.denied_files import find_secrets
from trimtab.permissions.read_folders import (
    SECRETS,
    covers_below,
    find_folder,
    find_granted,
    find_secret_rules,
    freeze,
    is_secret,
    name_folder,
    offer_folders,
)
from trimtab.permissions.requests import remembered
from trimtab.permissions.rules import parse_rules


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    """A home with a workspace in it, and the folders of some programs."""
    home = tmp_path / "person"
    for name in ("work", ".tool/plans", ".config/app", ".ssh", "Downloads/new", "code/lib/src"):
        (home / name).mkdir(parents=True)
    (home / "code/lib/.git").mkdir()
    (home / ".tool/plans/a.md").write_text("plan\n")
    (home / ".tool/.credentials.json").write_text("secret\n")
    (home / ".ssh/id_rsa").write_text("secret\n")
    work = str(home / "work")
    return Policy(cwd=work, roots=(work,), home=str(home), homes=(str(home / ".trimtab"),))


def offer(command: str, policy: Policy) -> list[str]:
    """The rules that a question about a command offers, with the home written as `~`."""
    approval = generalise(
        Access(kind="shell", target=command), read_script(command, policy), policy
    )
    return [str(rule).replace(policy.home, "~") for rule in to_rules(approval, "location")]


def judge(command: str, policy: Policy) -> str:
    return decide(Access(kind="shell", target=command), policy).verdict


def allow(policy: Policy, *rules: Rule) -> Policy:
    return msgspec.structs.replace(policy, allow=(*policy.allow, *rules))


def below(policy: Policy, name: str) -> Rule:
    return Rule("read", f"{policy.home}/{name}/", "location")


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("cat ~/.tool/plans/a.md", ["read(~/.tool/)"]),
        ("ls ~/.tool/plans/ 2>&1 | tail -20", ["read(~/.tool/)"]),
        ("grep -r x ~/.tool ~/.config/app/a.json", ["read(~/.tool/)", "read(~/.config/app/)"]),
        ("head ~/.tool/plans/*.md", ["read(~/.tool/)"]),
        ("ls ~/Downloads/new", ["read(~/Downloads/new/)"]),
        ("cat ~/code/lib/src/a.py", ["read(~/code/lib/)"]),
        ("cat /opt/vendor/share/a.txt", ["read(/opt/vendor/share/)"]),
        ("tail -5 /tmp/other-agent/tasks/1.output", ["read(/tmp/other-agent/)"]),
        ("frobnicate && cat ~/.tool/a", ["shell(frobnicate)", "read(~/.tool/)"]),
    ],
)
def test_a_question_about_reading_elsewhere_offers_the_narrowest_useful_folder(
    command: str, offered: list[str], policy: Policy
) -> None:
    assert offer(command, policy) == offered


@pytest.mark.parametrize(
    "command",
    [
        "ls ~",
        "ls /",
        "ls ~/..",
        "cat ~/a.txt",
        "cat ~/.ssh/config",
        "cat ~/.aws/config",
        "cat ~/.tool/.credentials.json",
        "cat ~/.tool/plans/../../.ssh/id_rsa",
        "cat ~/.tool/.env",
        "cat ~/.TOOL/Secrets.yaml",
        "ls ~/.config",
        "ls ~/.local/share",
        "ls ~/Downloads",
        "cat ~/.trimtab/config.json",
        "cat /etc/hostname",
        "cat /proc/1/environ",
        "cat /root/notes/a",
        "ls /home/other/code",
        "cat '/opt/a (b)/c'",
        "cat ~/.tool/a ~/.ssh/config",
        "rm ~/.tool/a",
        "cat ~/.tool/a > ~/.tool/b",
    ],
)
def test_no_rule_is_offered_for_homes_shared_folders_and_secrets(
    command: str, policy: Policy
) -> None:
    assert not [rule for rule in offer(command, policy) if rule.startswith("read")]


def test_what_is_offered_answers_the_question_for_good(policy: Policy) -> None:
    command = "cat ~/.tool/plans/a.md | head"
    assert judge(command, policy) == "ask"
    approval = generalise(
        Access(kind="shell", target=command), read_script(command, policy), policy
    )
    answered = allow(policy, *to_rules(approval, "location"))
    assert judge(command, answered) == "allow"
    assert judge("grep -rn x ~/.tool/", answered) == "allow"
    assert judge("cat ~/.other/a", answered) == "ask"


def test_a_file_that_a_tool_reads_is_answered_by_its_folder_too(policy: Policy) -> None:
    access = Access(kind="read", target=f"{policy.home}/.tool/plans/a.md", mutates=False)
    approval = remembered(access, generalise(access, None, policy))
    (rule,) = to_rules(approval, "location")
    assert rule == below(policy, ".tool")
    assert decide(access, allow(policy, rule)).verdict == "allow"
    secret = Access(kind="read", target=f"{policy.home}/.tool/.credentials.json", mutates=False)
    assert decide(secret, allow(policy, rule)).verdict == "ask"
    assert generalise(secret, None, policy) is None
    plain = Access(kind="read", target=f"{policy.home}/a.txt", mutates=False)
    assert remembered(plain, generalise(plain, None, policy)) == {
        "kind": "read",
        "path": plain.target,
    }


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/.tool/.credentials.json",
        "cat ~/.tool/plans/../.credentials.json",
        "cat ~/.tool/../.ssh/id_rsa",
        "cat ~/.tool/link",
        "cat ~/.toolbox/a",
        "cat ~/.tool/Id_RSA",
        "cat ~/.tool/plans/a.md ~/.ssh/id_rsa",
        "cat ~/.tool/plans/a.md > ~/.tool/plans/b.md",
        "touch ~/.tool/plans/a.md",
        "rm ~/.tool/plans/a.md",
        "cp ~/.tool/plans/a.md ~/.tool/b",
        "find ~/.tool -delete",
    ],
)
def test_a_rule_for_a_folder_covers_no_secret_nothing_beside_it_and_no_change(
    command: str, policy: Policy
) -> None:
    link = Path(policy.home, ".tool/link")
    link.symlink_to(Path(policy.home, ".ssh/id_rsa"))
    assert judge(command, allow(policy, below(policy, ".tool"))) == "ask"


@pytest.mark.parametrize("command", ["cat ~/.tool/.cred*", "grep -r x ~/.tool", "ls ~/.tool/l*"])
@pytest.mark.parametrize("more", [{}, {"allow_all_tools": True}, {"confined": True}])
def test_what_is_read_as_a_whole_runs_behind_the_fence_whatever_else_is_allowed(
    command: str, more: dict[str, bool], policy: Policy
) -> None:
    rules = below(policy, ".tool"), *parse_rules(["shell(cat)", "shell(grep)", "shell(make)"])
    answered = msgspec.structs.replace(allow(policy, *rules), **more)
    decision = decide(Access(kind="shell", target=command), answered)
    assert (decision.verdict, decision.harmless, decision.rule) == ("allow", True, None)
    assert judge(f"make && {command}", answered) == "ask"
    for file in ("~/.tool/plans/a.md", "~/.tool/missing"):
        assert judge(f"make && cat {file}", answered) == "allow"
    for folder in ("~/.tool/plans", "~/.tool/missing/", "~/.tool/missing/*"):
        assert judge(f"make && cat {folder}", answered) == "ask"


def test_a_folder_that_a_link_replaces_after_the_answer_is_asked_about(policy: Policy) -> None:
    answered = allow(policy, below(policy, ".tool"))
    tool = Path(policy.home, ".tool")
    assert find_secrets(msgspec.structs.replace(answered, granted=(str(tool),))).roots
    tool.rename(Path(policy.home, ".moved"))
    tool.symlink_to(Path(policy.home, ".ssh"))
    assert judge("cat ~/.tool/config", answered) == "ask"
    assert not find_secrets(msgspec.structs.replace(answered, granted=(str(tool),))).roots


def test_a_folder_that_a_link_replaces_between_sessions_is_asked_about(policy: Policy) -> None:
    tool = Path(policy.home, ".tool")
    kept = parse_rules([f"read({tool}/)"], "location")
    assert judge("cat ~/.tool/plans/a.md", allow(policy, *freeze(kept, policy.homes))) == "allow"
    tool.rename(Path(policy.home, ".moved"))
    tool.symlink_to(Path(policy.home, ".ssh"))
    assert judge("cat ~/.tool/config", allow(policy, *freeze(kept, policy.homes))) == "ask"


def test_a_file_that_a_link_replaces_after_the_answer_is_asked_about(policy: Policy) -> None:
    file = Path(policy.home, "a.txt")
    file.write_text("a\n")
    access = Access(kind="read", target=str(file), mutates=False)
    approval = remembered(access, generalise(access, None, policy))
    answered = allow(policy, *to_rules(approval, "location"))
    assert decide(access, answered).verdict == "allow"
    assert judge("cat ~/a.txt", answered) == "allow"
    file.unlink()
    file.symlink_to(Path(policy.home, ".ssh/id_rsa"))
    assert decide(access, answered).verdict == "ask"
    assert judge("cat ~/a.txt", answered) == "ask"


def test_the_secrets_of_a_folder_are_found_for_the_fence_but_not_the_workspaces(
    policy: Policy,
) -> None:
    Path(policy.cwd, ".env").write_text("a\n")
    Path(policy.home, ".tool/deep/er").mkdir(parents=True)
    Path(policy.home, ".tool/deep/er/server.PEM").write_text("a\n")
    granted = (f"{policy.home}/.tool", policy.cwd)
    found = find_secrets(msgspec.structs.replace(policy, granted=granted))
    names = [path.removeprefix(policy.home) for path in found.paths]
    assert sorted(names) == ["/.tool/.credentials.json", "/.tool/deep/er/server.PEM"]


def test_a_rule_of_a_repositorys_file_stands_for_no_whole_folder(policy: Policy) -> None:
    text = f"read({policy.home}/.tool/)"
    for source, verdict in (("flag", "allow"), (f"{policy.cwd}/settings.json", "ask")):
        rules = freeze(parse_rules([text], source), policy.homes)
        assert judge("cat ~/.tool/plans/a.md", allow(policy, *rules)) == verdict


def test_the_links_in_a_rule_of_a_flag_are_followed_once(policy: Policy) -> None:
    link = Path(policy.home, "link")
    link.symlink_to(Path(policy.home, ".tool"))
    rules = freeze(parse_rules([f"read({link}/)"]), policy.homes)
    assert judge("cat ~/link/plans/a.md", allow(policy, *rules)) == "allow"
    link.unlink()
    link.symlink_to(Path(policy.home, ".ssh"))
    assert judge("cat ~/link/config", allow(policy, *rules)) == "ask"


@pytest.mark.parametrize("folders", ["/", ["/"], ["//"], ["tool"], [None], [""], {}])
def test_what_was_kept_and_names_no_folder_allows_nothing(folders: object) -> None:
    assert to_rules({"kind": "read", "readsFolders": folders}, "always") == ()


@pytest.mark.parametrize("path", ["/", "//", "{0}/.tool/", "{0}/.tool//"])
def test_an_answer_for_one_path_never_stands_for_what_is_below(path: str, policy: Policy) -> None:
    kept = {"kind": "read", "path": path.format(policy.home)}
    answered = allow(policy, *to_rules(kept, "always"))
    inner = Access(kind="read", target=f"{policy.home}/.tool/plans/a.md", mutates=False)
    assert decide(inner, answered).verdict == "ask"
    assert judge("cat ~/.tool/plans/a.md", answered) == "ask"
    assert judge("grep -r x ~/.tool", answered) == "ask"


def test_a_rule_for_the_root_stands_for_the_root_alone(policy: Policy) -> None:
    rules = freeze(parse_rules(["read(/)", "read(//)"]))
    assert judge("cat ~/.tool/plans/a.md", allow(policy, *rules)) == "ask"


def test_a_person_can_write_the_folder_themselves_but_not_the_root(policy: Policy) -> None:
    request, approval = offer_rules({}, f"shell(make), read({policy.home}/.tool/plans/)")
    assert approval["readsFolders"] == [f"{policy.home}/.tool/plans"]
    assert request["suggestedRules"][1] == f"read({policy.home}/.tool/plans/)"
    for wrong in ("read(/)", "read(a/)", f"read({policy.home}/a)"):
        with pytest.raises(UsageError, match="Only rules for commands"):
            offer_rules({}, wrong)


def test_the_question_says_that_secrets_are_left_out() -> None:
    assert describe_cover([Rule("read", "/srv/a/")]) == (
        "every reading below /srv/a/, but for files named like secrets."
    )


def test_in_the_sandbox_a_command_may_name_what_it_may_read(policy: Policy) -> None:
    confined = msgspec.structs.replace(policy, confined=True)
    command = "cp ~/.tool/plans/a.md ."
    assert judge(command, confined) == "ask"
    assert offer(command, confined) == ["read(~/.tool/)"]
    assert judge(command, allow(confined, below(policy, ".tool"))) == "allow"
    assert judge("cp ~/.tool/plans/a.md ~/b", allow(confined, below(policy, ".tool"))) == "ask"


@pytest.mark.parametrize("name", ["id_rsa.pub", ".ENV", "API_TOKENS.txt", "x.key", "My Passwords"])
def test_names_of_secrets_are_known_in_any_case(name: str) -> None:
    assert is_secret(f"/a/{name}/b", "/a")
    assert not is_secret(f"/{name}/b", f"/{name}")


def test_the_agents_own_home_is_never_offered_nor_what_holds_it(policy: Policy) -> None:
    held = msgspec.structs.replace(policy, homes=(f"{policy.home}/.config/app/trimtab",))
    assert not find_folder(f"{policy.home}/.config/app/a.json", held)
    assert find_folder(f"{policy.home}/.config/app/a.json", policy)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("keyring", True),
        ("keyring.db", True),
        ("my-keyring", False),
        ("a.pem", True),
        ("a.pem.txt", False),
        (".env.local", True),
        ("environment", False),
        ("id_rsa.pub", True),
        ("not_id_rsa", False),
        ("my-secrets.txt", True),
        (".bash_history", True),
        ("history", False),
        ("cookies.sqlite", True),
        ("gcloud", True),
        ("gclouds", False),
        ("netrc", False),
        ("shadow-", True),
        ("eyeshadow", False),
        ("a/.ssh/b", True),
    ],
)
def test_a_star_in_the_name_of_a_secret_stands_for_anything(name: str, secret: bool) -> None:
    assert is_secret(f"/x/{name}") is secret
    assert not is_secret(f"/x/{name}", f"/x/{name}")


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/tmp/a/b/c", "/tmp/a"),
        ("/tmp/a", ""),
        ("/tmp/a/", "/tmp/a"),
        ("/var/tmp/a/b", "/var/tmp/a"),
        ("/var/lib/a/b", "/var/lib/a"),
        ("/zzz/a/b", "/zzz/a"),
        ("/opt/a", ""),
        ("/opt/x/a", "/opt/x"),
        ("/opt/x[ab]/z", ""),
        ("/opt/x?y/z", ""),
        ("/opt/x,y/z", ""),
        ("/opt/(x)/z", ""),
        ("/run/user/a/b", ""),
        ("/root/a/b", ""),
        ("/home/other/a", ""),
        ("/opt/.ssh/a", ""),
        ("/opt/x/token.txt", ""),
    ],
)
def test_the_folder_to_offer_elsewhere(path: str, folder: str) -> None:
    assert find_folder(path, Policy(cwd="/srv/w", roots=("/srv/w",))) == folder
    away = Policy(cwd="/srv/w", roots=("/srv/w",), home="/srv/home")
    assert find_folder(path, away) == folder


def test_one_path_without_a_folder_takes_the_whole_offer_back() -> None:
    policy = Policy(cwd="/srv/w", roots=("/srv/w",))
    paths = ["/opt/x/a", "/opt/x/b", "/opt/y/a"]
    assert offer_folders(paths, policy) == ["/opt/x", "/opt/y"]
    assert offer_folders([*paths, "/opt/a"], policy) is None
    assert offer_folders([], policy) == []


@pytest.mark.parametrize(
    ("rule", "folder"),
    [
        (Rule("read", "/a/b/"), "/a/b"),
        (Rule("read", "/a/../b/"), "/b"),
        (Rule("read", "/a/b"), ""),
        (Rule("read", "a/"), ""),
        (Rule("read", "/"), ""),
        (Rule("read", None), ""),
        (Rule("write", "/a/"), ""),
        (Rule("read", "/a/", root="/a"), ""),
    ],
)
def test_only_a_full_path_with_a_slash_at_its_end_names_a_folder(rule: Rule, folder: str) -> None:
    assert name_folder(rule) == folder


@pytest.mark.parametrize(
    ("path", "covered"),
    [("/a/b", True), ("/a/b/c", True), ("/a/bc", False), ("/a", False), ("/a/b/.env", False)],
)
def test_a_folder_covers_itself_and_what_is_below_but_secrets(path: str, covered: bool) -> None:
    assert covers_below("/a/b", path) is covered
    assert covers_below("/a/b/", path) is (covered and path != "/a/b")


def test_the_rules_that_hide_secrets_name_each_of_them_in_each_folder() -> None:
    given = list(find_secret_rules(("/a", "/b")))
    assert [rule.argument for rule in given] == [*SECRETS, *SECRETS]
    assert {(rule.kind, rule.source) for rule in given} == {("read", "secrets")}
    assert [rule.root for rule in given] == ["/a"] * len(SECRETS) + ["/b"] * len(SECRETS)


def test_what_rules_let_be_read_outside_is_named_once(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    (place / "file").write_text("x")
    (place / "folder").mkdir()
    allow = (
        Rule("read", "/opt/x/"),
        Rule("read", str(place / "file")),
        Rule("read", str(place / "folder")),
        Rule("read", None),
        Rule("write", "/opt/y/"),
    )
    policy = Policy(cwd="/srv/w", roots=("/srv/w",), readable=("/opt/x/in",), allow=allow)

    def granted(*paths: str) -> tuple[str, ...]:
        return find_granted(paths, policy)

    assert granted("/opt/x/a", "/opt/x/b") == ("/opt/x",)
    assert granted("/opt/x/in/a") == ()
    assert granted("/opt/y/a", "/srv/w/a") == ()
    assert granted(str(place / "file"), "/opt/x") == ("/opt/x", str(place / "file"))
    assert granted(str(place / "folder")) == ()


@pytest.mark.parametrize(
    ("rule", "argument"),
    [
        (Rule("read", "/a/./b/", "flag"), "/a/b/"),
        (Rule("read", "/a/./b", "flag"), "/a/b"),
        (Rule("read", "/a/./b/", "/repo/rules"), "/a/b"),
        (Rule("read", "/a/./b/", "/home/me/rules"), "/a/b/"),
        (Rule("write", "/a/./b", "flag"), "/a/b"),
        (Rule("read", "/", "flag"), "/"),
        (Rule("read", "a/./b", "flag"), "a/./b"),
        (Rule("shell", "/a/./b", "flag"), "/a/./b"),
        (Rule("url", "/a/./b", "flag"), "/a/./b"),
        (Rule("read", "/a/./b", "flag", root="/a"), "/a/./b"),
        (Rule("read", None, "flag"), None),
    ],
)
def test_full_paths_in_rules_are_resolved_once(rule: Rule, argument: str | None) -> None:
    (frozen,) = freeze([rule], ("/home/me",))
    assert frozen.argument == argument
    assert (frozen.kind, frozen.source) == (rule.kind, rule.source)


@pytest.mark.parametrize("pattern", ["*.md", "a?.md", "[ab].md", "y*/z"])
def test_the_folder_of_a_pattern_is_the_one_in_which_it_begins_to_match(
    tmp_path: Path, pattern: str
) -> None:
    folder = tmp_path.resolve() / "x" / "yy"
    folder.mkdir(parents=True)
    policy = Policy(cwd="/srv/w", roots=("/srv/w",))
    whole = find_folder(str(folder), policy)
    assert whole
    assert find_folder(f"{folder}/{pattern}", policy) == whole


@pytest.mark.parametrize("path", ["/etc/shadow", "/opt/.netrc", "/home/someone/.netrc"])
def test_no_rule_is_offered_for_a_secret_wherever_it_is(path: str) -> None:
    policy = Policy(cwd="/srv/w", roots=("/srv/w",), home="/home/someone")
    assert generalise(Access(kind="read", target=path), None, policy) is None
