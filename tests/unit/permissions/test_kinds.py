"""How each kind of request is put to a person."""

from typing import Any

import pytest

from loopkit import EchoTool
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access
from trimtab.permissions.kinds import find_kind, show_request
from trimtab.permissions.shell.verdict.analyse import analyse

ARGS = {"text": "hi"}
PENDING = PendingCall(call=ToolCall(id="c", name="echo", arguments=""), tool=EchoTool(), args=ARGS)
SHOWN_ARGS = '{\n  "text": "hi"\n}'


@pytest.mark.parametrize(
    ("request_", "question", "text", "form"),
    [
        ({"kind": "shell", "fullCommandText": "ls"}, "Run this command?", "ls", "command"),
        ({"kind": "shell"}, "Run this command?", "", "command"),
        ({"kind": "write", "fileName": "a", "diff": "+x"}, "Write a?", "+x", "diff"),
        ({"kind": "write", "fileName": "a", "newFileContents": "x"}, "Write a?", "x", "text"),
        ({"kind": "write"}, "Write ?", "", "text"),
        ({"kind": "read", "path": "a"}, "Read a?", "", "text"),
        ({"kind": "read"}, "Read ?", "", "text"),
        ({"kind": "url", "url": "https://a"}, "Open https://a?", "", "text"),
        ({"kind": "url"}, "Open ?", "", "text"),
        ({"kind": "memory", "fact": "Tabs."}, "Remember this?", "Tabs.", "text"),
        ({"kind": "memory"}, "Remember this?", "", "text"),
        (
            {"kind": "mcp", "toolName": "t", "serverName": "s", "args": ARGS},
            "Call t of the MCP server s?",
            SHOWN_ARGS,
            "json",
        ),
        ({"kind": "mcp"}, "Call  of the MCP server ?", "", "text"),
        (
            {"kind": "custom-tool", "toolName": "t", "args": ARGS},
            "Use the tool t?",
            SHOWN_ARGS,
            "json",
        ),
        ({"kind": "unheard-of"}, "Use the tool ?", "", "text"),
        ({}, "Use the tool ?", "", "text"),
    ],
)
def test_a_request_is_shown_as_a_question_and_what_it_is_about(
    request_: dict[str, Any], question: str, text: str, form: str
) -> None:
    shown = show_request(request_)
    assert (shown.question, shown.text, shown.form) == (question, text, form)


def fields(access: Access, analysis: Any = None) -> Any:
    return find_kind(access).fields(access, PENDING, analysis)


def test_the_fields_of_each_kind() -> None:
    assert fields(Access(kind="read", target="a")) == {"path": "a"}
    assert fields(Access(kind="url", target="u")) == {"url": "u"}
    assert fields(Access(kind="memory", target="f")) == {"fact": "f"}
    assert fields(Access(kind="write", target="a")) == {
        "fileName": "a",
        "diff": "",
        "canOfferSessionApproval": True,
    }
    described = {
        "toolName": "t",
        "args": ARGS,
        "toolDescription": "Says what it was given.",
    }
    assert fields(Access(kind="custom-tool", target="t")) == described
    assert fields(Access(kind="custom-tool")) == described | {"toolName": "echo"}
    for target, mutates in (("t", True), ("", False)):
        assert fields(Access(kind="mcp", target=target, mutates=mutates)) == {
            "toolName": target or "echo",
            "toolTitle": target or "echo",
            "args": ARGS,
            "serverName": "",
            "readOnly": not mutates,
        }


def test_a_request_about_a_command_warns_of_its_first_three_dangers() -> None:
    access = Access(kind="shell", target="ls")
    assert fields(access) == {"fullCommandText": "ls"}
    plain = fields(access, analyse("ls", "/srv", ""))
    assert plain["commands"] == [{"identifier": "ls", "readOnly": True}]
    assert "warning" not in plain
    risky = analyse("rm -rf / ; $x; tar --to-command=y xf z; `a`", "/srv", "")
    reasons = [*risky.destructive, *risky.hazards, *risky.dynamic]
    reasons += [risky.problem] if risky.problem else []
    assert len(reasons) > 1
    assert fields(access, risky)["warning"] == "; ".join(reasons[:3])
