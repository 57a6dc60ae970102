"""Plans and applies undo, redo and the files of a rewind, and records them as events."""

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
from trimtab.undo.blobs import MAX_SIZE, BlobStore
from trimtab.undo.changes import Recorded, read_changes
from trimtab.undo.git_objects import GitObjects
from trimtab.undo.git_state import is_git_state
from trimtab.undo.merge import apply_hunk
from trimtab.undo.other_sessions import Written, written_by_others
from trimtab.undo.restore import finish, restore
from trimtab.undo.reversal import TOO_LARGE, reverse

__all__ = ["TOO_LARGE", "FileHistory", "FilePlan", "Plan", "Record", "UndoRequest"]

OURS = ("tool", "shell", "custom-tool")
UNATTRIBUTED = ("background", "interrupted")
"""Changes that may not be the session's, so they are undone only if their files are named."""
UNDONE = ("undo", "rewind")

Record = Callable[[WorkspaceChanged, Sequence[Change]], None]
"""Records what an undo did in the log."""


class UndoRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to undo: of a turn (by default the last with changes), or of all turns since it.

    `files` limits it to some paths, `hunk` (from 1, with one file) to one hunk.
    """

    turn: int | None = None
    since: bool = False
    files: tuple[str, ...] = ()
    hunk: int | None = None


class FilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The planned change of a path. With a `problem`, it cannot be undone completely."""

    path: str
    current: FileState
    target: FileState
    problem: str = ""

    @property
    def is_needed(self) -> bool:
        return self.current != self.target


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The planned changes of an undo or redo. `left` are paths that are undone only if named."""

    action: Literal["undo", "redo", "rewind"]
    turn: int
    events: tuple[str, ...]
    files: tuple[FilePlan, ...]
    left: tuple[str, ...] = ()
    partial: bool = False

    @property
    def problems(self) -> tuple[FilePlan, ...]:
        return tuple(file for file in self.files if file.problem)


class FileHistory:
    """The file changes of a session, with undo and redo. `record` records them."""

    def __init__(self, folder: SessionFolder, store: BlobStore, record: Record) -> None:
        self.store = store
        self._record = record
        self.folder = folder

    def recorded(self) -> list[Recorded]:
        """Return every change of the session, in order."""
        return list(read_changes(read_records(self.folder.events), self.store))

    def plan_undo(self, request: UndoRequest) -> Plan:
        """Plan an undo. Raises `UsageError` if there is nothing to undo."""
        recorded = self.recorded()
        changes = list(_pending(recorded, written_by_others(self.folder)))
        uncertain = [entry for entry in changes if entry.event.reason in UNATTRIBUTED]
        if request.files:
            pending = [entry for entry in changes if _touches(entry, request.files)]
        else:
            pending = [entry for entry in changes if entry.event.reason in OURS]
        if request.turn is None and not request.since:
            request = msgspec.structs.replace(
                request, turn=max((entry.turn for entry in pending), default=0)
            )
        first = request.turn or 0
        chosen = [
            entry
            for entry in pending
            if entry.turn == first or (request.since and entry.turn > first)
        ]
        if not chosen and not request.since:
            raise UsageError(_nothing_to_undo(request, _paths(uncertain)))
        turns = {entry.turn for entry in chosen if not request.files}
        left = _paths(entry for entry in uncertain if entry.turn in turns)
        return self._plan("rewind" if request.since else "undo", chosen, request, left)

    def plan_redo(self, request: UndoRequest) -> Plan:
        """Plan to revert the last undo. Raises `UsageError` if there is none."""
        recorded = self.recorded()
        redone = {
            undone for entry in recorded for undone in entry.event.undoes or () if _is_redo(entry)
        }
        undos = [entry for entry in recorded if entry.event.reason in UNDONE]
        undos = [entry for entry in undos if entry.event_id not in redone]
        if request.turn is not None:
            undos = [entry for entry in undos if entry.turn == request.turn]
        if not undos:
            raise UsageError("There is no undo to revert; see `trimtab undo`.")
        return self._plan("redo", undos[-1:], request, ())

    def apply(self, plan: Plan) -> Plan:
        """Carry out a plan. Return it with the problems of files that failed."""
        done = {file.path: file for file in plan.files}
        for step in _steps(done.values()):
            for file in step:
                done[file.path] = self._restored(file)
        for file in done.values():
            if file.target.kind == "absent" and not file.problem and os.path.lexists(file.path):
                # A folder that came back with another session's files.
                done[file.path] = msgspec.structs.replace(file, target=self.store.keep(file.path))
        for file in sorted(done.values(), key=lambda file: file.path, reverse=True):
            if file.target.kind == "directory" and file.is_needed:
                finish(file.path, file.target)
        self._restore_objects(done)
        files = tuple(done.values())
        taken = [file for file in files if file.is_needed or not file.problem]
        partial = [file.path for file in taken if file.problem or plan.partial]
        changes = [Change.at(file.path, file.current, file.target) for file in taken]
        if changes:
            event = WorkspaceChanged(
                reason=plan.action,
                count=len(changes),
                undoes=list(plan.events),
                partial=partial or None,
            )
            self._record(event, changes)
        return msgspec.structs.replace(plan, files=files)

    def _plan(
        self,
        action: Literal["undo", "redo", "rewind"],
        chosen: Sequence[Recorded],
        request: UndoRequest,
        left: tuple[str, ...],
    ) -> Plan:
        by_path: dict[str, list[Change]] = {}
        for entry in chosen:
            for change in entry.changes:
                if not request.files or any(
                    is_within(change.os_path, path) for path in request.files
                ):
                    by_path.setdefault(change.os_path, []).append(change)
        for path in request.files:
            if not any(is_within(changed, path) for changed in by_path):
                raise UsageError(
                    f"{path} was not changed there; see the changed files with --preview."
                )
        files = self._plan_files(by_path)
        # The person's own git commands change refs and the index: those stay, without a conflict.
        stale = [entry for entry in files if entry.problem and is_git_state(entry.path)]
        files = tuple(entry for entry in files if entry not in stale)
        left = (*left, *(entry.path for entry in stale))
        if request.hunk is not None:
            files = (self._plan_hunk(files, request.hunk),)
        if action != "rewind" and not any(entry.is_needed or entry.problem for entry in files):
            self._require_folder()
        return Plan(
            action=action,
            turn=chosen[0].turn if chosen else request.turn or 0,
            events=tuple(entry.event_id for entry in chosen),
            files=tuple(sorted(files, key=lambda entry: entry.path)),
            left=left,
            partial=request.hunk is not None,
        )

    def _plan_files(self, by_path: Mapping[str, list[Change]]) -> tuple[FilePlan, ...]:
        planned: list[FilePlan] = []
        remade: list[str] = []  # folders that were replaced by something else: they are empty
        occupied: set[str] = set()  # paths that will be files, so nothing can be below them
        unreturnable: set[str] = set()  # contents that cannot return to their old path
        for path, changes in sorted(by_path.items()):
            hidden = any(path.startswith(folder + "/") for folder in remade)
            current = ABSENT if hidden else self._look(path, changes[-1].after)
            target, problem = reverse(changes, current, self.store)
            created = current.kind == "absent" and target.kind != "absent"
            if created and not occupied.isdisjoint(folders_above(path)):
                unreturnable.add(target.digest)
                target, problem = current, "somebody else's file is in the place of its folder"
            if target.kind in ("file", "symlink"):
                occupied.add(path)
            if target.kind == "directory" and current.kind in ("symlink", "file"):
                remade.append(path)
            planned.append(FilePlan(path=path, current=current, target=target, problem=problem))
        return tuple(_keep_unreturnable(plan, unreturnable) for plan in planned)

    def _require_folder(self) -> None:
        """Raise if the folder is missing: files that seem gone may only have been moved."""
        cwd = str(self.folder.read_metadata().get("cwd", ""))
        if cwd and not os.path.isdir(cwd):
            raise UsageError(
                f"no such file or directory: {cwd}, where the session worked; move it back first."
            )

    def _plan_hunk(self, files: tuple[FilePlan, ...], hunk: int) -> FilePlan:
        if len(files) != 1:
            raise UsageError("--hunk changes one file; name it with --file.")
        file = files[0]
        if file.problem or not (file.current.kind == file.target.kind == "file"):
            raise UsageError(f"{file.path} cannot be undone in parts; leave --hunk out.")
        before, after = self.store.get(file.current.digest), self.store.get(file.target.digest)
        data = apply_hunk(before, after, hunk)
        if data is None:
            raise UsageError(f"There is no hunk {hunk} in {file.path}; see --preview.")
        target = msgspec.structs.replace(file.current, digest=self.store.put(data), size=len(data))
        return msgspec.structs.replace(file, target=target)

    def _restore_objects(self, touched: Collection[str]) -> None:
        """Restore all missing git objects, which cannot conflict with anything."""

        with suppress(OSError):
            GitObjects(self.folder.git_objects).restore_missing(touched)

    def _look(self, path: str, expected: FileState) -> FileState:
        """Return the state of a path; a large file is read if its expected content was kept."""
        limit = max(MAX_SIZE, expected.size) if expected.digest else MAX_SIZE
        return self.store.keep(path, limit)

    def _restored(self, file: FilePlan) -> FilePlan:
        folder = os.path.dirname(file.path)
        if os.path.realpath(folder) != folder:  # never write through somebody's link
            return failed(file, "its folder has become a link elsewhere")
        now = self._look(file.path, file.current)
        if now == file.target:  # another name of a file that is already restored
            return file
        if now != file.current:
            return failed(file, "it is being changed right now; try again")
        try:
            restore(file.path, file.target, file.current, self.store)
        except OSError as error:
            if file.current.kind == "directory" and file.target.kind == "absent":
                return msgspec.structs.replace(
                    file, target=file.current
                )  # it contains files of others
            return failed(file, error.strerror or str(error))
        return file


def folders_above(path: str) -> Iterator[str]:
    """Yield every folder that contains an absolute path, the nearest first."""
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def failed(file: FilePlan, problem: str) -> FilePlan:
    """Return a plan that leaves the path as it is, because of a problem."""
    return msgspec.structs.replace(file, target=file.current, problem=problem)


def _keep_unreturnable(plan: FilePlan, unreturnable: Collection[str]) -> FilePlan:
    """Leave a moved file in place if it cannot return: it may contain the work of others."""
    removed = plan.target.kind == "absent" and plan.current.digest
    if removed and plan.current.digest in unreturnable:
        return failed(plan, "it was moved here and cannot return to its old path")
    return plan


def _pending(recorded: Sequence[Recorded], others: Written) -> Iterable[Recorded]:
    """Yield the changes that are or may be the session's own, except those already undone.

    Writes of other sessions during a command of this session were attributed to the command.
    """
    undone = _find_undone(recorded)
    for entry in recorded:
        if entry.event.reason in (*OURS, *UNATTRIBUTED):
            foreign = others if entry.event.reason != "tool" else ()
            left = tuple(
                change
                for change in entry.changes
                if (entry.event_id, change.os_path) not in undone
                and (change.os_path, change.after.digest) not in foreign
            )
            if left:
                yield msgspec.structs.replace(entry, changes=left)


def _find_undone(recorded: Sequence[Recorded]) -> set[tuple[str, str]]:
    undone: set[tuple[str, str]] = set()
    by_undo: dict[str, set[tuple[str, str]]] = {}
    for entry in recorded:
        if entry.event.reason not in (*UNDONE, "redo"):
            continue
        partial = entry.event.partial or ()
        paths = {change.os_path for change in entry.changes if change.os_path not in partial}
        if _is_redo(entry):
            for undo in entry.event.undoes or ():
                undone -= {pair for pair in by_undo.get(undo, ()) if pair[1] in paths}
        else:
            pairs = {(event, path) for event in entry.event.undoes or () for path in paths}
            by_undo[entry.event_id] = pairs
            undone |= pairs
    return undone


def _touches(entry: Recorded, files: Sequence[str]) -> bool:
    return any(is_within(change.os_path, path) for change in entry.changes for path in files)


def _paths(entries: Iterable[Recorded]) -> tuple[str, ...]:
    """Return the changed paths, each once."""
    return tuple(dict.fromkeys(change.path for entry in entries for change in entry.changes))


def _is_redo(entry: Recorded) -> bool:
    return entry.event.reason == "redo"


def _steps(plans: Iterable[FilePlan]) -> list[list[FilePlan]]:
    """Return steps in a valid order: remove files, then folders; create folders, then files."""
    needed = sorted((file for file in plans if file.is_needed), key=lambda file: file.path)
    gone = [file for file in needed if file.target.kind == "absent"]
    folders = [file for file in needed if file.target.kind == "directory"]
    return [
        [file for file in gone if file.current.kind != "directory"],
        [file for file in reversed(gone) if file.current.kind == "directory"],
        folders,
        [file for file in needed if file.target.kind in ("file", "symlink")],
    ]


def _nothing_to_undo(request: UndoRequest, uncertain: Sequence[str]) -> str:
    if request.turn:
        return f"Turn {request.turn} has no changes to undo; choose another turn."
    if uncertain:
        return (
            "The remaining changes happened while a command ran in the background or when the "
            "session was killed, so they may be your own; name files to undo with --file: "
            f"{', '.join(uncertain[:5])}{' …' if len(uncertain) > 5 else ''}."
        )
    return (
        "The session has no changes to undo; `trimtab undo SESSION` undoes those of another "
        "session."
    )
