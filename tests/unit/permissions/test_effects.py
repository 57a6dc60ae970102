"""Accesses that may change something, as plan mode asks."""

import pytest

from trimtab.contracts.permission import Policy
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
