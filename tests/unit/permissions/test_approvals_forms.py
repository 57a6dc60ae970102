"""Approvals of every kind: what is offered, the rules they become, and how they are described."""

from typing import Any

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import (
    OUTSIDE,
    approve_bundle,
    describe_bundle,
    describe_cover,
    generalise,
    holds_everywhere,
    name_briefly,
    offer_rules,
    to_rules,
)
from trimtab.permissions.assess import read_script

CONFINED = msgspec.structs.replace(POLICY, confined=True)
TOOLS = msgspec.structs.replace(POLICY, allow_all_tools=True)
PATHS = msgspec.structs.replace(POLICY, allow_all_paths=True)


@pytest.mark.parametrize(
    ("kind", "target", "approval"),
    [
        ("shell", "make", None),
        ("read", "/etc/x", {"kind": "read"}),
        ("write", "/srv/project/a", {"kind": "write"}),
        ("memory", "", {"kind": "memory"}),
        ("custom-tool", "deploy", {"kind": "custom-tool", "toolName": "deploy"}),
        ("url", "https://a.test/x?y=1", {"kind": "url", "url": "https://a.test/x"}),
        ("none", "", None),
        ("frob", "x", {"kind": "frob", "target": "x"}),
    ],
)
def test_each_kind_of_access_offers_an_approval_of_its_own(
    kind: str, target: str, approval: JsonObject | None
) -> None:
    assert generalise(Access(kind=kind, target=target), None) == approval


def test_a_tool_of_a_server_is_offered_by_both_names() -> None:
    access = Access(kind="mcp", target="db-q", detail={"serverName": "db", "toolName": "q"})
    assert generalise(access, None) == {"kind": "mcp", "serverName": "db", "toolName": "q"}


@pytest.mark.parametrize(
    ("path", "approval"),
    [
        ("/opt/vendor/share/a", {"kind": "read", "readsFolders": ["/opt/vendor/share"]}),
        ("/opt/vendor/share/.env", None),
        ("/a", {"kind": "read"}),
        ("/home/someone/.ssh/id_rsa", None),
    ],
)
def test_reading_a_file_elsewhere_offers_its_folder_but_no_secret(
    path: str, approval: JsonObject | None
) -> None:
    assert generalise(Access(kind="read", target=path), None, POLICY) == approval


