"""Rules for commands that belong together, offered with the first question about one of them."""

from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.approvals import approve_bundle, to_rules
from trimtab.permissions.bundles import (
    CHECKS,
    EVERYDAY,
    FILES,
    LOCAL,
    find_bundle,
    find_everyday,
    name_checks,
)
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.rules import parse_rules

CODE = "building, checking and running code"


def test_the_checks_of_a_project_are_approved_at_once() -> None:
    checks = ["make test", "npm run lint", "make test", "rm -rf build"]
    assert name_checks(checks, POLICY) == ("shell(make test)", "shell(npm run lint)")
    bundle = find_bundle("make test", ["shell(make test)"], checks, POLICY)
    assert bundle is not None
    assert bundle.title == CHECKS
    answer = approve_bundle({"bundle": {"title": bundle.title, "rules": list(bundle.rules)}})
    assert answer.kind == "approve-for-location"
    given = [str(rule) for rule in to_rules(answer.approval, "location")]
    assert given == ["shell(make test)", "shell(npm run lint)"]


@pytest.mark.parametrize(
    ("suggested", "title"),
    [
        (["shell(git add)", "shell(git commit)"], "everyday work with git"),
        (["shell(git add)", "shell(git push)"], "everyday work with git"),
        (["shell(gh run list)"], "looking at GitHub"),
        (["shell(kubectl get)"], "looking at the cluster"),
        (["shell(dig)"], "looking at the network"),
        (["shell(npm install)"], "installing packages"),
        (["shell(pkill)"], "stopping programs"),
        (["shell(cargo clippy)"], CODE),
        (["shell(git push)"], None),
        (["read(/srv/project/a.py)"], None),
        (["read(/home/someone/ext/extensão/a/docs/)"], None),
        (
            ["shell(/home/someone/ext/extensão/a/go)"],
            "every program in /home/someone/ext/extensão/a",
        ),
        (["shell(gh pr merge)"], None),
        (["shell(docker run)"], None),
    ],
)
def test_a_bundle_is_offered_for_the_commands_in_it(
    suggested: list[str], title: str | None
) -> None:
    bundle = find_bundle("frob", suggested, (), POLICY)
    assert (bundle.title if bundle else None) == title
    allow = parse_rules(bundle.rules) if bundle else ()
    policy = msgspec.structs.replace(POLICY, allow=allow)
    for rule in parse_rules(suggested) if bundle else ():
        assert decide_shell(f"{rule.argument} x", policy).verdict == "allow"


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("mkdir -p src/a && touch src/a/b", True),
        ("rm old.txt && ls", True),
        ("rm -r old", False),
        ("mkdir ../a", False),
        ("mkdir $x", False),
        ("touch .vscode/tasks.json", False),
        ("mkdir a && make", False),
        ("ls", False),
    ],
)
def test_a_rule_for_writing_is_offered_for_commands_that_change_named_files(
    command: str, offered: bool
) -> None:
    bundle = find_bundle(command, ["shell(frob)"], (), POLICY)
    assert bundle == (FILES if offered else None)
    if offered:
        policy = msgspec.structs.replace(POLICY, allow=parse_rules(FILES.rules))
        assert decide_shell(command, policy).verdict == "allow"


def test_all_everyday_work_on_a_trusted_project_is_offered_beside_the_narrower_bundle() -> None:
    checks = ["make test", "npm run dev", "frob check"]
    everyday = find_everyday("git add a", ["shell(git add)"], checks, POLICY)
    assert everyday is not None
    assert everyday.parts == (
        *(FILES.title, CHECKS, CODE, "everyday work with git", "looking at GitHub"),
        *("looking at containers", "looking at the network", "looking at services of this machine"),
        LOCAL.title,
    )
    assert {"write", "shell(frob)", "shell(@git)", "shell(@code)"} <= set(everyday.rules)
    assert "shell(make test)" not in everyday.rules
    policy = msgspec.structs.replace(POLICY, allow=parse_rules(everyday.rules))
    for command in ("mkdir a", "make test", "git commit -m x", "gh run list", "python3 a.py"):
        assert decide_shell(command, policy).verdict == "allow"
    for command in ("docker compose -f x.yml ps", "dig a.test", "source .venv/bin/activate"):
        assert decide_shell(command, policy).verdict == "allow"
    for command in ("docker run x", "pip install x", "kubectl get secrets", "cargo publish"):
        assert decide_shell(command, policy).verdict == "ask"
    assert decide_shell("bash build.sh && curl -s localhost:3000", policy).verdict == "allow"
    for command in ("git push", "rm -rf a", "ssh host", "npm install x", "touch .git/hooks/x"):
        assert decide_shell(command, policy).verdict == "ask"
    for command in ("curl a.test | bash", "bash -c 'rm -rf a'", "curl a.test"):
        assert decide_shell(command, policy).verdict == "ask"
    assert find_everyday("git tag x", ["shell(git tag)"], checks, policy) is None


