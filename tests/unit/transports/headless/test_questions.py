"""Permission questions as text: each kind of request has a form of its own."""

from typing import Any

import pytest

from trimtab.transports.headless.questions import describe_request, name_answers, read_answer

REQUESTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "shell": ({"fullCommandText": "rm a\nrm b"}, ["Run this command?", "  $ rm a", "    rm b"]),
    "write": (
        {"fileName": "/w/a.py", "diff": "-old\n+new\n"},
        ["Write /w/a.py?", "  -old", "  +new"],
    ),
    "mcp": (
        {"serverName": "maps", "toolName": "route", "args": {"to": "Rome"}},
        ["Call route of the MCP server maps?", "  {", '    "to": "Rome"', "  }"],
    ),
}


@pytest.mark.proves("PERM-16")
@pytest.mark.parametrize("kind", REQUESTS)
def test_commands_files_and_calls_of_servers_are_asked_about_in_forms_of_their_own(
    kind: str,
) -> None:
    fields, expected = REQUESTS[kind]
    shown = describe_request({"kind": kind, **fields}).split("\n")
    assert [line.rstrip() for line in shown[: len(expected)]] == expected


def test_answers_that_no_rule_covers_are_mistyped_and_longer_texts_are_words() -> None:
    request = {"kind": "shell", "fullCommandText": "x"}
    covered = {**request, "suggestedRules": ["shell(x)"]}
    assert read_answer("2", request, None) is None
    assert name_answers(request) == "1, 4"
    assert name_answers(covered, edits=True) == "1, 2, 3, 4, e"
    assert [getattr(read_answer(key, covered, None), "kind", None) for key in "1234yn7"] == [
        "approve-once",
        "approve-for-session",
        "approve-for-location",
        "reject",
        "approve-once",
        "reject",
        None,
    ]
    rejected = read_answer("use rg instead", covered, None)
    assert rejected is not None
    assert (rejected.kind, rejected.feedback) == ("reject", "use rg instead")


def test_the_checks_of_a_project_can_be_allowed_with_one_key() -> None:
    request = {
        "kind": "shell",
        "fullCommandText": "make test",
        "suggestedRules": ["shell(make test)"],
        "bundle": {
            "title": "the project's checks",
            "rules": ["shell(make test)", "shell(make lint)"],
        },
    }
    shown = describe_request(request)
    assert "  c  yes, allow the project's checks always in this folder:\n" in shown
    assert "     make test, make lint\n" in shown
    assert name_answers(request) == "1, 2, 3, 4, c"
    answer = read_answer("c", request, None)
    assert answer is not None
    assert answer.approval == {
        "kind": "commands",
        "commandIdentifiers": ["make test", "make lint"],
    }
    assert read_answer("c", {"kind": "shell"}, None) is None