@pytest.mark.parametrize(
    ("command", "policy", "approval"),
    [
        ("make", POLICY, {"kind": "commands", "commandIdentifiers": ["make"]}),
        ("make; make; ls", POLICY, {"kind": "commands", "commandIdentifiers": ["make"]}),
        ("bash a", POLICY, {"kind": "commands", "commandIdentifiers": ["bash a"]}),
        ("make", CONFINED, None),
        ("make", TOOLS, None),
        ("ls", POLICY, None),
        ("ls > a", POLICY, {"kind": "write"}),
        ("ls > $x", POLICY, None),
        ("ls > a > $x", POLICY, None),
        ("ls > /etc/a", POLICY, None),
        (
            "make > a",
            POLICY,
            {"kind": "commands", "commandIdentifiers": ["make"], "writesFiles": True},
        ),
        ("cat /opt/v/s/a", POLICY, {"kind": "read", "readsFolders": ["/opt/v/s"]}),
        ("cat /opt/v/s/a", PATHS, None),
        ("cat /opt/v/s/a", CONFINED, {"kind": "read", "readsFolders": ["/opt/v/s"]}),
        ("cat /opt/v/s/a", TOOLS, {"kind": "read", "readsFolders": ["/opt/v/s"]}),
        ("cat /opt/v/s/a /a", POLICY, None),
        ("make < /opt/v/s/a", CONFINED, {"kind": "read", "readsFolders": ["/opt/v/s"]}),
        ("cp /opt/v/s/a b", CONFINED, {"kind": "read", "readsFolders": ["/opt/v/s"]}),
        (
            "cp /opt/v/s/a b",
            POLICY,
            {"kind": "commands", "commandIdentifiers": ["cp"], "readsFolders": ["/opt/v/s"]},
        ),
        ("$x < /opt/v/s/a", POLICY, None),
        (
            "make < /opt/v/s/a",
            POLICY,
            {"kind": "commands", "commandIdentifiers": ["make"], "readsFolders": ["/opt/v/s"]},
        ),
    ],
)
def test_a_command_offers_its_programs_the_files_it_writes_and_the_folders_it_reads(
    command: str, policy: Policy, approval: JsonObject | None
) -> None:
    access = Access(kind="shell", target=command)
    assert generalise(access, read_script(command, policy), policy) == approval


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        ({"kind": "commands", "commandIdentifiers": ["a", 1, "b"]}, ["shell(a)", "shell(b)"]),
        ({"kind": "commands", "commandIdentifiers": "a"}, []),
        ({"kind": "commands", "commandIdentifiers": ["a"], "writesFiles": 1}, ["shell(a)"]),
        (
            {"kind": "commands", "commandIdentifiers": ["a"], "writesFiles": True},
            ["shell(a)", "write"],
        ),
        (
            {"kind": "commands", "commandIdentifiers": ["a"], "outsideSandbox": True},
            ["outside(a)"],
        ),
        ({"kind": "commands", "commandIdentifiers": ["a"], "outsideSandbox": 1}, ["shell(a)"]),
        ({"kind": "write"}, ["write"]),
        ({"kind": "memory"}, ["memory"]),
        ({"kind": "read"}, []),
        ({"kind": "read", "path": "/a/b/"}, ["read(/a/b)"]),
        ({"kind": "read", "path": "/"}, ["read(/)"]),
        ({"kind": "mcp", "serverName": "db", "toolName": "q"}, ["db(q)"]),
        ({"kind": "mcp", "serverName": "db", "toolName": None}, ["db"]),
        ({"kind": "mcp", "serverName": "db", "toolName": 1}, []),
        ({"kind": "custom-tool", "toolName": "x"}, ["custom-tool(x)"]),
        ({"kind": "url", "url": "https://a.test"}, ["url(https://a.test)"]),
        ({"kind": "frob", "target": "x"}, ["frob(x)"]),
        ({"kind": "frob"}, []),
        (None, []),
        ("write", []),
        (
            {"kind": "read", "readsFolders": ["/a", "/b//", "/", "//", "c", 1]},
            ["read(/a/)", "read(/b/)"],
        ),
        ({"kind": "read", "readsFolders": "/a"}, []),
        (
            {"kind": "write", "urls": ["https://a.test", "http://b.test", 1, "http://localhost:*"]},
            ["write", "url(https://a.test)", "url(http://localhost:*)"],
        ),
        ({"kind": "write", "urls": "https://a.test"}, ["write"]),
    ],
)
def test_an_approval_stands_for_the_rules_that_are_understood(
    approval: Any, expected: list[str]
) -> None:
    given = to_rules(approval, "location")
    assert [str(rule) for rule in given] == expected
    assert {rule.source for rule in given} <= {"location"}


@pytest.mark.parametrize(("digest", "bound"), [("abc", "abc"), (None, ""), (1, "")])
def test_an_approval_of_a_servers_tool_is_bound_to_its_description(digest: Any, bound: str) -> None:
    approval = {"kind": "mcp", "serverName": "db", "toolName": "q", "toolDigest": digest}
    (rule,) = to_rules(approval, "session")
    assert rule.digest == bound


@pytest.mark.parametrize(
    ("rule", "cover"),
    [
        (Rule("shell", "make"), "every `make` command, whatever its arguments."),
        (Rule(OUTSIDE, "ssh"), "every `ssh` command, run outside the sandbox."),
        (Rule("read", "/a/"), "every reading below /a/, but for files named like secrets."),
        (Rule("read", "/a"), "every reading of /a."),
        (Rule("url", "https://a.test"), "every address that begins with https://a.test."),
        (Rule("db", "q"), "every call of q of db."),
        (Rule("db", None), "every call of any tool of db."),
    ],
)
def test_what_a_rule_covers_is_told_in_a_sentence(rule: Rule, cover: str) -> None:
    assert describe_cover([rule]) == cover


