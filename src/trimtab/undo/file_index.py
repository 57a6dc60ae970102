"""Writes the list of changed files in Copilot's layout, `rewind-file-snapshots/`."""

import os
from base64 import b64encode
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.config.files import make_private_dir, replace_file, write_new_file
from trimtab.contracts.changes import Change, FileState
from trimtab.session.folder import SessionFolder
from trimtab.session.records import begins_turn, read_records
from trimtab.undo.blobs import BlobStore
from trimtab.undo.changes import read_changes
from trimtab.undo.merge import count_lines

COUNTED = 1 << 20
"""Lines of larger files are not counted."""
COPIED = 500
"""The limit of files listed per turn; the log has all of them."""


def write_index(folder: SessionFolder, store: BlobStore) -> None:
    """Write `index.json` and the pre-images it names: a cache, made from the log."""
    prompts = (record for record in read_records(folder.events) if begins_turn(record))
    starts = dict(enumerate(prompts, 1))
    target = os.path.join(folder.path, "rewind-file-snapshots")
    backups = os.path.join(target, "backups")
    make_private_dir(backups)
    messages = [
        {
            "eventId": starts[turn].id if turn in starts else None,
            "timestamp": starts[turn].timestamp if turn in starts else None,
            "files": [_describe(change, store, backups) for change in changes[:COPIED]],
        }
        for turn, changes in changes_by_turn(folder.events, store).items()
    ]
    document = msgspec.json.encode({"schemaVersion": 1, "messages": messages})
    replace_file(os.path.join(target, "index.json"), document)


def changes_by_turn(log: str, store: BlobStore) -> dict[int, list[Change]]:
    """Return the session's own changes by turn: for each path its first and last state."""
    turns: dict[int, dict[str, Change]] = {}
    for entry in read_changes(read_records(log), store):
        if entry.event.reason not in ("tool", "shell", "custom-tool"):
            continue
        merged = turns.setdefault(entry.turn, {})
        for change in entry.changes:
            first = merged.get(change.os_path, change)
            merged[change.os_path] = Change.at(change.os_path, first.before, change.after)
    return {
        turn: [change for change in merged.values() if change.before != change.after]
        for turn, merged in turns.items()
    }


def _describe(change: Change, store: BlobStore, backups: str) -> dict[str, Any]:
    added, removed = count_change(change, store)
    if change.before.digest:
        with suppress(OSError):
            _back_up(change.before.digest, store, backups)
    return {
        "path": change.path,
        "pathBytes": b64encode(os.fsencode(change.os_path)).decode(),
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


def count_change(change: Change, store: BlobStore) -> tuple[int, int]:
    """Return the lines a change added and removed; zero for large and for lost files."""
    try:
        return count_lines(_text(change.before, store), _text(change.after, store))
    except OSError:
        return 0, 0


def _text(state: FileState, store: BlobStore) -> bytes:
    if state.kind != "file" or not state.digest or state.size > COUNTED:
        return b""
    return store.get(state.digest)


def _back_up(digest: str, store: BlobStore, backups: str) -> None:
    path = os.path.join(backups, digest)
    if not os.path.lexists(path):
        write_new_file(path, store.get(digest), durable=False)
