"""The history of a session: cut back, or compacted."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.codec import decode, peek
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionSnapshotRewind
from trimtab.contracts.events.user import UserMessage
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class EventId(msgspec.Struct, rename="camel"):
    event_id: str


@methods.on("session.history.truncate", EventId)
async def truncate(call: Call, params: EventId) -> JsonObject:
    """Removes the event and everything after it; the removed part is kept aside on disk."""
    live = call.session.live
    if live.busy:
        raise UsageError("The agent is working; abort it before you cut the history.")
    removed = live.cut(params.event_id)
    live.emit(SessionSnapshotRewind(up_to_event_id=params.event_id, events_removed=removed))
    return {"eventsRemoved": removed}


@methods.on("session.history.listRewindPoints")
async def list_rewind_points(call: Call, params: Nothing) -> JsonObject:
    points: list[JsonObject] = []
    for line in call.session.live.read_events():
        if peek(line).type != "user.message":
            continue
        event = decode(bytes(line))
        if isinstance(event.data, UserMessage) and event.data.source is None:
            points.append(
                {
                    "eventId": event.id,
                    "timestamp": event.timestamp,
                    "userMessage": event.data.content,
                    "isAutopilotContinuation": False,
                    "canRestoreFiles": False,
                    "turnChangedFiles": False,
                    "fileCount": 0,
                    "linesAdded": 0,
                    "linesRemoved": 0,
                }
            )
    return {"fileChangeTrackingEnabled": False, "points": points}


class Compact(msgspec.Struct, rename="camel"):
    custom_instructions: str | None = None


@methods.on("session.history.compact", Compact)
async def compact(call: Call, params: Compact) -> JsonObject:
    """Replaces the conversation by a summary and what must not be lost."""
    outcome = await call.session.live.compact(params.custom_instructions or "")
    reply: JsonObject = {
        "success": outcome.success,
        "messagesRemoved": outcome.messages_removed,
        "tokensRemoved": outcome.tokens_removed,
    }
    if outcome.summary:
        reply["summaryContent"] = outcome.summary
    return reply


@methods.on("session.history.cancelBackgroundCompaction")
async def cancel_compaction(call: Call, params: Nothing) -> JsonObject:
    return {"cancelled": False}


@methods.on("session.history.abortManualCompaction")
async def abort_compaction(call: Call, params: Nothing) -> JsonObject:
    return {"aborted": False}
