"""Sums of the file edits that tools reported."""

from typing import Any

from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.session.projections.changes import CodeChanges


def test_edits_add_up_and_files_are_listed_once_in_order() -> None:
    changes = CodeChanges()
    assert (changes.lines_added, changes.lines_removed, changes.files) == (0, 0, [])
    edits: list[dict[str, Any]] = [
        {"path": "b.py", "linesAdded": 3, "linesRemoved": 1},
        {"path": "a.py", "linesAdded": 20},
        {"path": "b.py", "linesRemoved": 500},
        {"path": "c.py"},
    ]
    done: list[EventData] = [
        ToolExecutionComplete(tool_call_id="c", success=True, file_edits=edits[:2]),
        ToolExecutionComplete(tool_call_id="c", success=True),
        ToolExecutionStart(tool_call_id="c", tool_name="edit"),
        ToolExecutionComplete(tool_call_id="c", success=True, file_edits=edits[2:]),
    ]
    for data in done:
        changes.apply(Event(type=data.wire_name, data=data, id="", timestamp="", parent_id=None))
    assert (changes.lines_added, changes.lines_removed) == (23, 501)
    assert changes.files == ["b.py", "a.py", "c.py"]
