"""Approvals of MCP tools hold for the description that was approved."""

from trimtab.contracts.permission import Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import describe_cover, generalise, to_rules
from trimtab.permissions.requests import remembered
from trimtab.permissions.rules import matches_tool


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
        "every `touch` command, whatever its arguments; every address that begins with "
        "https://x.test; every call of echo of small."
    )
    assert describe_cover([]) == ""
