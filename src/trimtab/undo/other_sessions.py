"""What other sessions wrote: a command of one session may have been running meanwhile."""

import os
import time

from trimtab.session.folder import SessionFolder
from trimtab.session.records import read_records
from trimtab.undo.blobs import BlobStore
from trimtab.undo.changes import read_changes

Written = frozenset[tuple[str, str]]
"""Paths with the digest of what was written there."""


def written_by_others(folder: SessionFolder) -> Written:
    """What tools of other sessions wrote since a session began."""
    first = next(read_records(folder.events), None)
    found: set[tuple[str, str]] = set()
    base = os.path.dirname(folder.path)
    for name in os.listdir(base) if first else ():
        other = SessionFolder(name, os.path.join(base, name))
        if first and name != folder.id and _may_tell(other.events, first.timestamp[:19]):
            found |= _written(other)
    return frozenset(found)


def _may_tell(log: str, since: str) -> bool:
    """Whether a log has been written to since then, and by what changes files."""
    try:
        used = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(os.stat(log).st_mtime))
        if used < since:
            return False
        with open(log, "rb") as file:
            return any(b"trimtab.workspace_changed" in line for line in file)
    except OSError:
        return False


def _written(other: SessionFolder) -> set[tuple[str, str]]:
    try:
        recorded = list(read_changes(read_records(other.events), BlobStore(other.blobs)))
    except OSError:
        return set()
    return {
        (change.place, change.after.digest)
        for one in recorded
        if one.said.reason == "tool"
        for change in one.changes
        if change.after.digest
    }
