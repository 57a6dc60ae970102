"""Requests about a call: the fields that every kind has, and what is remembered of an approval."""

from typing import Any

import pytest

from loopkit import EchoTool
from permissionkit import POLICY
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access
from trimtab.permissions.requests import build_request, digest, remembered


def make_call(**args: Any) -> PendingCall:
    call = ToolCall(id="c1", name="echo", arguments="")
    return PendingCall(call=call, tool=EchoTool(), args=args)


@pytest.mark.parametrize(
    ("access", "suggested"),
    [
        (Access(kind="shell", target="make"), ["shell(make)"]),
        (Access(kind="shell", target="make", interpreter="powershell"), None),
        (Access(kind="shell", target="$x"), None),
        (Access(kind="write", target="/srv/project/a"), ["write"]),
        (Access(kind="read", target="/a"), ["read(/a)"]),
        (Access(kind="read", target="/opt/v/s/a"), ["read(/opt/v/s/)"]),
        (Access(kind="url", target="https://a.test/x?y"), ["url(https://a.test/x)"]),
    ],
)
def test_a_request_offers_the_rules_by_which_it_would_not_be_asked_again(
    access: Access, suggested: list[str] | None
) -> None:
    request = build_request(access, make_call(), POLICY)
    assert request.get("suggestedRules") == suggested
    assert ("suggestedRulesCover" in request) is (suggested is not None)
    assert (request["kind"], request["toolCallId"]) == (access.kind, "c1")
    assert request["digest"] == digest(make_call())


def test_what_an_access_says_of_itself_stands_in_the_request() -> None:
    access = Access(kind="write", target="/a", intention="Fix it", detail={"diff": "+x"})
    request = build_request(access, make_call(), POLICY)
    assert (request["intention"], request["diff"]) == ("Fix it", "+x")


def test_a_digest_names_the_tool_and_its_arguments_in_any_order() -> None:
    assert digest(make_call(a=1, b=2)) == digest(make_call(b=2, a=1))
    assert digest(make_call(a=1)) != digest(make_call(a=2))
    assert digest(make_call()).startswith("sha256:")


@pytest.mark.parametrize(
    ("access", "approval", "kept"),
    [
        (Access(kind="read", target="/a/./b"), {"kind": "read"}, {"kind": "read", "path": "/a/b"}),
        (
            Access(kind="read", target="/a"),
            {"kind": "read", "readsFolders": ["/a"]},
            {"kind": "read", "readsFolders": ["/a"]},
        ),
        (
            Access(kind="mcp", detail={"toolDigest": "1"}),
            {"kind": "mcp", "toolName": "q"},
            {"kind": "mcp", "toolName": "q", "toolDigest": "1"},
        ),
        (
            Access(kind="mcp", detail={"toolDigest": "1"}),
            {"kind": "mcp", "toolName": None},
            {"kind": "mcp", "toolName": None},
        ),
        (Access(kind="mcp"), {"kind": "mcp", "toolName": "q"}, {"kind": "mcp", "toolName": "q"}),
        (Access(kind="write", detail={"toolDigest": "1"}), {"kind": "write"}, {"kind": "write"}),
        (Access(kind="shell", target="$x"), None, None),
    ],
)
def test_an_approval_is_bound_to_the_path_or_to_the_tool_as_described(
    access: Access, approval: JsonObject | None, kept: JsonObject | None
) -> None:
    assert remembered(access, approval) == kept
