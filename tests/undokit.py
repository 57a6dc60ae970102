"""Runs whose changes are to be taken back, trees to compare, and a disk that is full."""

import os
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clikit import Cli, serving
from trimtab.contracts.changes import Change
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.contracts.events.user import UserMessage
from trimtab.session.folder import SessionFolder
from trimtab.session.log import EventLog
from trimtab.session.session import Projections, Session
from trimtab.undo.blobs import BlobStore
from trimtab.undo.changes import build_event
from trimtab.undo.history import FileHistory, Plan, UndoRequest


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder but git's own, with modes; of a link its target."""
    found = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.relative_to(root).parts:
            continue
        content = b"" if path.is_dir() else path.read_bytes()
        if path.is_symlink():
            content = os.readlink(path).encode()
        found[str(path.relative_to(root))] = path.lstat().st_mode, content
    return found


async def work(cli: Cli, *turns: list[dict[str, Any]], flags: tuple[str, ...] = ()) -> None:
    """One turn for each list of calls, all in one session."""
    replies: list[dict[str, Any]] = []
    for calls in turns:
        replies += [*({"tools": [call]} for call in calls), {"text": "Done."}]
    async with serving(replies) as server:
        cli.use(server)
        for number, _ in enumerate(turns):
            again = ("--continue",) if number else ()
            outcome = await cli.ask(f"turn {number + 1}", *again, *flags)
            assert outcome.code == 0, outcome.notes


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every write to a file fail meanwhile, as on a disk without room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class WorkingSession:
    """A session whose changes to files are recorded without a model or a workspace."""

    def __init__(self, base: Path, name: str = "session") -> None:
        self.root = base / "project"
        self.root.mkdir(exist_ok=True)
        path = base / "state" / "session-state" / name
        path.mkdir(parents=True)
        self.folder = SessionFolder(name, str(path))
        self.session = Session(name, EventLog.create(self.folder.events), Projections())
        self.store = BlobStore(self.folder.blobs)
        self.history = FileHistory(self.folder, self.store, self.emit)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def begin_turn(self, text: str = "go") -> None:
        self.session.emit(UserMessage(content=text))

    def emit(self, event: WorkspaceChanged, changes: Sequence[Change]) -> None:
        self.session.emit(build_event(event, changes, self.store))

    def record(
        self, reason: str, act: Callable[[], object], *names: str, agent: str | None = None
    ) -> str:
        """Do something to files, and record it; return the id of the event."""
        before = [self.store.keep(self.path(name)) for name in names]
        act()
        changes = [
            Change.at(self.path(name), state, self.store.keep(self.path(name)))
            for name, state in zip(names, before, strict=True)
        ]
        event = WorkspaceChanged(reason=reason, count=0, tool_call_id="call", detail="detail")
        return self.session.emit(build_event(event, changes, self.store), agent_id=agent).id

    def write(self, name: str, text: str, reason: str = "tool", agent: str | None = None) -> str:
        """Write a file, and record it; return the id of the event."""
        return self.record(reason, lambda: (self.root / name).write_text(text), name, agent=agent)

    def remove(self, name: str, reason: str = "tool") -> str:
        return self.record(reason, (self.root / name).unlink, name)

    def undo(self, **request: Any) -> Plan:
        return self.history.apply(self.history.plan_undo(UndoRequest(**request)))

    def redo(self, **request: Any) -> Plan:
        return self.history.apply(self.history.plan_redo(UndoRequest(**request)))

    def read(self, name: str) -> str | None:
        """Return the text of a file; None if there is none."""
        return (self.root / name).read_text() if os.path.lexists(self.path(name)) else None
