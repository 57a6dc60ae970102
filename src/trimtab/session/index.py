"""The list of changed files in Copilot's layout, `rewind-file-snapshots/`, for other tools."""

import os
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.config.files import make_private_dir, replace_file
from trimtab.contracts.changes import Change, FileState
from trimtab.session.changes import Recorded, read_changes
from trimtab.session.folder import SessionFolder
from trimtab.session.records import read_records
from trimtab.session.turns import begins_turn
from trimtab.workspace.blobs import BlobStore
from trimtab.workspace.merge import count_lines

COUNTED = 1 << 20
"""Lines of larger files are not counted."""
COPIED = 500
"""So many files of a turn are listed; a turn that changed more is an event's business."""


def write_index(folder: SessionFolder, store: BlobStore) -> None:
    """Write `index.json` and the pre-images it names. A cache: it is made from the log."""
    starts = [record.id for record in read_records(folder.events) if begins_turn(record)]
    turns: dict[int, list[Recorded]] = {}
    for one in read_changes(read_records(folder.events), store):
        if one.said.reason != "person":
            turns.setdefault(one.turn, []).append(one)
    target = os.path.join(folder.path, "rewind-file-snapshots")
    backups = os.path.join(target, "backups")
    make_private_dir(backups)
    messages = [
        {
            "eventId": starts[turn - 1] if 0 < turn <= len(starts) else None,
            "timestamp": recorded[0].timestamp,
            "files": [_describe(change, store, backups) for change in merge_changes(recorded)],
        }
        for turn, recorded in turns.items()
    ]
    document = msgspec.json.encode({"schemaVersion": 1, "messages": messages})
    replace_file(os.path.join(target, "index.json"), document)


def merge_changes(recorded: Iterable[Recorded]) -> list[Change]:
    """One change for each path: from what was there first to what was there last."""
    merged: dict[str, Change] = {}
    for one in recorded:
        for change in one.changes:
            first = merged.get(change.place, change)
            merged[change.place] = Change.at(change.place, first.before, change.after)
    return [change for change in merged.values() if change.before != change.after][:COPIED]


def _describe(change: Change, store: BlobStore, backups: str) -> dict[str, Any]:
    added, removed = _count(change, store)
    if change.before.digest:
        with suppress(OSError):
            _back_up(change.before.digest, store, backups)
    return {
        "path": change.path,
        "pathBytes": b64encode(os.fsencode(change.place)).decode(),
        "preImage": _image(change.before),
        "postImage": _image(change.after),
        "linesAdded": added,
        "linesRemoved": removed,
    }


def _image(state: FileState) -> dict[str, Any] | None:
    if state.kind == "absent":
        return None
    return {
        "kind": state.kind,
        "hash": state.digest or None,
        "mode": state.mode,
        "size": state.size,
    }


def _count(change: Change, store: BlobStore) -> tuple[int, int]:
    sides = []
    for state in (change.before, change.after):
        if state.kind != "file" or not state.digest or state.size > COUNTED:
            sides.append(b"")
        else:
            with suppress(OSError):
                sides.append(store.get(state.digest))
    return count_lines(sides[0], sides[1]) if len(sides) == 2 else (0, 0)


def _back_up(digest: str, store: BlobStore, backups: str) -> None:
    path = os.path.join(backups, digest)
    if not os.path.lexists(path):
        replace_file(path, store.get(digest))
