"""Records every change to the workspace with its reason, for undo."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.files import open_private
from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.json_text import encode_json
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.contracts.workspace import ShellInfo
from trimtab.session.folder import SessionFolder
from trimtab.session.session import Session
from trimtab.undo.tracking import find_tops, release_objects, track_folders
from trimtab.workspace.local import LocalWorkspace, uninterrupted

if TYPE_CHECKING:
    from trimtab.contracts.events.changes import WorkspaceChanged
    from trimtab.undo.blobs import BlobStore
    from trimtab.undo.snapshots import Coverage
    from trimtab.undo.tracked_folders import TrackedFolders


class Reason:
    """The reason of a change: its kind, the tool call, a label for people, and the agent."""

    def __init__(
        self,
        kind: str,
        call_id: str | None = None,
        detail: str | None = None,
        agent: str | None = None,
    ) -> None:
        self.kind, self.call_id, self.detail, self.agent = kind, call_id, detail, agent

    @property
    def key(self) -> tuple[str | None, str | None]:
        """Identifies the call; two agents may use the same call id."""
        return self.agent, self.call_id


PERSON = Reason("person")
BY_COMMANDS = ("shell", "background", "custom-tool", "interrupted")
MAX_INDEXED_LOG = 64 * 1024 * 1024
"""A longer log is not read at the end to write the file index."""
SCAN_INTERVAL = 5.0
MAX_WRITTEN = 512 * 1024 * 1024
"""A file written by a tool is kept up to this size, since the tool had it in memory."""


class Marker:
    """A file that names the running command of unknown effect, to find it after a kill."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "snapshot.open")

    def set(self, call_id: str | None, detail: str | None) -> None:
        with suppress(OSError):
            fd = open_private(self._path, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(fd, encode_json((call_id, detail)))
            finally:
                os.close(fd)

    def clear(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)

    def read(self) -> tuple[str | None, str | None] | None:
        """Return the interrupted call and its command; None if there is none."""
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=tuple[str | None, str | None])
        except OSError:
            return None
        except msgspec.DecodeError:
            return None, None


