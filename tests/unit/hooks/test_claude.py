"""Hook inputs and outputs in Claude Code's words."""

import pytest

from trimtab.hooks.claude import event_name, read_arguments, read_output, translate


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("agentStop", "Stop"),
        ("userPromptSubmitted", "UserPromptSubmit"),
        ("preToolUse", "PreToolUse"),
        ("sessionStart", "SessionStart"),
    ],
)
def test_events_have_claudes_names(ours: str, theirs: str) -> None:
    assert event_name(ours) == theirs
    assert translate(ours, {})["hook_event_name"] == theirs


def test_an_input_is_sent_with_claudes_fields_tools_and_arguments() -> None:
    payload = {
        "sessionId": "s",
        "cwd": "/w",
        "toolName": "edit",
        "toolArgs": {"path": "a", "old_str": "x", "new_str": "y", "more": 1},
    }
    assert translate("preToolUse", payload) == {
        "session_id": "s",
        "cwd": "/w",
        "tool_name": "Edit",
        "tool_input": {
            "path": "a",
            "old_str": "x",
            "new_str": "y",
            "more": 1,
            "file_path": "a",
            "old_string": "x",
            "new_string": "y",
        },
        "hook_event_name": "PreToolUse",
    }


def test_a_tool_of_a_server_has_claudes_name_for_it() -> None:
    payload = {"toolName": "small-echo", "mcpServerName": "small", "mcpToolName": "echo"}
    assert translate("preToolUse", payload)["tool_name"] == "mcp__small__echo"
    assert translate("preToolUse", {"toolName": "unknown"})["tool_name"] == "unknown"


def test_changed_arguments_come_back_under_our_names() -> None:
    given = {"file_path": "b", "path": "a", "content": "text"}
    assert read_arguments("create", given) == {"path": "b", "file_text": "text"}
    assert read_arguments("bash", {"command": "ls"}) == {"command": "ls"}
    assert read_arguments("bash", None) is None


@pytest.mark.parametrize(
    ("output", "ours"),
    [
        ({"decision": "approve"}, {"decision": "allow"}),
        ({"decision": "block", "reason": "no"}, {"decision": "block", "reason": "no"}),
        (
            {"hookSpecificOutput": {"hookEventName": "x", "updatedInput": {"a": 1}}},
            {"modifiedArgs": {"a": 1}},
        ),
        ({"updatedToolOutput": "x"}, {"modifiedResult": "x"}),
        (
            {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no"}}},
            {"behavior": "deny", "message": "no"},
        ),
    ],
)
def test_an_output_is_read_in_our_words(output: dict[str, object], ours: dict[str, object]) -> None:
    assert read_output(output) == ours
