"""The readable transcript of a log."""

import json
from typing import Any

import pytest

from trimtab.session.record import parse_record
from trimtab.session.transcript import Entry, plain_event, read_transcript


def entries(*events: tuple[str, Any], agent: str | None = None) -> list[Entry]:
    records = []
    for kind, data in events:
        event = {"type": kind, "data": data, "id": "1", "timestamp": "t", "parentId": None}
        record = parse_record(json.dumps(event | ({"agentId": agent} if agent else {})).encode(), 0)
        assert record is not None
        records.append(record)
    return list(read_transcript(records))


def test_events_that_nobody_reads_are_passed() -> None:
    prompt: tuple[str, Any] = ("user.message", {"content": "x"})
    other: tuple[str, Any] = ("session.idle", {})
    assert [entry.text for entry in entries(other, prompt, other, prompt)] == ["x", "x"]
    assert Entry("note", "Error", "x") == Entry("note", "Error", "x", "", None, failed=False)


def brief(*events: tuple[str, Any]) -> list[tuple[str, str, str]]:
    return [(entry.kind, entry.heading, entry.text) for entry in entries(*events)]


def test_an_entry_has_the_time_and_agent_of_its_event() -> None:
    assert entries(("user.message", {"content": "x"}), agent="a") == [
        Entry("user", "User", "x", "t", "a", False)
    ]


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (("user.message", {"content": ""}), [("user", "User", "")]),
        (("user.message", {"content": "", "isAutopilotContinuation": True}), []),
        (
            ("user.message", {"content": "go", "isAutopilotContinuation": True}),
            [("user", "User", "go")],
        ),
        (
            (
                "user.message",
                {
                    "content": "see",
                    "attachments": [
                        {"path": "/p", "displayName": "n", "type": "file"},
                        {"displayName": "n", "type": "file"},
                        {"type": "blob"},
                        "odd",
                    ],
                },
            ),
            [
                ("user", "User", "see"),
                ("note", "Attachment", "/p"),
                ("note", "Attachment", "n"),
                ("note", "Attachment", "blob"),
            ],
        ),
        (
            ("assistant.message", {"content": "yes", "reasoningText": "hm"}),
            [("reasoning", "Reasoning", "hm"), ("assistant", "Assistant", "yes")],
        ),
        (("assistant.message", {"content": ""}), []),
        (("session.error", {"message": "bad"}), [("note", "Error", "bad")]),
        (("session.warning", {}), [("note", "Warning", "")]),
        (("session.model_change", {"newModel": "m"}), [("note", "Model", "m")]),
        (("session.mode_changed", {"newMode": "plan"}), [("note", "Mode", "plan")]),
        (("session.task_complete", {"summary": "s"}), [("note", "Task complete", "s")]),
        (
            ("session.task_complete", {"summary": "", "reason": "r"}),
            [("note", "Task complete", "r")],
        ),
        (
            ("subagent.started", {"agentDisplayName": "D", "agentName": "n"}),
            [("note", "Sub-agent", "D")],
        ),
        (("subagent.started", {"agentName": "n"}), [("note", "Sub-agent", "n")]),
        (("abort", {"reason": {"a": 1}}), [("note", "Stopped", '{\n  "a": 1\n}')]),
        (("session.idle", {}), []),
        (("user.message", 5), []),
    ],
)
def test_events_become_entries(event: tuple[str, Any], found: list[tuple[str, str, str]]) -> None:
    assert brief(event) == found


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"command": "ls -l"}, "ls -l"),
        ({"command": 5}, '{\n  "command": 5\n}'),
        ({"a": "x", "b": "y"}, '{\n  "a": "x",\n  "b": "y"\n}'),
        ({}, "{}"),
        ("as text é", "as text é"),
        (["é"], '[\n  "é"\n]'),
        (None, ""),
    ],
)
def test_a_single_text_is_shown_as_it_is_and_others_as_json(arguments: Any, text: str) -> None:
    call = {"toolCallId": "1", "toolName": "bash", "arguments": arguments}
    assert brief(("tool.execution_start", call)) == [("call", "bash", text)]


@pytest.mark.parametrize(
    ("fields", "text", "failed"),
    [
        ({"success": True, "result": {"content": "c", "detailedContent": "d"}}, "d", False),
        ({"success": True, "result": {"content": "c", "detailedContent": ""}}, "c", False),
        ({"success": True, "result": "plain"}, "plain", False),
        ({"success": True, "error": {"message": "m"}}, "", False),
        ({"success": False, "error": {"message": "m", "content": "c"}}, "m", True),
        ({"success": False, "result": {"content": "c"}}, "", True),
        ({"result": {"content": "c"}}, "c", False),
    ],
)
def test_a_result_is_named_for_its_call_once(
    fields: dict[str, Any], text: str, failed: bool
) -> None:
    start = ("tool.execution_start", {"toolCallId": "1", "toolName": "bash"})
    done = ("tool.execution_complete", {"toolCallId": "1", **fields})
    _, result, again = entries(start, done, done)
    assert (result.heading, result.text, result.failed) == ("bash", text, failed)
    assert (again.heading, again.failed) == ("tool", failed)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b'{"a":1}', {"a": 1}),
        (b'{"a":NaN}', None),
        (b'{"a":"raw \x01"}', {"a": "raw \x01"}),
        (b'{"a":"\\ud800"}', {"a": "\ud800"}),
        (b"[1]", {}),
        (b"rubbish", {}),
        (b"\xff", {}),
        (b"[" * 100_000, {}),
    ],
)
def test_an_event_is_read_whoever_wrote_it(line: bytes, event: dict[str, Any] | None) -> None:
    found = plain_event(line)
    assert list(found) == ["a"] if event is None else found == event
