"""Finds the files that other sessions wrote, not to attribute them to this session's commands."""

import os
import time
from contextlib import suppress

from trimtab.session.folder import SessionFolder
from trimtab.session.records import read_records
from trimtab.undo.blobs import BlobStore
from trimtab.undo.changes import read_changes

Written = frozenset[tuple[str, str]]
"""Paths with the digest of the content written there."""


def written_by_others(folder: SessionFolder) -> Written:
    """Return what tools of other sessions wrote since a session began."""
    first = next(read_records(folder.events), None)
    since = first.timestamp[:19] if first else ""
    found: set[tuple[str, str]] = set()
    base = os.path.dirname(folder.path)
    for name in os.listdir(base) if first else ():
        other = SessionFolder(name, os.path.join(base, name))
        with suppress(OSError):  # no log, or a list of changes has been deleted by hand
            if name != folder.id and _has_changes_since(other.events, since):
                found |= _written(other)
    return frozenset(found)


def _has_changes_since(log: str, since: str) -> bool:
    """Return True if a log was written since then and records changes. Raises `OSError`."""
    used = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(os.stat(log).st_mtime))
    if used < since:
        return False
    with open(log, "rb") as file:
        return any(b"trimtab.workspace_changed" in line for line in file)


def _written(other: SessionFolder) -> set[tuple[str, str]]:
    """Return what the tools of a session wrote. Raises `OSError`."""
    recorded = read_changes(read_records(other.events), BlobStore(other.blobs))
    return {
        (change.os_path, change.after.digest)
        for entry in recorded
        if entry.event.reason == "tool"
        for change in entry.changes
        if change.after.digest
    }