def test_what_a_rule_for_all_files_covers_is_told_in_words_of_its_own() -> None:
    told = describe_cover([Rule("write", None)])
    assert told.endswith(".")
    assert "any tool" not in told


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("shell(git add)", "git add"),
        ("url(https://a.test)", "a.test"),
        ("url(http://a.test)", "http://a.test"),
        ("write", "write"),
        ("read(/a/)", "read(/a/)"),
    ],
)
def test_a_rule_for_a_command_or_a_host_is_named_briefly(rule: str, name: str) -> None:
    assert name_briefly(rule) == name


@pytest.mark.parametrize(
    ("suggested", "everywhere"),
    [
        (["read(/a/)"], True),
        (["read(/a/)", "read(/b/c/)"], True),
        (["read(/a/)", "shell(make)"], False),
        (["read(/a)"], False),
        (["read(a/)"], False),
        ([], False),
        (None, False),
    ],
)
def test_only_rules_for_folders_elsewhere_may_hold_in_every_folder(
    suggested: list[str] | None, everywhere: bool
) -> None:
    assert holds_everywhere({"suggestedRules": suggested}) is everywhere


def test_a_bundle_is_told_by_its_parts_or_by_what_it_allows() -> None:
    given = ["shell(git add)", "write"]
    assert describe_bundle({"rules": given}) == "git add, write"
    assert describe_bundle({"rules": given, "parts": []}) == "git add, write"
    assert describe_bundle({"rules": given, "parts": ["a", "b"]}) == "a, b"


@pytest.mark.parametrize("field", ["bundle", "everyday"])
def test_one_answer_approves_the_bundle_of_the_field(field: str) -> None:
    answer = approve_bundle({field: {"rules": ["shell(a)", "write"]}}, field)
    assert answer.kind == "approve-for-location"
    assert answer.approval == {
        "kind": "commands",
        "commandIdentifiers": ["a"],
        "writesFiles": True,
    }


@pytest.mark.parametrize(
    ("text", "approval"),
    [
        ("write", {"kind": "write"}),
        ("shell(a b), shell(c)", {"kind": "commands", "commandIdentifiers": ["a b", "c"]}),
        ("read(/opt/a/)", {"kind": "read", "readsFolders": ["/opt/a"]}),
        ("url(https://a.test)", {"kind": "url", "urls": ["https://a.test"]}),
        ("write, url(https://a.test)", {"kind": "write", "urls": ["https://a.test"]}),
        (
            "url(https://a.test), read(/opt/a/)",
            {"kind": "url", "readsFolders": ["/opt/a"], "urls": ["https://a.test"]},
        ),
        (
            "shell(a), write, read(/opt/a/)",
            {
                "kind": "commands",
                "commandIdentifiers": ["a"],
                "writesFiles": True,
                "readsFolders": ["/opt/a"],
            },
        ),
    ],
)
def test_rules_that_a_person_writes_become_one_approval(text: str, approval: JsonObject) -> None:
    request, given = offer_rules({"reason": "x", "suggestedRules": ["shell(old)"]}, text)
    assert given == approval
    assert request["reason"] == "x"
    assert request["suggestedRules"] == text.split(", ")
    assert request["suggestedRulesCover"] == describe_cover(rules(*text.split(", ")))


@pytest.mark.parametrize(
    "text",
    ["", ",", "shell", "write(a)", "read", "read(/opt/a)", "read(/)", "url", "memory", "db(q)"],
)
def test_other_rules_cannot_be_written_as_an_answer(text: str) -> None:
    with pytest.raises(UsageError, match="Only rules for commands"):
        offer_rules({}, text)
    if text not in ("", ","):
        with pytest.raises(UsageError, match="Only rules for commands"):
            offer_rules({}, f"shell(a), {text}")
