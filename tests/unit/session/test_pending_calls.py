"""Calls that waited for a client when a session ended."""

from pathlib import Path
from typing import Any

import pytest

from logkit import chain, joined
from trimtab.session.pending_calls import waiting_calls

Events = list[tuple[str, dict[str, Any]]]


def asked(request: str, call: str) -> tuple[str, dict[str, Any]]:
    fields = {"requestId": request, "permissionRequest": {"kind": "shell", "toolCallId": call}}
    return "permission.requested", fields


def external(request: str, call: str) -> tuple[str, dict[str, Any]]:
    names = {"requestId": request, "sessionId": "s", "toolCallId": call, "toolName": "t"}
    return "external_tool.requested", {**names, "arguments": {}}


ANSWERED = ("permission.completed", {"requestId": "1", "result": {"kind": "approved"}})
DONE = ("external_tool.completed", {"requestId": "2"})
RESUMED = (
    "session.resume",
    {"resumeTime": "2026-01-01T00:00:00Z", "eventCount": 1},
)
SUSPENDED = ("trimtab.suspended", {"toolCallIds": ["x", "y"]})


@pytest.mark.parametrize(
    ("events", "waiting"),
    [
        ([], set()),
        ([RESUMED], set()),
        ([asked("1", "a"), external("2", "b")], {"a", "b"}),
        ([asked("1", "a"), external("2", "b"), RESUMED], {"a", "b"}),
        ([asked("1", "a"), external("2", "b"), ANSWERED, RESUMED], {"b"}),
        ([asked("1", "a"), external("2", "b"), DONE, RESUMED], {"a"}),
        ([asked("1", "a"), ANSWERED, ANSWERED], set()),
        ([asked("1", "a"), RESUMED, external("2", "b"), RESUMED], {"b"}),
        ([asked("1", "a"), SUSPENDED, RESUMED], {"x", "y"}),
        ([SUSPENDED, RESUMED, asked("1", "a"), RESUMED], {"a"}),
        ([asked("1", "a"), ("trimtab.suspended", {"toolCallIds": []}), RESUMED], set()),
        ([asked("1", "a"), ("user.message", {"content": "x"})], {"a"}),
    ],
)
def test_calls_wait_until_they_are_answered_or_the_session_goes_on(
    tmp_path: Path, events: Events, waiting: set[str]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(joined(chain(events)))
    assert waiting_calls(str(log)) == waiting


def test_a_question_about_no_call_has_no_id(tmp_path: Path) -> None:
    log = tmp_path / "log"
    fields = {"requestId": "1", "permissionRequest": {"kind": "url"}}
    log.write_bytes(joined(chain([("permission.requested", fields)])))
    assert waiting_calls(str(log)) == {""}
