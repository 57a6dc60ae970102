"""Open permission questions and denied calls."""

from typing import Any

from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.session.projections.approvals import Approvals


def fold(*events: EventData) -> Approvals:
    approvals = Approvals()
    for data in events:
        approvals.apply(
            Event(type=data.wire_name, data=data, id="1", timestamp="t", parent_id=None)
        )
    return approvals


def ran(call: str, name: str, code: str | None = None) -> tuple[EventData, EventData]:
    error: dict[str, Any] | None = {"code": code, "message": f"{code} {call}"} if code else None
    done = ToolExecutionComplete(tool_call_id=call, success=code is None, error=error)
    return ToolExecutionStart(tool_call_id=call, tool_name=name), done


def test_a_question_is_open_until_it_is_answered() -> None:
    asked = PermissionRequested(request_id="q", permission_request={"kind": "shell"})
    assert fold(asked).pending == {"q": {"kind": "shell"}}
    for kind, approved in (("approved", 1), ("approved-for-session", 1), ("denied-by-rules", 0)):
        answered = fold(asked, PermissionCompleted(request_id="q", result={"kind": kind}))
        assert (answered.pending, answered.approved) == ({}, approved)


def test_denied_and_rejected_calls_are_listed_and_other_failures_are_not() -> None:
    calls = (
        *ran("1", "bash", "denied"),
        *ran("2", "edit", "rejected"),
        *ran("3", "view", "failure"),
    )
    found = fold(*calls)
    assert [(one["toolName"], one["toolCallId"]) for one in found.denials] == [
        ("bash", "1"),
        ("edit", "2"),
    ]
    assert found.denials[0]["reason"] == "denied 1"
    assert found.unresolved == {"bash", "edit"}


def test_a_later_success_or_a_new_prompt_resolves_a_denial() -> None:
    denied = ran("1", "bash", "denied")
    assert fold(*denied, *ran("2", "view")).unresolved == {"bash"}
    assert fold(*denied, *ran("2", "bash")).unresolved == set()
    assert fold(*denied, UserMessage(content="go on")).unresolved == set()
    assert fold(*denied, UserMessage(content="x", source="hook")).unresolved == {"bash"}
