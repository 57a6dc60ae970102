"""Undo, redo and the files' part of rewind: planned first, then done, and recorded as events."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.session.folder import SessionFolder
from trimtab.session.records import read_records
from trimtab.undo.blobs import LARGEST, BlobStore
from trimtab.undo.changes import Recorded, read_changes
from trimtab.undo.git_state import is_git_state
from trimtab.undo.merge import apply_hunk
from trimtab.undo.other_sessions import Written, written_by_others
from trimtab.undo.restore import finish, restore
from trimtab.undo.reversal import TOO_LARGE, reverse

__all__ = ["TOO_LARGE", "FileHistory", "FilePlan", "Plan", "Record", "Wish"]

OURS = ("tool", "shell", "custom-tool")
UNSURE = ("background", "interrupted")
"""Nobody knows whether the session did that, so it is taken back only when it is named."""
UNDONE = ("undo", "rewind")

Record = Callable[[WorkspaceChanged, Sequence[Change]], None]
"""Puts what an undo did into the log."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be taken back: a turn (the last one with changes unless given), or all since it.

    `files` narrows it to some paths, `hunk` (from 1, with one file) to one stretch of lines.
    """

    turn: int | None = None
    since: bool = False
    files: tuple[str, ...] = ()
    hunk: int | None = None


class FilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be done to one path. With a `problem` not all of it can be taken back."""

    path: str
    current: FileState
    target: FileState
    problem: str = ""

    @property
    def is_needed(self) -> bool:
        return self.current != self.target


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an undo or redo would do. `left` are paths that only naming them would take back."""

    action: Literal["undo", "redo", "rewind"]
    turn: int
    events: tuple[str, ...]
    files: tuple[FilePlan, ...]
    left: tuple[str, ...] = ()
    partial: bool = False

    @property
    def problems(self) -> tuple[FilePlan, ...]:
        return tuple(one for one in self.files if one.problem)


class FileHistory:
    """What one session did to files, and how to take it back. `record` is told what is done."""

    def __init__(self, folder: SessionFolder, store: BlobStore, record: Record) -> None:
        self.store = store
        self._record = record
        self.folder = folder

    def recorded(self) -> list[Recorded]:
        """Every change of the session, in order."""
        return list(read_changes(read_records(self.folder.events), self.store))

    def plan_undo(self, wish: Wish) -> Plan:
        """What taking back a turn would do. Raises `UsageError` when there is nothing to undo."""
        recorded = self.recorded()
        others = written_by_others(self.folder)
        pending = list(_pending(recorded, others, named=bool(wish.files)))
        if wish.files:
            pending = [one for one in pending if _touches(one, wish.files)]
        if wish.turn is None and not wish.since:
            wish = msgspec.structs.replace(wish, turn=max((one.turn for one in pending), default=0))
        first = wish.turn or 0
        chosen = [one for one in pending if one.turn == first or (wish.since and one.turn > first)]
        if not chosen and not wish.since:
            raise UsageError(_nothing_to_undo(wish, recorded))
        left = () if wish.files else _unsure(recorded, chosen)
        return self._plan("rewind" if wish.since else "undo", chosen, wish, left)

    def plan_redo(self, wish: Wish) -> Plan:
        """What taking back the last undo would do. Raises `UsageError` when there is none."""
        recorded = self.recorded()
        redone = {undone for one in recorded for undone in one.said.undoes or () if _is_redo(one)}
        undos = [one for one in recorded if one.said.reason in UNDONE]
        undos = [one for one in undos if one.event_id not in redone]
        if wish.turn is not None:
            undos = [one for one in undos if one.turn == wish.turn]
        if not undos:
            raise UsageError("There is no undo that could be taken back; see `trimtab undo`.")
        return self._plan("redo", undos[-1:], wish, ())

    def apply(self, plan: Plan) -> Plan:
        """Do it. Gives the plan as it went: what failed has a problem now."""
        done = {one.path: one for one in plan.files}
        for step in _steps(done.values()):
            for one in step:
                done[one.path] = self._restored(one)
        for one in done.values():
            if one.target.kind == "absent" and not one.problem and os.path.lexists(one.path):
                # What another session had in it came back, and it with that.
                done[one.path] = msgspec.structs.replace(one, target=self.store.keep(one.path))
        for one in sorted(done.values(), key=lambda one: one.path, reverse=True):
            if one.target.kind == "directory" and one.is_needed:
                finish(one.path, one.target)
        self._mend_repositories(done)
        files = tuple(done.values())
        taken = [one for one in files if one.is_needed or not one.problem]
        partial = [one.path for one in taken if one.problem or plan.partial]
        changes = [Change.at(one.path, one.current, one.target) for one in taken]
        if changes:
            said = WorkspaceChanged(
                reason=plan.action, count=0, undoes=list(plan.events), partial=partial or None
            )
            self._record(said, changes)
        return msgspec.structs.replace(plan, files=files)

    def _plan(
        self,
        action: Literal["undo", "redo", "rewind"],
        chosen: Sequence[Recorded],
        wish: Wish,
        left: tuple[str, ...],
    ) -> Plan:
        by_path: dict[str, list[Change]] = {}
        for one in chosen:
            for change in one.changes:
                if not wish.files or any(is_within(change.place, path) for path in wish.files):
                    by_path.setdefault(change.place, []).append(change)
        for path in wish.files:
            if not any(is_within(changed, path) for changed in by_path):
                raise UsageError(f"{path} was not changed there; see what was: --preview.")
        files = self._plan_files(by_path)
        # The person's own git commands move refs and the index: theirs stay, without a fuss.
        stale = [one for one in files if one.problem and is_git_state(one.path)]
        files = tuple(one for one in files if one not in stale)
        left = (*left, *(one.path for one in stale))
        if wish.hunk is not None:
            files = (self._plan_hunk(files, wish.hunk),)
        if action != "rewind" and not any(one.is_needed or one.problem for one in files):
            self._require_folder()
        return Plan(
            action=action,
            turn=chosen[0].turn if chosen else wish.turn or 0,
            events=tuple(one.event_id for one in chosen),
            files=tuple(sorted(files, key=lambda one: one.path)),
            left=left,
            partial=wish.hunk is not None,
        )

    def _plan_files(self, by_path: Mapping[str, list[Change]]) -> tuple[FilePlan, ...]:
        planned: list[FilePlan] = []
        remade: list[str] = []  # folders in whose place something else stands: they are empty
        occupied: set[str] = set()  # paths that will hold a file, so nothing can be below them
        stranded: set[str] = set()  # contents that cannot go back to where they were
        for path, changes in sorted(by_path.items()):
            hidden = any(path.startswith(folder + "/") for folder in remade)
            current = ABSENT if hidden else self._look(path, changes[-1].after)
            target, problem = reverse(changes, current, self.store)
            created = current.kind == "absent" and target.kind != "absent"
            if created and not occupied.isdisjoint(folders_above(path)):
                stranded.add(target.digest)
                target, problem = current, "somebody else's file is in the place of its folder"
            if target.kind in ("file", "symlink"):
                occupied.add(path)
            if target.kind == "directory" and current.kind in ("symlink", "file"):
                remade.append(path)
            planned.append(FilePlan(path=path, current=current, target=target, problem=problem))
        return tuple(_keep_stranded(plan, stranded) for plan in planned)

    def _require_folder(self) -> None:
        """That all is gone already may only mean that it was moved elsewhere."""
        cwd = str(self.folder.read_metadata().get("cwd", ""))
        if cwd and not os.path.isdir(cwd):
            raise UsageError(f"{cwd}, where the session worked, is not there; move it back first.")

    def _plan_hunk(self, files: tuple[FilePlan, ...], hunk: int) -> FilePlan:
        if len(files) != 1:
            raise UsageError("--hunk needs one file; name it with --file.")
        one = files[0]
        if one.problem or not (one.current.kind == one.target.kind == "file"):
            raise UsageError(f"{one.path} cannot be taken back in parts; leave --hunk out.")
        before, after = self.store.get(one.current.digest), self.store.get(one.target.digest)
        data = apply_hunk(before, after, hunk)
        if data is None:
            raise UsageError(f"There is no hunk {hunk} in {one.path}; see --preview.")
        target = msgspec.structs.replace(one.current, digest=self.store.put(data), size=len(data))
        return msgspec.structs.replace(one, target=target)

    def _mend_repositories(self, touched: Collection[str]) -> None:
        """Objects are never in the way of anything, so all that are missing are put back."""
        from trimtab.undo.git_objects import GitObjects

        with suppress(OSError):
            GitObjects(self.folder.git_objects).bring_back(touched)

    def _look(self, path: str, expected: FileState) -> FileState:
        """What stands at a path; a large file is read if what is expected there was kept."""
        return self.store.keep(path, max(LARGEST, expected.size if expected.digest else 0))

    def _restored(self, one: FilePlan) -> FilePlan:
        folder = os.path.dirname(one.path)
        if os.path.realpath(folder) != folder:  # never write through somebody's link
            return failed(one, "its folder has become a link elsewhere")
        now = self._look(one.path, one.current)
        if now == one.target:  # another name of a file that is back already
            return one
        if now != one.current:
            return failed(one, "it is being changed right now; try again")
        try:
            restore(one.path, one.target, one.current, self.store)
        except OSError as error:
            if one.current.kind == "directory" and one.target.kind == "absent":
                return msgspec.structs.replace(one, target=one.current)  # others have files there
            return failed(one, error.strerror or str(error))
        return one


def folders_above(path: str) -> Iterator[str]:
    """Every folder that an absolute path lies in, the nearest one first."""
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def failed(one: FilePlan, problem: str) -> FilePlan:
    """The path stays as it is, and why."""
    return msgspec.structs.replace(one, target=one.current, problem=problem)


def _keep_stranded(plan: FilePlan, stranded: Collection[str]) -> FilePlan:
    """Leave a moved file where it is if it cannot go back: it may hold the work of others."""
    removed = plan.target.kind == "absent" and plan.current.digest
    if removed and plan.current.digest in stranded:
        return failed(plan, "it was moved here and cannot go back to where it was")
    return plan


def _pending(recorded: Sequence[Recorded], others: Written, *, named: bool) -> Iterable[Recorded]:
    """The session's own changes, less those that are undone already.

    What another session wrote while a command of this one ran was seen as the command's doing.
    """
    undone = _find_undone(recorded)
    for one in recorded:
        if one.said.reason in OURS or (named and one.said.reason in UNSURE):
            foreign = others if one.said.reason != "tool" else ()
            left = tuple(
                change
                for change in one.changes
                if (one.event_id, change.place) not in undone
                and (change.place, change.after.digest) not in foreign
            )
            if left:
                yield msgspec.structs.replace(one, changes=left)


def _find_undone(recorded: Sequence[Recorded]) -> set[tuple[str, str]]:
    undone: set[tuple[str, str]] = set()
    by_undo: dict[str, set[tuple[str, str]]] = {}
    for one in recorded:
        if one.said.reason not in (*UNDONE, "redo"):
            continue
        partial = one.said.partial or ()
        paths = {change.place for change in one.changes if change.place not in partial}
        if _is_redo(one):
            for undo in one.said.undoes or ():
                undone -= {pair for pair in by_undo.get(undo, ()) if pair[1] in paths}
        else:
            pairs = {(event, path) for event in one.said.undoes or () for path in paths}
            by_undo[one.event_id] = pairs
            undone |= pairs
    return undone


def _touches(one: Recorded, files: Sequence[str]) -> bool:
    return any(is_within(change.place, path) for change in one.changes for path in files)


def _unsure(recorded: Sequence[Recorded], chosen: Sequence[Recorded]) -> tuple[str, ...]:
    """Paths that changed while a command ran in the background, or around a kill."""
    turns = {one.turn for one in chosen}
    paths = {
        change.path: None
        for one in recorded
        if one.said.reason in UNSURE and one.turn in turns
        for change in one.changes
    }
    return tuple(paths)


def _is_redo(one: Recorded) -> bool:
    return one.said.reason == "redo"


def _steps(files: Iterable[FilePlan]) -> list[list[FilePlan]]:
    """An order that works: files go before their folders, folders come before their files."""
    needed = sorted((one for one in files if one.is_needed), key=lambda one: one.path)
    gone = [one for one in needed if one.target.kind == "absent"]
    folders = [one for one in needed if one.target.kind == "directory"]
    return [
        [one for one in gone if one.current.kind != "directory"],
        [one for one in reversed(gone) if one.current.kind == "directory"],
        folders,
        [one for one in needed if one.target.kind in ("file", "symlink")],
    ]


def _nothing_to_undo(wish: Wish, recorded: Sequence[Recorded]) -> str:
    if wish.turn:
        return f"Turn {wish.turn} has no changes that could be undone; choose another turn."
    if unsure := _unsure(recorded, recorded):
        return (
            "What is left changed while a command ran in the background or when the session was "
            f"killed, so it may be your own; name what to take back with --file: "
            f"{', '.join(unsure[:5])}{' …' if len(unsure) > 5 else ''}."
        )
    return (
        "The session has no changes that could be undone; `trimtab undo SESSION` undoes those of "
        "another."
    )
