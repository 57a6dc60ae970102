"""What an approval covers: tools of servers as they were described, commands by their names."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import describe_cover, generalise, offer_rules, to_rules
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.requests import remembered
from trimtab.permissions.rules import matches_tool, parse_rules
from trimtab.permissions.shell.verdict.analyse import analyse


def access(digest: str) -> Access:
    detail = {"serverName": "small", "toolName": "echo", "toolDigest": digest}
    return Access(kind="mcp", target="small-echo", detail=detail)


def test_an_approval_does_not_carry_over_to_another_description() -> None:
    approved = access("before")
    (rule,) = to_rules(remembered(approved, generalise(approved, None)), "session")
    assert matches_tool(rule, access("before"))
    assert not matches_tool(rule, access("after"))


def test_an_approval_of_a_whole_server_and_older_ones_hold_as_before() -> None:
    for approval in (
        {"kind": "mcp", "serverName": "small", "toolName": None},
        {"kind": "mcp", "serverName": "small", "toolName": "echo"},
    ):
        (rule,) = to_rules(approval, "location")
        assert matches_tool(rule, access("any"))


def test_a_person_is_told_what_else_a_rule_covers() -> None:
    rules = [Rule("shell", "touch"), Rule("url", "https://x.test"), Rule("small", "echo")]
    assert describe_cover(rules) == (
        "every `touch` command on files in the allowed directories; every address that begins with "
        "https://x.test; every call of echo of small."
    )
    assert describe_cover([]) == ""


def offer(command: str, policy: Policy | None = None) -> list[str]:
    approval = generalise(
        Access(kind="shell", target=command), analyse(command, POLICY.cwd), policy
    )
    return [str(rule) for rule in to_rules(approval, "location")]


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("cargo test --all", ["shell(cargo test)"]),
        ("kubectl get pods -n web", ["shell(kubectl get)"]),
        ("ssh web 'tail -5 log'", ["shell(ssh web)"]),
        ("ssh me@web uptime", ["shell(ssh me@web)"]),
        ("ssh -o ProxyCommand=x web", []),
        ("docker compose logs web", ["shell(docker compose logs)"]),
        ("docker ps && docker rm x", ["shell(docker ps)", "shell(docker rm)"]),
        ("python3 -m pytest -q", ["shell(python3 -m pytest)"]),
        ("python3 tools/build.py --fast", ["shell(python3 tools/build.py)"]),
        ("uv run pytest", ["shell(uv run pytest)"]),
        ("rake db:migrate", ["shell(rake db:migrate)"]),
        ("make -j4 test", ["shell(make test)"]),
        ("make -j 4 -C sub test", ["shell(make test)"]),
        ("make --frob test", ["shell(make)"]),
        ("docker compose -f dev.yml --profile x up -d", ["shell(docker compose up)"]),
        ("kubectl -n web get pods", ["shell(kubectl get)"]),
        ("kubectl --context get delete pod", ["shell(kubectl delete)"]),
        ("mvn -q -DskipTests package", ["shell(mvn package)"]),
        ("cargo +nightly test", ["shell(cargo test)"]),
        ("make", ["shell(make)"]),
        ("cargo $x test", []),
        ("make 'a b'", ["shell(make)"]),
        ("git push origin x", ["shell(git push)"]),
        ("npm run build -- -x", ["shell(npm run build)"]),
        ("frobnicate all", ["shell(frobnicate)"]),
    ],
)
def test_the_narrowest_useful_rule_is_offered(command: str, offered: list[str]) -> None:
    assert offer(command) == offered


@pytest.mark.parametrize(
    ("answered", "command", "offered"),
    [
        ("shell(git add)", "git commit -m x", ["shell(@git)"]),
        ("shell(git add)", "git add y && git commit", ["shell(@git)"]),
        ("shell(git add)", "git push", ["shell(git push)"]),
        ("shell(git push)", "git commit", ["shell(git commit)"]),
        ("shell(@git)", "git push", ["shell(git push)"]),
        ("shell(npm install)", "pip install x", ["shell(@install)"]),
        ("shell(gh pr view)", "gh issue list", ["shell(@github)"]),
        ("shell(gh pr view)", "gh pr merge", ["shell(gh pr merge)"]),
        ("shell(docker ps)", "docker run x", ["shell(docker run)"]),
        ("shell(kubectl get)", "kubectl delete pod x", ["shell(kubectl delete)"]),
        ("shell(pkill)", "kill 1", ["shell(kill)"]),
        ("shell(pytest)", "ruff check --fix", ["shell(ruff)"]),
        ("shell(pytest), shell(make)", "ruff check --fix", ["shell(@code)"]),
        ("shell(pytest), shell(make)", "python3 -m pip install x", ["shell(python3 -m pip)"]),
    ],
)
def test_with_others_of_a_group_allowed_by_answers_the_group_is_offered(
    answered: str, command: str, offered: list[str]
) -> None:
    allow = parse_rules(answered.split(", "), "always")
    assert offer(command, msgspec.structs.replace(POLICY, allow=allow)) == offered
    flags = parse_rules(answered.split(", "), "flag")
    assert "@" not in "".join(offer(command, msgspec.structs.replace(POLICY, allow=flags)))


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        ("shell(cargo test)", "cargo test --all", "allow"),
        ("shell(cargo test:*)", "cargo test", "allow"),
        ("shell(cargo test)", "cargo testing", "ask"),
        ("shell(cargo test)", "cargo publish", "ask"),
        ("shell(cargo test)", "cargo --locked test", "allow"),
        ("shell(cargo test)", "cargo --config x test", "ask"),
        ("shell(cargo test)", "cargo --locked publish test", "ask"),
        ("shell(kubectl get)", "kubectl -n web get pods", "allow"),
        ("shell(ssh web)", "ssh web uptime", "allow"),
        ("shell(ssh web)", "ssh web.evil.example uptime", "ask"),
        ("shell(ssh web)", "ssh -p 22 other web", "ask"),
        ("shell(kubectl get)", "kubectl --context get delete pod", "ask"),
        ("shell(kubectl get)", "kubectl --kubeconfig evil get pods", "ask"),
        ("shell(docker ps)", "docker -H tcp://evil.test ps", "ask"),
        ("shell(cargo test)", "cargo $x test", "ask"),
        ("shell(cargo test)", "cargo 'test x'", "ask"),
        ("shell(cargo test)", "./cargo test", "ask"),
        ("shell(cargo test)", "cargo test && cargo publish", "ask"),
        ("shell(docker ps)", "docker * ps", "ask"),
        ("shell(cargo)", "cargo publish", "allow"),
    ],
)
def test_a_rule_of_several_words_covers_what_begins_with_them(
    rule: str, command: str, verdict: str
) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules(rule))
    assert decide_shell(command, policy).verdict == verdict


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("mkdir -p src/a && touch src/a/b", ["shell(mkdir)", "shell(touch)"]),
        ("echo x > out.txt", ["write"]),
        ("npm run build > build.log", ["shell(npm run build)", "write"]),
        ("cp a.txt b.txt", ["shell(cp)"]),
        ("cp a.txt ../b.txt", []),
        ("mkdir ../b", []),
        ("cp /opt/tool/a b", ["shell(cp)", "read(/opt/tool/)"]),
        ("cp /opt/tool/a ../b", []),
        ("cp /usr/share/x/a b", ["shell(cp)"]),
        ("frob && mkdir x", ["shell(frob)", "shell(mkdir)"]),
        ("echo x > ../out.txt", []),
        ("echo x > .vscode/tasks.json", []),
        ("echo x > $y", []),
        ("echo x > out.txt; $y", []),
    ],
)
def test_a_rule_for_writing_is_offered_for_files_written_by_redirection(
    command: str, offered: list[str]
) -> None:
    access, analysis = Access(kind="shell", target=command), analyse(command, POLICY.cwd)
    given = to_rules(generalise(access, analysis, POLICY), "session")
    assert [str(rule) for rule in given] == offered
    if offered:
        policy = msgspec.structs.replace(POLICY, allow=given)
        assert decide_shell(command, policy).verdict == "allow"


@pytest.mark.parametrize(
    ("text", "names", "writes"),
    [
        ("shell(git add), shell(git commit)", ["git add", "git commit"], False),
        ("shell(git add), write", ["git add"], True),
        ("write", [], True),
    ],
)
def test_rules_that_a_person_writes_are_kept_as_they_stand(
    text: str, names: list[str], writes: bool
) -> None:
    request, approval = offer_rules({"kind": "shell"}, text)
    assert request["kind"] == "shell"
    assert request["suggestedRules"] == text.split(", ")
    assert request["suggestedRulesCover"] == describe_cover(to_rules(approval, "session"))
    kept = to_rules(approval, "session")
    assert [rule.argument for rule in kept if rule.kind == "shell"] == names
    assert any(rule.kind == "write" for rule in kept) is writes