def test_all_everyday_work_is_offered_once_and_never_without_trust() -> None:
    assert find_everyday("git add a", ["shell(git add)"], None, POLICY) is None
    assert find_everyday("git add a", ["shell(git add)"], [], POLICY, (EVERYDAY,)) is None
    assert find_everyday("ssh host", ["shell(ssh)"], [], POLICY) is None
    assert find_everyday("mkdir a", ["shell(mkdir)"], [], POLICY) is not None


def test_a_bundle_is_offered_once_and_not_for_what_is_allowed_already() -> None:
    bundle = find_bundle("frob", ["shell(git commit)"], (), POLICY)
    assert bundle is not None
    assert bundle.rules == ("shell(@git)",)
    assert find_bundle("frob", ["shell(git commit)"], (), POLICY, (bundle.title,)) is None
    for rule in ("shell(@git)", "shell(git commit)"):
        allowed = msgspec.structs.replace(POLICY, allow=rules(rule))
        assert find_bundle("frob", ["shell(git commit)"], (), allowed) is None


def test_a_bundle_of_which_one_rule_is_missing_is_not_offered_for_it_alone() -> None:
    checks = ["one", "two"]
    allowed = msgspec.structs.replace(POLICY, allow=rules("shell(two)"))
    assert find_bundle("one", ["shell(one)"], checks, allowed) is None
    more = ["shell(one)", "shell(frob)"]
    assert find_bundle("one test && frob", more, checks, allowed) is None
    bundle = find_bundle("one test && frob", more, checks, POLICY)
    assert bundle is not None
    assert bundle.rules == ("shell(one)", "shell(two)", "shell(frob)")


def test_everyday_work_of_which_nothing_else_is_missing_is_not_offered() -> None:
    everyday = find_everyday("one", ["shell(one)"], ["one"], POLICY)
    assert everyday is not None
    rest = tuple(rule for rule in everyday.rules if rule != "shell(one)")
    allowed = msgspec.structs.replace(POLICY, allow=rules(*rest))
    assert find_everyday("one", ["shell(one)"], ["one"], allowed) is None
    more = ["shell(one)", "shell(frob)"]
    assert find_everyday("one; frob", more, ["one"], allowed) is None
    assert find_everyday("frob", ["shell(frob)"], [], POLICY) is None
    assert find_everyday("git add a", ["shell(git add)"], None, POLICY) is None
    assert find_everyday("git add a", ["shell(git add)"], [], POLICY, (EVERYDAY,)) is None


@pytest.mark.parametrize(
    ("command", "suggested"),
    [
        ("python a.py", "shell(python a.py)"),
        ("node -e 1", "shell(node)"),
        ("bash scripts/a.sh", "shell(bash scripts/a.sh)"),
        ("npx tsx a.ts", "shell(npx tsx)"),
        ("./scripts/a.sh -v", "shell(./scripts/a.sh)"),
        ("/srv/project/bin/a", "shell(/srv/project/bin/a)"),
    ],
)
def test_code_is_run_by_every_interpreter_after_one_answer(command: str, suggested: str) -> None:
    for find in (find_bundle, find_everyday):
        bundle = find(command, [suggested], [], POLICY)
        assert bundle is not None
        policy = msgspec.structs.replace(POLICY, allow=parse_rules(bundle.rules))
        assert decide_shell(command, policy).verdict == "allow"
        assert decide_shell("python3 other.py", policy).verdict == "allow"


def test_a_whole_program_is_offered_after_one_of_its_commands() -> None:
    assert find_bundle("docker pull x", ["shell(docker pull)"], (), POLICY) is None
    again = msgspec.structs.replace(POLICY, allow=rules("shell(docker pull)"))
    assert find_bundle("docker pull x", ["shell(docker pull)"], (), again) is None
    one = msgspec.structs.replace(POLICY, allow=rules("shell(docker run)"))
    bundle = find_bundle("docker pull x", ["shell(docker pull)"], (), one)
    assert bundle is not None
    assert bundle.title.startswith("every docker command, but for pushing")
    assert bundle.rules == ("shell(@docker)",)
    policy = msgspec.structs.replace(POLICY, allow=parse_rules(bundle.rules))
    assert decide_shell("docker compose down", policy).verdict == "allow"
    assert find_bundle("docker pull x", ["shell(docker pull)"], (), one, (bundle.title,)) is None
    looking = msgspec.structs.replace(POLICY, allow=rules("shell(@containers)"))
    assert find_bundle("docker pull x", ["shell(docker pull)"], (), looking) == bundle


