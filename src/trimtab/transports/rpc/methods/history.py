"""Truncates, rewinds and compacts the history of a session."""

from importlib.resources import files

import msgspec

from trimtab.agents.carryover import SessionCarryover
from trimtab.contracts.errors import ModelError, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionSnapshotRewind
from trimtab.providers.tokens import counter_for
from trimtab.runtime.live import LiveSession
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
MAX_SUMMARY = 40_000
"""Characters of a summary for a handoff."""


class EventId(msgspec.Struct, rename="camel"):
    event_id: str


@methods.on("session.history.truncate", EventId)
async def truncate(call: Call, params: EventId) -> JsonObject:
    """Remove an event and everything after it; a copy of that part stays on disk."""
    live = call.session.live
    if live.busy:
        raise UsageError("The agent is working; abort it before you truncate the history.")
    removed = live.truncate(params.event_id)
    live.emit(SessionSnapshotRewind(up_to_event_id=params.event_id, events_removed=removed))
    return {"eventsRemoved": removed}


@methods.on("session.history.listRewindPoints")
async def list_rewind_points(call: Call, params: Nothing) -> JsonObject:
    live = call.session.live
    effects = list_effects(live.folder, live.recorder.store)
    points: list[JsonObject] = []
    for point in list_points(live.folder.events):
        later = {
            effect.path
            for turn, changes in effects.items()
            if turn >= point.turn
            for effect in changes
        }
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
                "linesAdded": sum(effect.lines_added for effect in own),
                "linesRemoved": sum(effect.lines_removed for effect in own),
            }
        )
    return {"fileChangeTrackingEnabled": True, "points": points}


@methods.on("session.history.previewRewind", EventId)
async def preview_rewind(call: Call, params: EventId) -> JsonObject:
    """Return the file changes made by the prompts that would be removed."""
    live = call.session.live
    point = point_of(live.folder.events, params.event_id)
    files: list[JsonObject] = [
        {
            "path": effect.path,
            "changeType": effect.change_type,
            "linesAdded": effect.lines_added,
            "linesRemoved": effect.lines_removed,
        }
        for effect in effects_since(live.folder, live.recorder.store, point.turn)
    ]
    reply: JsonObject = {"available": not live.busy, "fileCount": len(files), "files": files}
    return {**reply, "reason": "session-busy"} if live.busy else reply


class Rewind(msgspec.Struct, rename="camel"):
    event_id: str
    mode: str = "conversation"


@methods.on("session.history.rewind", Rewind)
async def rewind(call: Call, params: Rewind) -> JsonObject:
    """Go back to before a prompt; files that were changed since are skipped."""
    live = call.session.live
    if live.busy:
        return {"outcome": "session-busy", "restoredFiles": [], "skippedFiles": []}
    mode: Mode = "conversation" if params.mode == "conversation" else "both"
    done = live.rewind(point_of(live.folder.events, params.event_id), mode)
    files = done.plan.files if done.plan else ()
    skipped = [
        {
            "path": file.path,
            "reason": "skipped-capture" if file.problem == TOO_LARGE else "user-modified",
        }
        for file in files
        if file.problem
    ]
    return {
        "outcome": "success",
        "eventsRemoved": done.events_removed,
        "restoredFiles": [file.path for file in files if file.is_needed],
        "skippedFiles": skipped,
    }


class Compact(msgspec.Struct, rename="camel"):
    custom_instructions: str | None = None


@methods.on("session.history.compact", Compact)
async def compact(call: Call, params: Compact) -> JsonObject:
    """Replace the conversation by a summary."""
    outcome = await call.session.live.compact(params.custom_instructions or "")
    reply: JsonObject = {
        "success": outcome.success,
        "messagesRemoved": outcome.messages_removed,
        "tokensRemoved": outcome.tokens_removed,
    }
    if outcome.summary:
        reply["summaryContent"] = outcome.summary
    return reply | describe_window(call.session.live)


def describe_window(live: LiveSession) -> JsonObject:
    """Return the use of the window by what the next request holds, if a request was measured."""
    found, limit = live.context
    if found is None:
        return {}
    counter, messages = counter_for(live.model), live.projections.conversation.messages
    conversation = sum(map(counter.of, messages))
    window = {
        "tokenLimit": limit,
        "currentTokens": found.system + found.tools + conversation,
        "messagesLength": len(messages),
        "systemTokens": found.system,
        "conversationTokens": conversation,
        "toolDefinitionsTokens": found.tools,
    }
    return {"contextWindow": window}


@methods.on("session.history.cancelBackgroundCompaction")
async def cancel_compaction(call: Call, params: Nothing) -> JsonObject:
    return {"cancelled": False}


@methods.on("session.history.abortManualCompaction")
async def abort_compaction(call: Call, params: Nothing) -> JsonObject:
    return {"aborted": False}


@methods.on("session.history.summarizeForHandoff")
async def summarize(call: Call, params: Nothing) -> JsonObject:
    """Return the model's summary, and the prompts, the plan, the todos and the changed files.

    If the model cannot be asked, those others are the summary, and a warning says so.
    """
    live = call.session.live
    carryover = SessionCarryover(
        live.folder, live.controls.setup.todos, live.projections.changes, "", _ask_no_model
    )
    facts = await carryover.carry(MAX_SUMMARY)
    if not live.projections.conversation.messages:
        return {"summary": facts}
    question = files(__package__).joinpath("handoff.md").read_text("utf-8")
    try:
        told = await live.ask_aside(question)
    except (ModelError, UsageError) as error:
        live.warn("handoff_without_model", f"The model wrote no summary: {error}")
        return {"summary": facts}
    return {"summary": f"{told}\n\n{facts}"}


async def _ask_no_model() -> None:
    """Stand in for the call to a model."""