class Recorder(Processor):
    """Records the file changes of a session. Nothing is read or kept before something may change.

    The whole workspace is listed before and after a command of unknown effect: earlier changes are
    somebody else's, changes during the command are its own.
    """

    def __init__(
        self,
        session: Session,
        workspace: LocalWorkspace,
        folder: SessionFolder,
        may_change: Callable[[Access], bool],
        folders: Sequence[str],
    ) -> None:
        """`folders` are the folders in which commands may change anything."""
        self.may_change = may_change
        self._folders = list(folders)
        self._session = session
        self._workspace = workspace
        self._folder = folder
        self._recorded = False
        self._scan_lock = asyncio.Lock()
        self._open: dict[tuple[str | None, str | None], Reason] = {}
        self._background: dict[str, Reason] = {}
        self.scan_interval = SCAN_INTERVAL
        """Seconds between scans of the workspace while commands run in the background."""
        self._tasks: set[asyncio.Task[None]] | None = None
        self._watching = False
        self._last: dict[str, FileState] = {}
        self._marker = Marker(folder.path)
        self._store: BlobStore | None = None
        self._tracked: TrackedFolders | None = None
        self._reported_coverage: dict[str, Coverage] = {}

    @property
    def store(self) -> "BlobStore":
        if self._store is None:
            from trimtab.undo.blobs import BlobStore

            self._store = BlobStore(self._folder.blobs)
        return self._store

    def track(self, folders: Sequence[str]) -> None:
        """Track more folders that have become part of the workspace."""
        self._folders += folders
        if self._tracked is not None:
            self._tracked.add(find_tops(folders, self._workspace.home))

    async def begin(self, reason: Reason) -> None:
        """Prepare for something of unknown effect to start."""
        await self._scan(PERSON, hold=True)
        self._open[reason.key] = reason
        self._marker.set(reason.call_id, reason.detail)

    async def end(self, reason: Reason) -> None:
        """Record the changes since `begin` as its own."""
        scanning = asyncio.ensure_future(self._scan(reason))
        try:
            await asyncio.shield(scanning)
        except asyncio.CancelledError:
            await asyncio.wait((scanning,))
            raise
        finally:
            self._open.pop(reason.key, None)
            if not self._open:
                self._marker.clear()

    async def can_restore(self, paths: Sequence[str]) -> bool:
        """Return True if some paths, with all below them, can be restored as they are now.

        Without paths: everything in the workspace.
        """
        await self._scan(PERSON)
        tracked = self._tracked
        if tracked is None:
            return False
        if paths:
            return all(map(tracked.keeps, paths))
        return not any(coverage.reason for coverage in tracked.coverage.values())

    async def take_over_commit(self) -> None:
        """Accept the files of git as they are after a commit of the session's own.

        Changes of other files are reported as usual.
        """
        if self._tracked is not None:
            await self._scan(PERSON, skip=is_of_git)

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        if run.agent.id:
            return prompt
        self._open.clear()  # interrupted calls will not report their end
        self._tasks = run.tasks
        return prompt

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        if is_foreign(run, pending):
            await self.begin(foreign_reason(run, pending))
        return pending

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if is_foreign(run, pending):
            await self.end(foreign_reason(run, pending))
        return result

    @asynccontextmanager
    async def writing(self, *paths: str, reason: Reason) -> AsyncIterator[None]:
        """Record what a tool does to files meanwhile, also if it fails or is cancelled.

        No scan runs at the same time: it could take over a change that another call made to the
        same file, and report it after the tool's own.
        """
        async with self._scan_lock:
            records = [self._begin_write(path, reason) for path in paths]
            try:
                yield
            finally:
                for record in records:
                    record()

    def _begin_write(self, path: str, reason: Reason) -> Callable[[], None]:
        """Keep what a file holds; return a function that records what became of it."""
        target = os.path.realpath(path)
        made = missing_folders(target)
        before = self.store.keep(target, MAX_WRITTEN)
        return lambda: self._written(target, before, made, reason)

    def _written(self, path: str, before: FileState, made: Sequence[str], reason: Reason) -> None:
        known = self._last.get(path)
        if known is None and self._tracked is not None:
            known = self._tracked.state(path)
        if known is not None and known != before:
            self._emit([Change.at(path, known, before)], self._attribute(PERSON))
        after = self.store.keep(path, MAX_WRITTEN)
        changes = [Change.at(folder, ABSENT, self.store.keep(folder)) for folder in made]
        changes.append(Change.at(path, before, after))
        for change in changes:
            self._last[change.os_path] = change.after
            if self._tracked is not None:
                self._tracked.note(change.os_path, change.after)
        if changed := [change for change in changes if change.before != change.after]:
            self._emit(changed, reason)

    def started(self, shell_id: str, reason: Reason) -> None:
        """Watch the changes of a command that continues in the background."""
        self._background[shell_id] = reason
        if self._tasks is not None and not self._watching:
            self._watching = True
            task = asyncio.get_running_loop().create_task(self._watch())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Record changes of background commands while nothing else scans the workspace."""
        clock = asyncio.get_running_loop().time
        pause = self.scan_interval
        try:
            while self._background:
                await asyncio.sleep(pause)
                began = clock()
                with suppress(OSError):  # the next scan for a call reports it
                    await self._scan(PERSON)
                pause = max(self.scan_interval, 10 * (clock() - began))
        finally:
            self._watching = False

    def record(self, event: "WorkspaceChanged", changes: Sequence[Change]) -> None:
        """Record changes made by an undo, redo or rewind."""
        from trimtab.undo.changes import build_event

        for change in changes:
            self._last[change.os_path] = change.after
            if self._tracked is not None and not self._scan_lock.locked():
                self._tracked.note(change.os_path, change.after)
        self._session.emit(build_event(event, changes, self.store))
        self._recorded = True

    def close(self) -> None:
        """Write the file index for other tools, if there were changes."""
        if self._store is None:
            return
        if self._tracked is not None:
            self._tracked.close()
            release_objects(self._folder)
        if self._recorded and self._session.log.size < MAX_INDEXED_LOG:
            from trimtab.undo.file_index import write_index

            with suppress(TrimtabError, OSError):  # a cache, which the next undo regenerates
                write_index(self._folder, self._store)
        self._store.close()

    async def _scan(
        self, reason: Reason, *, hold: bool = False, skip: Callable[[str], bool] | None = None
    ) -> None:
        """Report what has changed since the last scan, except the paths to skip."""
        if self._tracked is None:
            self._tracked = track_folders(
                self._folders, self._workspace.home, self._folder, self.store
            )
            if self._tracked.recall() and (interrupted := self._marker.read()) is not None:
                reason = Reason("interrupted", *interrupted)
        tracked, changes = self._tracked, list[Change]()
        async with self._scan_lock:
            try:
                await uninterrupted(lambda: changes.extend(tracked.refresh()))
                if hold:
                    await uninterrupted(tracked.hold)
            finally:
                self._report_coverage(tracked.coverage)
                if skip is not None:
                    changes = [change for change in changes if not skip(change.os_path)]
                self._report(changes, reason)

    def _report(self, changes: Sequence[Change], reason: Reason) -> None:
        # An undo may have restored, and reported, during the scan.
        unreported = [
            change for change in changes if self._last.get(change.os_path) != change.after
        ]
        for change in unreported:
            if change.os_path in self._last:
                self._last[change.os_path] = change.after
        if unreported:
            self._emit(unreported, self._attribute(reason))
        self._forget_ended()

    def _attribute(self, reason: Reason) -> Reason:
        """Attribute unreported changes to a running call, a background command or a person."""
        if reason.kind != "person":
            return reason
        if self._open:
            return next(reversed(self._open.values()))
        if self._background:
            running = next(reversed(self._background.values()))
            return Reason("background", running.call_id, running.detail, running.agent)
        return reason

    def _forget_ended(self) -> None:
        shells: Sequence[ShellInfo] = self._workspace.shells.list() if self._background else ()
        running = {shell.shell_id for shell in shells if shell.exit_code is None}
        for shell_id in [name for name in self._background if name not in running]:
            del self._background[shell_id]

    def _report_coverage(self, found: Mapping[str, "Coverage"]) -> None:
        for root, coverage in found.items():
            reported = self._reported_coverage.get(root)
            if coverage.reason and (reported is None or reported.reason != coverage.reason):
                from trimtab.contracts.events.changes import SnapshotLimited

                self._session.emit(
                    SnapshotLimited(
                        root=root,
                        reason=coverage.reason,
                        files=coverage.files,
                        uncovered=coverage.uncovered,
                    )
                )
        self._reported_coverage = dict(found)

    def _emit(self, changes: Sequence[Change], reason: Reason) -> None:
        from trimtab.contracts.events.changes import WorkspaceChanged
        from trimtab.undo.changes import build_event

        event = WorkspaceChanged(
            reason=reason.kind,
            count=len(changes),
            tool_call_id=reason.call_id,
            detail=reason.detail,
        )
        try:
            event = build_event(event, changes, self.store)
        except OSError:  # a full disk: the log gets the whole list
            event = msgspec.structs.replace(event, changes=list(changes))
        self._session.emit(event, agent_id=reason.agent)
        self._recorded = True
        if reason.kind in BY_COMMANDS and any(is_of_git(change.path) for change in changes):
            self._warn_of_programs(changes, reason)

    def _warn_of_programs(self, changes: Sequence[Change], reason: Reason) -> None:
        """Say that git starts something new: a person sees neither in a diff."""
        from trimtab.contracts.events.session import SessionWarning
        from trimtab.undo.git_programs import find_new_programs

        with suppress(OSError):
            if programs := find_new_programs(changes, self.store):
                message = (
                    f"git starts a program from now on that a command put here: "
                    f"{', '.join(programs)}. Look at it; `trimtab undo` takes it back."
                )
                warning = SessionWarning(warning_type="git_programs", message=message)
                self._session.emit(warning, agent_id=reason.agent)


def foreign_reason(run: Run, pending: PendingCall) -> Reason:
    name = pending.tool.spec.name
    return Reason("custom-tool", pending.call.id, name, run.agent.id or None)


def is_of_git(path: str) -> bool:
    """Return True for the files in which git keeps the state of a repository."""
    return ".git" in path.split(os.sep)


def is_foreign(run: Run, pending: PendingCall) -> bool:
    """Return True if a call is of a tool with unknown effects."""
    return any(
        access.kind in ("custom-tool", "mcp") and access.mutates for access in pending.touches(run)
    )


def missing_folders(target: str) -> list[str]:
    """Return the directories that writing a file will create, the topmost first."""
    missing: list[str] = []
    folder = os.path.dirname(target)
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing
