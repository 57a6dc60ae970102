"""Finds the tool calls that waited for a client when a session ended, to resume them."""

from collections.abc import Iterable

from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.own import Suspended
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.tool import ExternalToolCompleted, ExternalToolRequested
from trimtab.session.records import read_records

READ = frozenset(
    (
        "permission.requested",
        "permission.completed",
        "external_tool.requested",
        "external_tool.completed",
        "trimtab.suspended",
        "session.resume",
    )
)


def waiting_calls(log: str) -> set[str]:
    """Return the ids of calls that waited for a client's answer when the session last ended.

    The log ends with the current resumption. A suspended session lists the calls itself; after a
    crash they are the requests without an answer.
    """
    records = [record for record in read_records(log) if record.type in READ]
    if records and records[-1].type == "session.resume":
        records.pop()
    return _fold(record.line for record in records)


def _fold(lines: Iterable[bytes]) -> set[str]:
    waiting: dict[str, str] = {}
    suspended: set[str] | None = None
    for line in lines:
        match decode(line).data:
            case Suspended(tool_call_ids=ids):
                suspended = set(ids)
            case PermissionRequested(request_id=request, permission_request=asked):
                waiting[request] = str(asked.get("toolCallId") or "")
            case ExternalToolRequested(request_id=request, tool_call_id=call):
                waiting[request] = call
            case (
                PermissionCompleted(request_id=request) | ExternalToolCompleted(request_id=request)
            ):
                waiting.pop(request, None)
            case _:  # the session was resumed: earlier calls were settled then
                waiting, suspended = {}, None
    return suspended if suspended is not None else set(waiting.values())
