"""Goes back to before a turn: in the conversation, in the files, or in both."""

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
    Wish,
)

Mode = Literal["conversation", "files", "both"]


class Point(msgspec.Struct, frozen=True):
    """The beginning of a turn, to which one can go back."""

    turn: int
    event_id: str
    message_id: str
    timestamp: str
    text: str


class Rewound(msgspec.Struct, frozen=True):
    """What going back did."""

    events_removed: int
    plan: Plan | None


def list_points(log: str) -> list[Point]:
    """Every turn of a session."""
    starts: list[LogRecord] = [record for record in read_records(log) if begins_turn(record)]
    return [_point(turn, record) for turn, record in enumerate(starts, 1)]


def find_point(log: str, turn: int) -> Point:
    points = list_points(log)
    if not 1 <= turn <= len(points):
        raise UsageError(f"The session has {len(points)} turns; choose one of them.")
    return points[turn - 1]


def point_of(log: str, event_id: str) -> Point:
    """The turn that begins with an event."""
    for point in list_points(log):
        if point.event_id == event_id:
            return point
    raise UsageError(f"{event_id!r} begins no turn of this session; choose a rewind point.")


class Effect(msgspec.Struct, frozen=True):
    """What some turns did to one file, in the words of the protocol."""

    path: str
    change_type: Literal["created", "deleted", "modified"]
    lines_added: int
    lines_removed: int


def list_effects(folder: SessionFolder, store: BlobStore) -> dict[int, list[Effect]]:
    """What each turn did to files."""
    turns = changes_by_turn(folder.events, store)
    return {turn: [_effect(change, store) for change in changes] for turn, changes in turns.items()}


def effects_since(folder: SessionFolder, store: BlobStore, turn: int) -> list[Effect]:
    """What a turn and all later ones did together."""
    merged: dict[str, Change] = {}
    for number, changes in changes_by_turn(folder.events, store).items():
        for change in changes if number >= turn else ():
            first = merged.get(change.place, change)
            merged[change.place] = Change.at(change.place, first.before, change.after)
    return [_effect(change, store) for change in merged.values() if change.before != change.after]


def _effect(change: Change, store: BlobStore) -> Effect:
    kind: Literal["created", "deleted", "modified"] = "modified"
    if change.before.kind == "absent":
        kind = "created"
    elif change.after.kind == "absent":
        kind = "deleted"
    return Effect(change.path, kind, *count_change(change, store))


def rewind(
    session: Session, history: FileHistory, record: Record, wish: tuple[Point, Mode]
) -> Rewound:
    """Go back to before a turn. Files with a conflict stay as they are, and the plan says so.

    What the removed turns did to files stays recorded, so that it can still be undone or redone.
    """
    point, mode = wish
    done: list[tuple[WorkspaceChanged, Sequence[Change]]] = []
    plan: Plan | None = None
    if mode != "conversation":
        keep = FileHistory(history.folder, history.store, lambda *said: done.append(said))
        plan = keep.apply(keep.plan_undo(Wish(turn=point.turn, since=True)))
    removed = 0
    if mode != "files":
        kept = [one for one in history.recorded() if one.turn >= point.turn]
        if mode == "conversation":
            done = [(one.said, one.changes) for one in kept]
        removed = session.truncate(point.event_id)
        session.emit(SessionSnapshotRewind(up_to_event_id=point.event_id, events_removed=removed))
        if point.message_id:
            session.emit(PromptWithdrawn(message_id=point.message_id, reason="rewind"))
    for said, changes in done:
        record(said, changes)
    return Rewound(removed, plan)


def _point(turn: int, record: LogRecord) -> Point:
    data = decode(record.line).data
    text, message_id = "", ""
    if isinstance(data, UserMessage):
        text, message_id = data.content, data.message_id or ""
    return Point(turn, record.id, message_id, record.timestamp, text)
