"""What an agent does as plain lines, from the events that its log keeps."""

from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.ids import new_id, timestamp
from trimtab.host.agent_lines import AgentLines

START = ToolExecutionStart(tool_call_id="c1", tool_name="bash", arguments={"command": "make"})
ASKED = PermissionRequested(
    request_id="r1",
    permission_request={"kind": "shell", "toolCallId": "c1", "fullCommandText": "make"},
)
APPROVED = PermissionCompleted(request_id="r1", result={"kind": "approved"})


def read(*data: EventData) -> list[str]:
    lines = AgentLines()
    events = [
        Event(
            type=item.wire_name,
            data=item,
            id=new_id(),
            timestamp=timestamp(),
            parent_id=None,
            ephemeral=item.is_ephemeral,
            agent_id="a1",
        )
        for item in data
    ]
    return [line for event in events for line in lines.read(event)]


def test_a_call_that_has_begun_is_told_once_and_not_called_pending() -> None:
    assert read(START) == ["* bash make"]
    assert read(START, ASKED, APPROVED) == ["* bash make", "? waits for an answer"]


def test_a_call_that_fails_is_told_again_with_its_end() -> None:
    failed = ToolExecutionComplete(tool_call_id="c1", success=False, error={"message": "no"})
    assert read(START, failed) == ["* bash make", "* bash make (failed)"]