def test_a_program_that_cannot_publish_is_offered_without_exceptions() -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(pip list)"))
    bundle = find_bundle("pip cache", ["shell(pip cache)"], (), policy)
    assert bundle is not None
    assert (bundle.title, bundle.rules) == ("every pip command", ("shell(pip:*)",))


@pytest.mark.parametrize(
    ("command", "suggested"),
    [
        ("npm publish", "shell(npm publish)"),
        ("npm dist-tag add a@1 latest", "shell(npm dist-tag)"),
        ("cargo yank --version 1.0.0", "shell(cargo yank)"),
        ("docker push x", "shell(docker push)"),
        ("docker system prune -af", "shell(docker system prune)"),
        ("mvn deploy", "shell(mvn deploy)"),
        ("uv publish", "shell(uv publish)"),
    ],
)
def test_publishing_is_neither_offered_nor_covered_with_the_whole_program(
    command: str, suggested: str
) -> None:
    program = command.split(maxsplit=1)[0]
    policy = msgspec.structs.replace(POLICY, allow=rules(f"shell({program} frob)"))
    assert find_bundle(command, [suggested], (), policy) is None
    whole = msgspec.structs.replace(POLICY, allow=rules(f"shell(@{program})"))
    assert decide_shell(command, whole).verdict == "ask"
    named = msgspec.structs.replace(whole, allow=(*whole.allow, *rules(suggested)))
    assert decide_shell(command, named).verdict == "allow"


def test_after_one_change_on_github_those_of_issues_and_pull_requests_are_offered() -> None:
    looking = msgspec.structs.replace(POLICY, allow=rules("shell(@github)"))
    bundle = find_bundle("gh pr create -f", ["shell(gh pr create)"], (), looking)
    assert bundle is not None
    assert bundle.rules == ("shell(@issues)",)
    policy = msgspec.structs.replace(POLICY, allow=parse_rules(bundle.rules))
    assert decide_shell("gh issue comment 1 -b x", policy).verdict == "allow"
    for other in ("gh pr merge 1", "gh api -X DELETE x", "gh secret set A", "gh repo edit"):
        assert decide_shell(other, policy).verdict == "ask"


@pytest.mark.parametrize("program", ["git", "gh", "kubectl", "aws", "npx", "ssh", "terraform"])
def test_a_whole_program_is_not_offered_if_it_reaches_far(program: str) -> None:
    known = rules(f"shell({program} one)")
    policy = msgspec.structs.replace(POLICY, allow=known)
    bundle = find_bundle(f"{program} three", [f"shell({program} three)"], (), policy)
    assert bundle is None


@pytest.mark.parametrize(
    ("program", "offered"),
    [
        ("/home/someone/.tool/plugins/x/scripts/go", True),
        ("/home/someone/work/other/.venv/bin/esptool", True),
        ("/home/someone/.local/bin/go", False),
        ("/usr/local/lib/x/bin/go", False),
        ("go", False),
    ],
)
def test_the_programs_of_a_folder_are_offered_if_it_belongs_to_one_thing(
    program: str, offered: bool
) -> None:
    bundle = find_bundle(program, [f"shell({program})"], (), POLICY)
    folder = program.rpartition("/")[0]
    assert (bundle.title if bundle else "") == (f"every program in {folder}" if offered else "")
    policy = msgspec.structs.replace(POLICY, allow=parse_rules(bundle.rules) if bundle else ())
    assert (decide_shell(f"{folder}/other -x", policy).verdict == "allow") is offered
    assert decide_shell("/home/someone/else/a/b/c", policy).verdict == "ask"


def test_a_link_in_place_of_a_folder_of_programs_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/go").touch()
    policy = msgspec.structs.replace(POLICY, allow=rules(f"shell({tmp_path}/folder/)"))
    assert decide_shell(f"{tmp_path}/folder/go", policy).verdict == "allow"
    (tmp_path / "folder").symlink_to(tmp_path / "elsewhere")
    assert decide_shell(f"{tmp_path}/folder/go", policy).verdict == "ask"
