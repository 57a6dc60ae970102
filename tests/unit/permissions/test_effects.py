"""Accesses that may change something, as plan mode asks."""

import pytest

from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.effects import may_change

POLICY = Policy(cwd="/repo", roots=("/repo",), session_folder="/state/s")


@pytest.mark.parametrize(
    ("kind", "target", "changes"),
    [
        ("write", "/repo/a.py", True),
        ("write", "/state/s/plan.md", False),
        ("read", "/repo/a.py", False),
        ("none", "", False),
        ("custom-tool", "deploy", True),
    ],
)
def test_only_the_sessions_own_files_may_be_written(kind: str, target: str, changes: bool) -> None:
    access = Access(kind=kind, target=target)
    assert may_change(access, POLICY) is changes
    harmless = Access(kind=kind, target=target, mutates=False)
    assert not may_change(harmless, POLICY)


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("ls", False),
        ("ls | head", False),
        ("touch a", True),
        ("ls; touch a", True),
        ("ls > a", True),
        ("ls > $x", True),
        ("ls > /state/s/plan.md", False),
        ("ls > /state/s/plan.md > a", True),
        ("ls > /state/s/files/a", False),
        ("$x", True),
        ("PATH=/x ls", True),
        ("find . -delete", True),
        ("'unclosed", True),
        ("ls | sort $x", True),
    ],
)
def test_a_command_changes_something_unless_it_surely_only_reads(
    command: str, changes: bool
) -> None:
    assert may_change(Access(kind="shell", target=command), POLICY) is changes


def test_a_script_in_another_language_may_change_anything() -> None:
    access = Access(kind="shell", target="ls", interpreter="powershell")
    assert may_change(access, POLICY)


@pytest.mark.parametrize(
    ("read_only", "rule", "changes"),
    [
        (True, Rule("db", "query", "flag"), False),
        (True, Rule("db", "query", "/home/me/.agent/rules"), False),
        (True, Rule("db", "query", "/repo/rules"), True),
        (True, Rule("db", "zzz", "flag"), True),
        (True, Rule("db", None, "flag"), True),
        (True, Rule("other", "query", "flag"), True),
        (False, Rule("db", "query", "flag"), True),
        (None, Rule("db", "query", "flag"), True),
        (1, Rule("db", "query", "flag"), True),
    ],
)
def test_a_servers_tool_only_reads_if_it_says_so_and_the_person_allows_exactly_it(
    read_only: object, rule: Rule, changes: bool
) -> None:
    policy = Policy(cwd="/repo", roots=("/repo",), homes=("/home/me/.agent",), allow=(rule,))
    detail = {"serverName": "db", "toolName": "query", "readOnly": read_only}
    assert may_change(Access(kind="mcp", target="db-query", detail=detail), policy) is changes
    bare = Policy(cwd="/repo", roots=("/repo",))
    assert may_change(Access(kind="mcp", target="db-query", detail=detail), bare)
