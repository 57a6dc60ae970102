"""Reads and builds the events that record a session's changes to files."""

from collections.abc import Iterable, Iterator

import msgspec

from trimtab.contracts.changes import Change
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.contracts.events.codec import decode
from trimtab.session.record import Record
from trimtab.session.records import begins_turn
from trimtab.undo.blobs import BlobStore

INLINE = 200
"""A longer list of changes is stored in a blob, with only its digest in the log."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded change event, with its turn (from 1) and sub-agent."""

    event_id: str
    timestamp: str
    turn: int
    agent_id: str | None = None
    event: WorkspaceChanged
    changes: tuple[Change, ...]


def build_event(
    event: WorkspaceChanged, changes: Iterable[Change], store: BlobStore
) -> WorkspaceChanged:
    """Return the event with these changes, listed in the event or in a blob."""
    listed = list(changes)
    if len(listed) <= INLINE:
        return msgspec.structs.replace(event, changes=listed, count=len(listed))
    digest = store.put(msgspec.json.encode(listed))
    return msgspec.structs.replace(event, list_digest=digest, count=len(listed))


def read_changes(records: Iterable[Record], store: BlobStore) -> Iterator[Recorded]:
    """Yield every recorded change, in order. Raises `OSError` if a list has been lost."""
    turn = 0
    for record in records:
        turn += begins_turn(record)
        if record.type != WorkspaceChanged.wire_name:
            continue
        decoded = decode(record.line)
        event = decoded.data
        if isinstance(event, WorkspaceChanged):
            yield Recorded(
                event_id=record.id,
                timestamp=record.timestamp,
                turn=turn,
                agent_id=decoded.agent_id,
                event=event,
                changes=changes_of(event, store),
            )


def changes_of(event: WorkspaceChanged, store: BlobStore) -> tuple[Change, ...]:
    if event.list_digest is None:
        return tuple(event.changes)
    return tuple(msgspec.json.decode(store.get(event.list_digest), type=list[Change]))
