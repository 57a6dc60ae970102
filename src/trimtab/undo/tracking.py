"""Chooses the folders that a session tracks, and the folders to skip."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from trimtab.session.folder import SessionFolder

if TYPE_CHECKING:
    from trimtab.undo.blobs import BlobStore
    from trimtab.undo.tracked_folders import TrackedFolders


def track_folders(
    folders: Sequence[str], home: str, folder: SessionFolder, store: "BlobStore"
) -> "TrackedFolders":
    """Return the snapshots of some folders, as far as they may be listed."""
    from trimtab.undo.git_objects import GitObjects
    from trimtab.undo.snapshots import Snapshot
    from trimtab.undo.tracked_folders import TrackedFolders

    objects = GitObjects(folder.git_objects)
    sessions = os.path.dirname(os.path.realpath(folder.path))
    logs = os.path.join(os.path.dirname(sessions), "logs")

    def open_snapshot(root: str, journal: str, inside: Sequence[str]) -> Snapshot:
        return Snapshot(
            root,
            store,
            forbidden=unsuitable_roots(home),
            skipped=(sessions, logs, *inside),
            journal=journal,
            objects=objects,
        )

    return TrackedFolders(find_tops(folders, home), folder.path, open_snapshot)


def release_objects(folder: SessionFolder) -> None:
    """Release kept objects that git still has."""
    from trimtab.undo.git_objects import GitObjects

    with suppress(OSError):  # a leftover link does no harm
        GitObjects(folder.git_objects).release()


def unsuitable_roots(home: str) -> tuple[str, ...]:
    """Return the home directory and its parents, which are too large to list."""
    home = os.path.realpath(home)
    return home, *parents(home)


def find_tops(folders: Sequence[str], home: str) -> list[str]:
    """Return the folders to track so that some folders are covered."""
    forbidden = unsuitable_roots(home)
    return [find_top(folder, forbidden) for folder in folders]


def parents(path: str) -> list[str]:
    found: list[str] = []
    while (above := os.path.dirname(path)) != path:
        found.append(above)
        path = above
    return found


def find_top(root: str, forbidden: Sequence[str]) -> str:
    """Return the repository around a folder, since git changes all of it; else the folder."""
    root = os.path.realpath(root)
    for folder in (root, *parents(root)):
        if folder not in forbidden and os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return root
