"""What a session did to files, read from its log."""

from collections.abc import Iterable, Iterator

import msgspec

from trimtab.contracts.changes import Change
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.contracts.events.codec import decode
from trimtab.session.record import Record
from trimtab.session.records import begins_turn
from trimtab.undo.blobs import BlobStore

INLINE = 200
"""A longer list of changes is kept in a blob, and only its digest in the log."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One event of changes, with the turn (from 1) and the sub-agent it happened in."""

    event_id: str
    timestamp: str
    turn: int
    agent_id: str | None = None
    said: WorkspaceChanged
    changes: tuple[Change, ...]


def build_event(
    said: WorkspaceChanged, changes: Iterable[Change], store: BlobStore
) -> WorkspaceChanged:
    """The event for these changes, its list in the log or in a blob."""
    listed = list(changes)
    if len(listed) <= INLINE:
        return msgspec.structs.replace(said, changes=listed, count=len(listed))
    digest = store.put(msgspec.json.encode(listed))
    return msgspec.structs.replace(said, list_digest=digest, count=len(listed))


def read_changes(records: Iterable[Record], store: BlobStore) -> Iterator[Recorded]:
    """Every recorded change, in order. Raises `OSError` when a list has been lost."""
    turn = 0
    for record in records:
        turn += begins_turn(record)
        if record.type != WorkspaceChanged.wire_name:
            continue
        event = decode(record.line)
        said = event.data
        if isinstance(said, WorkspaceChanged):
            yield Recorded(
                event_id=record.id,
                timestamp=record.timestamp,
                turn=turn,
                agent_id=event.agent_id,
                said=said,
                changes=changes_of(said, store),
            )


def changes_of(said: WorkspaceChanged, store: BlobStore) -> tuple[Change, ...]:
    if said.list_digest is None:
        return tuple(said.changes)
    return tuple(msgspec.json.decode(store.get(said.list_digest), type=list[Change]))
