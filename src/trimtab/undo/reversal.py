"""Reverses the changes of a path, last first, and merges later changes of others."""

from collections.abc import Iterable

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.undo.blobs import BlobStore
from trimtab.undo.git_state import is_git_state
from trimtab.undo.merge import merge

TOO_LARGE = "it was too large to be kept"


class Conflict(Exception):
    """Raised when reversing a change would lose the work of somebody else; says why."""


def reverse(
    changes: Iterable[Change], current: FileState, store: BlobStore
) -> tuple[FileState, str]:
    """Return the state of a path without these changes (given in order), and any problem.

    With a problem, the path stays as it is. But a path that is gone is restored to its last state:
    the undo may remove the place it was moved to, with the work of others.
    """
    state = current
    for change in reversed(list(changes)):
        try:
            state = reverse_change(change, state, store)
        except Conflict as conflict:
            return state if current.kind == "absent" else current, str(conflict)
        except OSError as error:
            return current, f"its kept copy cannot be read ({error.strerror or error})"
    return state, ""


def reverse_change(change: Change, current: FileState, store: BlobStore) -> FileState:
    """Return the state before a change. Raises `Conflict`, and `OSError` if a copy is lost."""
    before, after = change.before, change.after
    if before in (current, after):
        return current
    if current == after:
        if not (before.is_kept and after.is_kept):
            raise Conflict(TOO_LARGE)
        return before
    if current.kind == "absent" or "directory" in (current.kind, after.kind):
        return _reverse_around(before, after, current)
    if after.kind == "absent":
        raise Conflict("something else has been put there since")
    if before.kind == "absent":
        raise Conflict("it was created here and has been changed by somebody else since")
    if not current.kind == after.kind == before.kind == "file" or is_git_state(change.path):
        raise Conflict("it has been changed by somebody else since")
    return _merge(before, after, current, store)


def _reverse_around(before: FileState, after: FileState, current: FileState) -> FileState:
    """Reverse a change of a path that was deleted since, or of a directory."""
    if current.kind == "absent":
        return ABSENT
    if current.kind != "directory":
        raise Conflict("something else has been put there since")
    if after.kind == "directory" and before.kind == "absent":
        return ABSENT
    if before.kind == "directory":
        return current
    raise Conflict("a directory has been put there since")


def _merge(before: FileState, after: FileState, current: FileState, store: BlobStore) -> FileState:
    mode = before.mode if current.mode == after.mode else current.mode
    if current.digest and current.digest in (after.digest, before.digest):
        digest, size = before.digest, before.size
        if not digest:
            raise Conflict(TOO_LARGE)
        return FileState(kind="file", mode=mode, digest=digest, size=size)
    if not (before.digest and after.digest and current.digest):
        raise Conflict("it has been changed by somebody else since, and it is too large to merge")
    merged = merge(store.get(after.digest), store.get(current.digest), store.get(before.digest))
    if merged is None:
        raise Conflict("the same lines have been changed by somebody else since")
    return FileState(kind="file", mode=mode, digest=store.put(merged), size=len(merged))
