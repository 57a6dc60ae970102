"""Finds the canvases that were open when a session ended, to open them again."""

from trimtab.contracts.events.canvas import SessionCanvasRecorded, SessionCanvasRemoved
from trimtab.contracts.events.codec import decode
from trimtab.session.records import read_records

READ = frozenset(("session.canvas.recorded", "session.canvas.removed"))


def recorded_canvases(log: str) -> dict[str, SessionCanvasRecorded]:
    """Return the open canvases by the ids of their instances."""
    found: dict[str, SessionCanvasRecorded] = {}
    for record in read_records(log):
        if record.type not in READ:
            continue
        match decode(record.line).data:
            case SessionCanvasRecorded() as recorded:
                found[recorded.instance_id] = recorded
            case SessionCanvasRemoved(instance_id=instance_id):
                found.pop(instance_id, None)
    return found
