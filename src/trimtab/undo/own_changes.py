"""The session's own changes to files, without the edits that others made meanwhile."""

from collections.abc import Iterable

import msgspec

from trimtab.contracts.changes import FileState
from trimtab.undo.blobs import BlobStore
from trimtab.undo.changes import Recorded
from trimtab.undo.merge import merge

MAX_BYTES = 1 << 20
"""The size above which a file is named but not compared."""


class OwnChange(msgspec.Struct):
    """A file that the session changed, before and after, with the edits of others in both.

    The texts are None for a file that is too large or was lost. `mixed` is true if edits of others
    touch the session's own, so that they cannot be told apart.
    """

    path: str
    first: FileState
    """Its state before the session changed it."""
    last: FileState
    before: bytes | None
    after: bytes | None = None
    mixed: bool = False

    def take_in(self, earlier: FileState, later: FileState, store: BlobStore) -> None:
        """Let an edit of somebody else count as if it had been there from the start."""
        old, new = read_text(earlier, store), read_text(later, store)
        merged = None
        if self.before is not None and old is not None and new is not None:
            merged = merge(old, self.before, new)
        if merged is None:
            self.mixed = True
        else:
            self.before = merged


def list_own_changes(recorded: Iterable[Recorded], store: BlobStore) -> list[OwnChange]:
    """Return the files that the session changed, in the order of their first change."""
    found: dict[str, OwnChange] = {}
    for entry in recorded:
        for change in entry.changes:
            path, own = change.os_path, entry.event.reason != "person"
            if own and path not in found:
                before = read_text(change.before, store)
                found[path] = OwnChange(path, change.before, change.after, before)
            elif not own and path in found:
                found[path].take_in(change.before, change.after, store)
            if path in found:
                found[path].last = change.after
    for own_change in found.values():
        own_change.after = read_text(own_change.last, store)
    return [
        change
        for change in found.values()
        if change.before != change.after
        or change.first.kind != change.last.kind
        or (change.after is None and change.first != change.last)
    ]


def read_text(state: FileState, store: BlobStore) -> bytes | None:
    """Return what a file held, nothing if it did not exist; None if it cannot be compared."""
    if state.kind != "file":
        return b""
    if not state.digest or state.size > MAX_BYTES:
        return None
    try:
        return store.get(state.digest)
    except OSError:
        return None
