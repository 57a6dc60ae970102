"""Telemetry of a client is its sessions' events without what was said."""

import json
from typing import Any

from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.session import SessionError, SessionShutdown, SessionStart
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.transports.rpc.client_telemetry import ClientTelemetry

SAID = "the words of a person"


def event(data: EventData, second: int = 0) -> Event:
    return Event(
        type=data.wire_name,
        data=data,
        id="id",
        timestamp=f"2030-01-01T00:00:0{second}.000Z",
        parent_id=None,
    )


def describe(*events: Event) -> list[Any]:
    telemetry = ClientTelemetry()
    return [telemetry.describe("S", one) for one in events]


def test_a_start_tells_the_model_and_the_kind_of_folder() -> None:
    context = {"cwd": "/x", "gitRoot": "/x", "hostType": "github"}
    start = SessionStart(
        session_id="S",
        version=1,
        producer="trimtab",
        copilot_version="1",
        start_time="",
        selected_model="m",
        context=context,
    )
    (told,) = describe(event(start))
    assert (told["sessionId"], told["restricted"]) == ("S", False)
    assert told["event"]["kind"] == "session_start"
    properties = told["event"]["properties"]
    assert properties["selected_model"] == "m"
    assert (properties["is_git_repo"], properties["is_github_repo"]) == ("true", "true")
    assert properties["already_in_use"] == "false"
    assert told["event"]["metrics"] == {"version": 1}
    assert "/x" not in json.dumps(told)


def test_nothing_that_was_said_is_told() -> None:
    told = describe(
        event(UserMessage(content=SAID, attachments=[{"displayName": SAID}])),
        event(AssistantMessage(message_id="1", content=SAID, tool_requests=[{"x": SAID}])),
        event(ToolExecutionStart(tool_call_id="c", tool_name="bash", arguments={"x": SAID})),
        event(ToolExecutionComplete(tool_call_id="c", success=True, result={"content": SAID})),
        event(SessionError(error_type="query", message=SAID, status_code=400)),
    )
    assert SAID not in json.dumps(told)
    assert [one and one["event"]["metrics"] for one in told] == [
        {"content_length": len(SAID), "attachment_count": 1},
        {"content_length": len(SAID), "tool_request_count": 1},
        None,
        {"duration_ms": 0},
        {"status_code": 400},
    ]


def test_a_call_is_told_with_its_tool_and_its_time() -> None:
    start = ToolExecutionStart(tool_call_id="c", tool_name="web-x", mcp_server_name="web")
    end = ToolExecutionComplete(tool_call_id="c", success=False)
    _, told = describe(event(start), event(end, second=3))
    assert told["event"]["kind"] == "tool_call_executed"
    assert told["event"]["properties"]["tool_name"] == "web-x"
    assert told["event"]["properties"]["is_mcp_tool"] == "true"
    assert told["event"]["properties"]["result_type"] == "FAILURE"
    assert told["event"]["metrics"] == {"duration_ms": 3000}


def test_the_end_of_a_session_forgets_its_calls() -> None:
    start = ToolExecutionStart(tool_call_id="c", tool_name="bash")
    shutdown = SessionShutdown(
        shutdown_type="routine",
        total_api_duration_ms=1,
        session_start_time=0,
        code_changes={"linesAdded": 2, "linesRemoved": 1},
        model_metrics={"m": {}},
    )
    end = ToolExecutionComplete(tool_call_id="c", success=True)
    _, ended, late = describe(event(start), event(shutdown), event(end))
    assert ended["event"]["metrics"]["lines_added"] == 2
    assert ended["event"]["metrics"]["model_count"] == 1
    assert "tool_name" not in late["event"]["properties"]
