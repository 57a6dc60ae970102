"""Takes changes of one path back, last first, around whatever others have done to it since."""

from collections.abc import Iterable

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.undo.blobs import BlobStore
from trimtab.undo.git_state import is_git_state
from trimtab.undo.merge import merge

TOO_LARGE = "it was too large to be kept"


class Conflict(Exception):
    """A change cannot be taken back without losing what somebody else did; says why."""


def reverse(
    changes: Iterable[Change], current: FileState, store: BlobStore
) -> tuple[FileState, str]:
    """The state a path would have without these changes (given in order), and any problem.

    With a problem the path stays as it is. But a path that is gone now comes back as it last was:
    what undo removes elsewhere, because it was moved there, may hold the work of others.
    """
    state = current
    for change in reversed(list(changes)):
        try:
            state = reverse_one(change, state, store)
        except Conflict as conflict:
            return state if current.kind == "absent" else current, str(conflict)
        except OSError as error:
            return current, f"its kept copy cannot be read ({error.strerror or error})"
    return state, ""


def reverse_one(change: Change, current: FileState, store: BlobStore) -> FileState:
    """The state before one change. Raises `Conflict`, and `OSError` when a copy is lost."""
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
    """The path has been deleted since, or it is a directory: what is in it has its own story."""
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
