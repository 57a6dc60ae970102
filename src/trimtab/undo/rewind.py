"""Rewinds a session to before a turn: the conversation, the files, or both."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from trimtab.contracts.changes import Change
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.own import PromptWithdrawn
from trimtab.contracts.events.session import SessionSnapshotRewind
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.text import count
from trimtab.session.folder import SessionFolder
from trimtab.session.record import Record as LogRecord
from trimtab.session.records import begins_turn, read_records
from trimtab.session.session import Session
from trimtab.undo.blobs import BlobStore
from trimtab.undo.file_index import changes_by_turn, count_change
from trimtab.undo.history import (
    FileHistory,
    Plan,
    Record,
    UndoRequest,
)

Mode = Literal["conversation", "files", "both"]


class Point(msgspec.Struct, frozen=True):
    """A rewind point: the beginning of a turn."""

    turn: int
    event_id: str
    message_id: str
    timestamp: str
    text: str


class Rewound(msgspec.Struct, frozen=True):
    """The result of a rewind."""

    events_removed: int
    plan: Plan | None


def list_points(log: str) -> list[Point]:
    """Return the rewind points of a session."""
    starts: list[LogRecord] = [record for record in read_records(log) if begins_turn(record)]
    return [_point(turn, record) for turn, record in enumerate(starts, 1)]


def find_point(log: str, turn: int) -> Point:
    points = list_points(log)
    if not 1 <= turn <= len(points):
        raise UsageError(f"The session has {count(len(points), 'turn')}; choose one of them.")
    return points[turn - 1]


def point_of(log: str, event_id: str) -> Point:
    """Return the rewind point of an event."""
    for point in list_points(log):
        if point.event_id == event_id:
            return point
    raise UsageError(f"{event_id!r} is not a rewind point; choose the event of a prompt.")


class Effect(msgspec.Struct, frozen=True):
    """The effect of turns on a file, in the protocol's terms."""

    path: str
    change_type: Literal["created", "deleted", "modified"]
    lines_added: int
    lines_removed: int


def list_effects(folder: SessionFolder, store: BlobStore) -> dict[int, list[Effect]]:
    """Return the effects of each turn on files."""
    turns = changes_by_turn(folder.events, store)
    return {turn: [_effect(change, store) for change in changes] for turn, changes in turns.items()}


def effects_since(folder: SessionFolder, store: BlobStore, turn: int) -> list[Effect]:
    """Return the combined effects of a turn and all later turns."""
    merged: dict[str, Change] = {}
    for number, changes in changes_by_turn(folder.events, store).items():
        for change in changes if number >= turn else ():
            first = merged.get(change.os_path, change)
            merged[change.os_path] = Change.at(change.os_path, first.before, change.after)
    return [_effect(change, store) for change in merged.values() if change.before != change.after]


def _effect(change: Change, store: BlobStore) -> Effect:
    kind: Literal["created", "deleted", "modified"] = "modified"
    if change.before.kind == "absent":
        kind = "created"
    elif change.after.kind == "absent":
        kind = "deleted"
    return Effect(change.path, kind, *count_change(change, store))


def rewind(
    session: Session, history: FileHistory, record: Record, target: tuple[Point, Mode]
) -> Rewound:
    """Rewind to before a turn. Files with a conflict stay as they are, and the plan says so.

    The file changes of removed turns stay recorded, so that they can still be undone or redone.
    """
    point, mode = target
    done: list[tuple[WorkspaceChanged, Sequence[Change]]] = []
    plan: Plan | None = None
    if mode != "conversation":
        keep = FileHistory(history.folder, history.store, lambda *event: done.append(event))
        plan = keep.apply(keep.plan_undo(UndoRequest(turn=point.turn, since=True)))
    removed = 0
    if mode != "files":
        kept = [entry for entry in history.recorded() if entry.turn >= point.turn]
        if mode == "conversation":
            done = [(entry.event, entry.changes) for entry in kept]
        removed = session.truncate(point.event_id)
        session.emit(SessionSnapshotRewind(up_to_event_id=point.event_id, events_removed=removed))
        if point.message_id:
            session.emit(PromptWithdrawn(message_id=point.message_id, reason="rewind"))
    for event, changes in done:
        record(event, changes)
    return Rewound(removed, plan)


def _point(turn: int, record: LogRecord) -> Point:
    data = decode(record.line).data
    text, message_id = "", ""
    if isinstance(data, UserMessage):
        text, message_id = data.content, data.message_id or ""
    return Point(turn, record.id, message_id, record.timestamp, text)
