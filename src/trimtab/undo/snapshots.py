"""Snapshots of a tree: find changes cheaply, and keep contents to undo them."""

import gc
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.text import count
from trimtab.undo.blobs import BlobStore, unkept_state
from trimtab.undo.git_objects import GitObjects
from trimtab.undo.git_state import Repositories
from trimtab.undo.journal import Journal
from trimtab.undo.parallel_walk import ParallelWalk
from trimtab.workspace.walk import (
    HEAVY,
    Key,
    Rows,
    TooLarge,
    look,
    walk,
)

ENTRIES = 400_000
SECONDS = 5.0
"""Time limits for listing a tree and for copying its contents, each."""
PARALLEL_FROM = 20_000
"""The number of entries from which a second process is worth its start."""
TICK = 50_000_000
"""Nanoseconds in which a file may change again without its times showing it."""
GIT = frozenset((".git",))


class Coverage(msgspec.Struct, frozen=True):
    """The part of a tree that can be restored. `reason` says why not all; empty if all."""

    files: int = 0
    uncovered: int = 0
    reason: str = ""


class Snapshot:
    """The last known state of everything below a folder.

    `refresh` returns the changes since the last call. It runs on the caller's thread, one thread at
    a time. Folders in `forbidden` are not projects: their contents are never listed.
    """

    def __init__(
        self,
        root: str,
        store: BlobStore,
        *,
        forbidden: Iterable[str] = (),
        skipped: Iterable[str] = (),
        journal: str | None = None,
        objects: GitObjects | None = None,
    ) -> None:
        self._covered = Coverage()
        self._lacking: list[str] = []
        self.taken = False
        self._store = store
        self._forbidden = frozenset(forbidden)
        self._root = os.path.realpath(root)
        self._parallel_walk = ParallelWalk(self._root)
        self._journal = Journal(journal, self._root) if journal else None
        self._always = GIT | frozenset(skipped)
        self.max_entries = ENTRIES
        """The number of paths that are listed at most."""
        self._rows: Rows = {}
        self._states: dict[str, FileState] = {}
        self._racy: set[str] = set()
        self._pending: set[str] = set()
        """Files whose contents are not kept yet, for lack of time."""
        self._unkept: set[str] = set()
        self._skip = self._always
        self._objects = objects
        self._large: set[str] = set()
        """Git folders of which only the main files are listed."""
        self._found: Repositories | None = None
        self._left: set[str] = set()
        """The branches that were checked out at the previous scan."""

    def hold(self, seconds: float = SECONDS) -> None:
        """Keep the current git objects before something happens."""
        if self._objects is None or self._found is None:
            return
        deadline = time.monotonic() + seconds
        found = [self._objects.keep(folder, deadline) for folder in self._found.objects]
        self._lacking = [reason for reason in found if reason]

    @property
    def coverage(self) -> Coverage:
        """The part of the tree that can be restored, as of the last scan."""
        large = [f"{folder} has too many files, so not all refs are kept" for folder in self._large]
        reasons = [*filter(None, (self._covered.reason,)), *self._lacking, *large]
        return msgspec.structs.replace(self._covered, reason="; ".join(reasons))

    def refresh(self, seconds: float = SECONDS) -> list[Change]:
        """Scan the tree; return the changes since the last scan, none the first time."""
        if refusal := self._refuse():
            self._covered = Coverage(reason=refusal)
            return []
        collecting = gc.isenabled()
        gc.disable()  # a hundred thousand new tuples would trigger it again and again
        try:
            rows = self._scan()
            if rows is None:
                return []
            first, self.taken = not self.taken, True
            changes = self._take_over(rows, time.monotonic() + seconds)
            return [] if first else changes
        finally:
            if collecting:
                gc.enable()

    def recall(self) -> bool:
        """Load the snapshot of an earlier process; return False if there is none."""
        if self._journal is None or self._refuse():
            return False
        try:
            for name, key, state in self._journal.read():
                path = os.fsdecode(name)
                if key is None or state is None:
                    self._forget(path)
                else:
                    self._rows[path], self._states[path] = key, state
        except (OSError, msgspec.DecodeError):
            self._rows, self._states = {}, {}
        self.taken = bool(self._rows)
        self._pending = {path for path, state in self._states.items() if not state.is_kept}
        return self.taken

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def note(self, path: str, state: FileState) -> None:
        """Set the state of a path that a tool reported."""
        if not self.taken or not self._covers(path):
            return
        key = look(path)
        if key is None:
            self._forget(path)
        else:
            self._rows[path], self._states[path] = key, state
            self._racy.add(path)
        self._write_down((path,))

    def state(self, path: str) -> FileState | None:
        """The last known state of a path; None if it is not covered."""
        if not self.taken or not self._covers(path):
            return None
        return self._states.get(path, ABSENT)

    def keeps(self, path: str) -> bool:
        """Return True if everything there is at a path, and below it, could be restored."""
        if not self.taken or not self._covers(path):
            return False
        lost = (*self._pending, *self._unkept)
        return not any(name == path or name.startswith(path + "/") for name in lost)

    def _refuse(self) -> str:
        if self._root in self._forbidden or self._root == os.sep:
            return f"{self._root} is not a project folder; work in a folder below it to have undo"
        return ""

    def _covers(self, path: str) -> bool:
        if not path.startswith(self._root + "/"):
            return False
        return not any(path.startswith(skipped + "/") for skipped in self._always) and not (
            self._skip != self._always and self._is_heavy(path)
        )

    def _is_heavy(self, path: str) -> bool:
        if not path.startswith(self._root + "/"):
            return False
        outside = path[len(self._root) :].partition("/.git/")[0]  # a branch may have such a name
        return not HEAVY.isdisjoint(outside.split("/"))

    def _scan(self) -> Rows | None:
        for skip in (self._skip, HEAVY | self._always):
            try:
                rows = self._walk(skip, time.monotonic() + SECONDS)
            except TooLarge:
                continue
            if skip != self._skip:
                self._leave_out(skip)
            return rows
        self._covered = Coverage(reason=f"{self._root} has too many files to list in time")
        self.taken = False
        self._rows, self._states = {}, {}
        return None

    def _walk(self, skip: frozenset[str], deadline: float) -> Rows:
        skipped: list[str] = []
        if len(self._rows) > PARALLEL_FROM:
            rows = self._parallel_walk.walk(skip, self.max_entries, deadline, skipped)
        else:
            rows = walk([self._root], skip, self.max_entries, deadline, skipped)
        nested = [path for path in skipped if os.path.basename(path) in GIT]
        large = set(self._large)
        self._left = self._found.own if self._found is not None else set()
        self._found = Repositories(self._root, nested, self._large)
        rows |= self._found.rows
        for folder in self._large - large:
            inside = (path for path in self._rows if path.startswith(folder + "/"))
            self._forget_all(path for path in inside if path not in rows)
        return rows

    def _leave_out(self, skip: frozenset[str]) -> None:
        """Skip some directories from now on, without reporting their files as deleted."""
        self._skip = skip
        self._forget_all(path for path in self._rows if self._is_heavy(path))

    def _forget_all(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            self._forget(path)

    def _take_over(self, rows: Rows, deadline: float) -> list[Change]:
        before, now = self._rows, time.time_ns()
        same = rows == before
        if same and not self._racy and not self._pending:
            return []
        touched = [] if same else [path for path, key in rows.items() if before.get(path) != key]
        again = [path for path in self._racy if before.get(path) == rows.get(path)]
        gone = [] if same else [path for path in before if path not in rows]
        changes = [self._changed(path, ABSENT) for path in gone]
        for path in gone:
            self._forget(path)
        fresh = sorted((*touched, *again), key=self._is_heavy)
        self._racy = {path for path in fresh if max(rows[path][3:]) > now - TICK}
        self._rows = rows
        unread = {path for path in again if self._states[path].is_kept}
        for path, state in self._keep(fresh, deadline):
            if path in unread and not state.is_kept:
                self._read_later(path)
            else:
                changes.append(self._changed(path, state))
                self._states[path] = state
        waiting = [path for path in self._pending if look(path) == rows.get(path)]
        self._states.update(self._keep(waiting, deadline))
        self._measure()
        self._write_down((*fresh, *gone, *waiting))
        return [change for change in changes if self._counts(change)]

    def _read_later(self, path: str) -> None:
        """Take a path whose times are the same for unchanged, for lack of time or room."""
        self._pending.discard(path)
        self._unkept.discard(path)
        self._racy.add(path)

    def _counts(self, change: Change) -> bool:
        """Return True if a change counts; of others' files in a repository, only deletions do."""
        if change.before == change.after:
            return False
        if change.after.kind == "absent" or self._found is None or change.os_path in self._left:
            return True
        return not self._found.is_foreign(change.os_path)

    def _write_down(self, paths: Iterable[str]) -> None:
        if self._journal is None:
            return
        with suppress(OSError):  # a full disk: only a kill during a command is not covered
            # A file that could change again unnoticed is stored as changed.
            never: Key = (0, 0, 0, 0, 0)
            self._journal.add(
                (
                    path,
                    never if path in self._racy else self._rows.get(path),
                    self._states.get(path),
                )
                for path in paths
            )

    def _changed(self, path: str, after: FileState) -> Change:
        return Change.at(path, self._states.get(path, ABSENT), after)

    def _forget(self, path: str) -> None:
        self._rows.pop(path, None)
        self._states.pop(path, None)
        self._pending.discard(path)
        self._unkept.discard(path)
        self._racy.discard(path)

    def _keep(self, paths: list[str], deadline: float) -> Iterator[tuple[str, FileState]]:
        """Yield the states of some paths, keeping their contents as long as there is time."""
        self._pending.difference_update(paths)
        self._unkept.difference_update(paths)
        rows = iter([(path, self._rows[path]) for path in paths])
        late = time.monotonic() > deadline
        for path, state in () if late else self._store.keep_many(rows):
            if not state.is_kept:
                self._unkept.add(path)
            yield path, state
            if time.monotonic() > deadline:
                break
        for path, key in rows:
            if stat.S_ISREG(key[0]):
                self._pending.add(path)
            yield path, unkept_state(key)

    def _measure(self) -> None:
        reasons = []
        missing = len(self._pending) + len(self._unkept)
        if missing:
            reasons.append(f"too large or too many to be kept: {count(missing, 'file')}")
        try:
            self._store.flush()
        except OSError as error:
            reasons.append(f"nothing more can be kept ({error.strerror})")
        if self._skip != self._always:
            reasons.append(
                "the tree is so large that node_modules, .venv and the like are left out"
            )
        self._covered = Coverage(len(self._rows), missing, "; ".join(reasons))
