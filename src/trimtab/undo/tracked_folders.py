"""Tracks several folders as one: their changes, and how much of them is covered."""

import glob
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence

from trimtab.contracts.changes import Change, FileState
from trimtab.undo.journal import NAME, read_root
from trimtab.undo.snapshots import Coverage, Snapshot

Open = Callable[[str, str, Sequence[str]], Snapshot]
"""Creates the snapshot of a folder, given its journal and the nested folders with their own."""


class TrackedFolders:
    """The snapshots of a session's folders. Folders can be added at any time."""

    def __init__(self, roots: Iterable[str], journals: str, open_snapshot: Open) -> None:
        """`journals` is the folder for the journals; the first root has the plain name there."""
        self._journals = journals
        self._open = open_snapshot
        self._main = ""
        self._snapshots: dict[str, Snapshot] = {}
        self.add(roots)

    @property
    def coverage(self) -> dict[str, Coverage]:
        """The coverage of each folder, as of the last scan."""
        return {root: snapshot.coverage for root, snapshot in self._snapshots.items()}

    def add(self, roots: Iterable[str]) -> None:
        """Track more folders; ignore folders that are already tracked."""
        new = [root for root in dict.fromkeys(roots) if not self._is_tracked(root)]
        for root in new:
            self._main = self._main or root
            others = (*self._snapshots, *new)
            inside = [other for other in others if other.startswith(root + "/")]
            self._snapshots[root] = self._open(root, self._journal(root), inside)

    def recall(self) -> bool:
        """Load the snapshots of an earlier process; return False if there are none."""
        recalled = [snapshot.recall() for snapshot in self._snapshots.values()]
        return any(recalled)

    def refresh(self) -> list[Change]:
        """Scan all folders; return the changes since the last scan of each."""
        return [change for snapshot in self._snapshots.values() for change in snapshot.refresh()]

    def hold(self) -> None:
        """Keep the current git objects before something happens."""
        for snapshot in self._snapshots.values():
            snapshot.hold()

    def note(self, path: str, state: FileState) -> None:
        for snapshot in self._snapshots.values():
            snapshot.note(path, state)

    def state(self, path: str) -> FileState | None:
        """Return the last known state of a path; None if no folder covers it."""
        found = (snapshot.state(path) for snapshot in self._snapshots.values())
        return next((state for state in found if state is not None), None)

    def keeps(self, path: str) -> bool:
        """Return True if a folder covers a path, with everything below it."""
        return any(snapshot.keeps(path) for snapshot in self._snapshots.values())

    def close(self) -> None:
        for snapshot in self._snapshots.values():
            snapshot.close()

    def _is_tracked(self, root: str) -> bool:
        return any((root + "/").startswith(known + "/") for known in self._snapshots)

    def _journal(self, root: str) -> str:
        if root == self._main:
            return os.path.join(self._journals, NAME)
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        return os.path.join(self._journals, f"{name}.{NAME}")


def find_tracked(journals: str) -> list[str]:
    """Return the folders, except the first, that an earlier process tracked."""
    found = glob.glob(os.path.join(glob.escape(journals), f"*.{NAME}"))
    return [root for path in sorted(found) if (root := read_root(path))]
