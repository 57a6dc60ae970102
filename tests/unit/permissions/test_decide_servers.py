"""What rules say about tools of MCP servers, and when such a tool counts as only reading."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.permission import Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.decide import decide
from trimtab.permissions.effects import may_change


def call(server: str = "db", tool: str = "query", *, read_only: bool = False) -> Access:
    detail = {"serverName": server, "toolName": tool, "readOnly": read_only}
    return Access(kind="mcp", target=f"{server}-{tool}", detail=detail)


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("db", "allow"),
        ("db(query)", "allow"),
        ("db-query", "allow"),
        ("mcp__db__query", "allow"),
        ("mcp__db", "allow"),
        ("mcp__db__drop", "ask"),
        ("db(drop)", "ask"),
        ("other", "ask"),
        ("db-drop", "ask"),
        ("custom-tool", "ask"),
    ],
)
def test_a_rule_allows_a_server_or_one_of_its_tools(rule: str, verdict: str) -> None:
    assert decide(call(), msgspec.structs.replace(POLICY, allow=rules(rule))).verdict == verdict


@pytest.mark.parametrize(
    "name", ["shell", "write", "read", "url", "memory", "bash", "edit", "view"]
)
def test_a_word_that_means_something_else_denies_a_server_and_never_allows_it(name: str) -> None:
    access = call(name)
    allowing = msgspec.structs.replace(POLICY, allow=rules(name))
    denying = msgspec.structs.replace(POLICY, deny=rules(name), allow_all_tools=True)
    assert decide(access, allowing).verdict == "ask"
    assert decide(access, denying).verdict == "deny"


def test_an_approval_of_one_tool_of_a_server_called_memory_holds() -> None:
    policy = msgspec.structs.replace(POLICY, allow=(Rule("memory", "query", "for-session"),))
    assert decide(call("memory"), policy).verdict == "allow"
    assert decide(call("memory", "other"), policy).verdict == "ask"


@pytest.mark.parametrize(
    ("read_only", "rule", "changes"),
    [
        (True, Rule("db", "query"), False),
        (True, Rule("db", "query", "for-session"), False),
        (True, Rule("db", "query", "/home/someone/.copilot/settings.json"), False),
        (True, Rule("db", "query", "/srv/project/.github/copilot/settings.json"), True),
        (True, Rule("db"), True),
        (True, Rule("db-query"), True),
        (True, Rule("db", "drop"), True),
        (False, Rule("db", "query"), True),
    ],
)
def test_a_claim_to_only_read_counts_with_a_rule_of_the_person_for_just_that_tool(
    read_only: bool, rule: Rule, changes: bool
) -> None:
    homes = ("/home/someone/.copilot",)
    policy = msgspec.structs.replace(POLICY, allow=(rule,), allow_all_tools=True, homes=homes)
    assert may_change(call(read_only=read_only), policy) is changes


def test_a_rule_about_files_vouches_for_no_server() -> None:
    policy = msgspec.structs.replace(POLICY, allow=(Rule("write", "query"),))
    assert may_change(call("write", read_only=True), policy)


@pytest.mark.parametrize(("target", "shown"), [("deploy", "deploy"), ("", "custom-tool")])
def test_the_reason_names_the_tool_or_its_kind(target: str, shown: str) -> None:
    decision = decide(Access(kind="custom-tool", target=target, mutates=True), POLICY)
    assert (decision.verdict, decision.reason) == ("ask", f"No rule allows the tool {shown}.")
