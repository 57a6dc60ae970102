"""The history of a session: cut back, or compacted."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionSnapshotRewind
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.undo.history import TOO_LARGE
from trimtab.undo.rewind import (
    Mode,
    effects_since,
    list_effects,
    list_points,
    point_of,
)

methods = Methods()


class EventId(msgspec.Struct, rename="camel"):
    event_id: str


@methods.on("session.history.truncate", EventId)
async def truncate(call: Call, params: EventId) -> JsonObject:
    """Removes the event and everything after it; the removed part is kept aside on disk."""
    live = call.session.live
    if live.busy:
        raise UsageError("The agent is working; abort it before you cut the history.")
    removed = live.truncate(params.event_id)
    live.emit(SessionSnapshotRewind(up_to_event_id=params.event_id, events_removed=removed))
    return {"eventsRemoved": removed}


@methods.on("session.history.listRewindPoints")
async def list_rewind_points(call: Call, params: Nothing) -> JsonObject:
    live = call.session.live
    effects = list_effects(live.folder, live.recorder.store)
    points: list[JsonObject] = []
    for point in list_points(live.folder.events):
        later = {one.path for turn, ones in effects.items() if turn >= point.turn for one in ones}
        own = effects.get(point.turn, [])
        points.append(
            {
                "eventId": point.event_id,
                "timestamp": point.timestamp,
                "userMessage": point.text,
                "isAutopilotContinuation": False,
                "canRestoreFiles": bool(later),
                "turnChangedFiles": bool(own),
                "fileCount": len(later),
                "linesAdded": sum(one.lines_added for one in own),
                "linesRemoved": sum(one.lines_removed for one in own),
            }
        )
    return {"fileChangeTrackingEnabled": True, "points": points}


@methods.on("session.history.previewRewind", EventId)
async def preview_rewind(call: Call, params: EventId) -> JsonObject:
    """What the turns that would be removed did to files."""
    live = call.session.live
    point = point_of(live.folder.events, params.event_id)
    files: list[JsonObject] = [
        {
            "path": one.path,
            "changeType": one.change_type,
            "linesAdded": one.lines_added,
            "linesRemoved": one.lines_removed,
        }
        for one in effects_since(live.folder, live.recorder.store, point.turn)
    ]
    reply: JsonObject = {"available": not live.busy, "fileCount": len(files), "files": files}
    return {**reply, "reason": "session-busy"} if live.busy else reply


class Rewind(msgspec.Struct, rename="camel"):
    event_id: str
    mode: str = "conversation"


@methods.on("session.history.rewind", Rewind)
async def rewind(call: Call, params: Rewind) -> JsonObject:
    """Goes back to before a turn; files that somebody else changed since are skipped."""
    live = call.session.live
    if live.busy:
        return {"outcome": "session-busy", "restoredFiles": [], "skippedFiles": []}
    mode: Mode = "conversation" if params.mode == "conversation" else "both"
    done = live.rewind(point_of(live.folder.events, params.event_id), mode)
    files = done.plan.files if done.plan else ()
    skipped = [
        {
            "path": one.path,
            "reason": "skipped-capture" if one.problem == TOO_LARGE else "user-modified",
        }
        for one in files
        if one.problem
    ]
    return {
        "outcome": "success",
        "eventsRemoved": done.events_removed,
        "restoredFiles": [one.path for one in files if one.is_needed],
        "skippedFiles": skipped,
    }


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


@methods.on("session.history.summarizeForHandoff")
async def summarize(call: Call, params: Nothing) -> JsonObject:
    """What somebody needs to go on: the person's words, the plan, the todos, the changed files."""
    from trimtab.agents.carryover import SessionCarryover

    live = call.session.live
    keeper = SessionCarryover(live.folder, live.projections.changes, "", _nobody)
    return {"summary": await keeper.carry(HANDOFF)}


async def _nobody() -> None:
    """No model is asked: the summary is what is written down already."""


HANDOFF = 40_000
"""Characters of a summary."""
