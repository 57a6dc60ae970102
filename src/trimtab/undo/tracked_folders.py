"""Several folders looked at as one: what changed in any of them, and how much is covered."""

import glob
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence

from trimtab.contracts.changes import Change, FileState
from trimtab.undo.journal import NAME, read_root
from trimtab.undo.snapshots import Coverage, Snapshot

Open = Callable[[str, str, Sequence[str]], Snapshot]
"""Makes the snapshot of a folder, given its journal and the folders in it that have their own."""


class TrackedFolders:
    """The snapshots of a session's folders. One can be added at any time."""

    def __init__(self, roots: Iterable[str], journals: str, open_one: Open) -> None:
        """`journals` is the folder for the journals; the first root has the plain name there."""
        self._journals = journals
        self._open = open_one
        self._main = ""
        self._snapshots: dict[str, Snapshot] = {}
        self.add(roots)

    @property
    def coverage(self) -> dict[str, Coverage]:
        """How much of each folder could be brought back."""
        return {root: one.coverage for root, one in self._snapshots.items()}

    def add(self, roots: Iterable[str]) -> None:
        """Track more folders from now on; those that are tracked already stay as they are."""
        new = [root for root in dict.fromkeys(roots) if not self._is_tracked(root)]
        for root in new:
            self._main = self._main or root
            others = (*self._snapshots, *new)
            inside = [other for other in others if other.startswith(root + "/")]
            self._snapshots[root] = self._open(root, self._journal(root), inside)

    def recall(self) -> bool:
        """Take over what an earlier process knew; says whether it left anything."""
        recalled = [one.recall() for one in self._snapshots.values()]
        return any(recalled)

    def refresh(self) -> list[Change]:
        """Look at all folders; what has changed since the last look at each."""
        return [change for one in self._snapshots.values() for change in one.refresh()]

    def hold(self) -> None:
        """Something is about to happen: keep what no look at the files can bring back."""
        for one in self._snapshots.values():
            one.hold()

    def note(self, path: str, state: FileState) -> None:
        for one in self._snapshots.values():
            one.note(path, state)

    def state(self, path: str) -> FileState | None:
        """The last known state of a path; None if no folder covers it."""
        found = (one.state(path) for one in self._snapshots.values())
        return next((state for state in found if state is not None), None)

    def close(self) -> None:
        for one in self._snapshots.values():
            one.close()

    def _is_tracked(self, root: str) -> bool:
        return any((root + "/").startswith(known + "/") for known in self._snapshots)

    def _journal(self, root: str) -> str:
        if root == self._main:
            return os.path.join(self._journals, NAME)
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        return os.path.join(self._journals, f"{name}.{NAME}")


def find_tracked(journals: str) -> list[str]:
    """The folders besides the first that an earlier process tracked."""
    found = glob.glob(os.path.join(glob.escape(journals), f"*.{NAME}"))
    return [root for path in sorted(found) if (root := read_root(path))]
