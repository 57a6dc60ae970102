"""Files that a rule forbids, under further names that they have."""

import os
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.decide import decide
from trimtab.permissions.linked_files import find_linked_globs, find_linked_rule


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    for name in (".env", "keys/one", "plain", "other"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    os.link(tmp_path / ".env", tmp_path / "notes.txt")
    os.link(tmp_path / "keys/one", tmp_path / "two")
    os.link(tmp_path / "plain", tmp_path / "same")
    root = str(tmp_path.resolve())
    return msgspec.structs.replace(POLICY, cwd=root, roots=(root,), allow=rules("write"))


@pytest.mark.parametrize(
    ("rule", "kind", "name", "verdict"),
    [
        ("read(.env)", "read", "notes.txt", "deny"),
        ("read(keys)", "read", "two", "deny"),
        ("read(./.env)", "read", "notes.txt", "deny"),
        ("read(.env)", "read", "same", "allow"),
        ("read(.env)", "read", "other", "allow"),
        ("write(.env)", "read", "notes.txt", "allow"),
        ("write(.env)", "write", "notes.txt", "deny"),
        ("write(keys/)", "write", "two", "deny"),
        ("read(.env)", "write", "other", "allow"),
        ("read(.env)", "read", "missing", "allow"),
    ],
)
def test_a_file_is_judged_by_all_its_names(
    policy: Policy, rule: str, kind: str, name: str, verdict: str
) -> None:
    policy = msgspec.structs.replace(policy, deny=rules(rule))
    access = Access(kind=kind, target=f"{policy.cwd}/{name}")
    assert decide(access, policy).verdict == verdict


def test_a_rule_for_all_paths_needs_no_search(policy: Policy) -> None:
    assert find_linked_rule(rules("read"), "read", f"{policy.cwd}/notes.txt", policy) is None
    assert find_linked_globs(policy) == ()


def test_searches_leave_out_every_name_of_a_forbidden_file(policy: Policy) -> None:
    policy = msgspec.structs.replace(policy, deny=rules("read(.env)", "read(keys)"))
    globs = find_linked_globs(policy)
    assert {"/.env", "/notes.txt", "/two", "/keys/one"} <= set(globs)
    assert not {"/same", "/other"} & set(globs)
