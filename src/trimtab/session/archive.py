"""Stored sessions, for commands that show, copy, move or repair them without running them."""

from collections.abc import Iterator, Mapping, Sequence

from trimtab.config.files import replace_file
from trimtab.config.host_settings import is_enabled
from trimtab.config.paths import find_home
from trimtab.config.settings import Settings
from trimtab.contracts.errors import UsageError
from trimtab.session import trash
from trimtab.session.export import FORMATS, export, json_line
from trimtab.session.folder import SessionFolder
from trimtab.session.fork import Cut, fork
from trimtab.session.lease import find_owner
from trimtab.session.record import Record
from trimtab.session.records import follow_records, read_records, tail_records
from trimtab.session.repair import Finding, check_readable, sound_records
from trimtab.session.store import SessionStore
from trimtab.session.summary import SessionSummary, summarize
from trimtab.session.transcript import Entry, plain_event, read_transcript
from trimtab.session.trash import Trashed
from trimtab.session.verify import Report, verify

__all__ = [
    "Archive",
    "Cut",
    "Entry",
    "Finding",
    "Record",
    "Report",
    "SessionSummary",
    "Trashed",
    "json_line",
    "plain_event",
    "read_transcript",
    "replace_file",
]

EVERYTHING = Cut()


class Archive:
    """Operations on stored sessions. A session is given by id, prefix or name."""

    def __init__(self, env: Mapping[str, str], *, cwd: str | None = None) -> None:
        self.home = find_home(env)
        self._store = SessionStore(self.home)
        self._cwd = cwd

    def folder(self, text: str) -> SessionFolder:
        return self._store.folder(self._store.find(text, cwd=self._cwd))

    def list(self) -> list[SessionSummary]:
        return self._store.list()

    def summary(self, text: str) -> SessionSummary:
        return summarize(self.folder(text))

    def last_turn(self, text: str) -> Iterator[Record]:
        return tail_records(self._readable(text))

    def all_records(self, text: str) -> Iterator[Record]:
        return read_records(self._readable(text))

    def follow(self, text: str, start: int) -> Iterator[Record]:
        """Yield the records another process writes, from an offset on, until it ends."""
        folder = self.folder(text)
        return follow_records(
            folder.events, start=start, is_running=lambda: find_owner(folder.path) is not None
        )

    def verify(self, text: str) -> Report:
        return verify(self.folder(text))

    def repair(self, text: str) -> tuple[Finding, ...]:
        """Repair a session by opening and closing it; return what was found and done."""
        _, log = self._store.open(self.folder(text).id)
        log.close()
        return log.findings

    def export(self, text: str, form: str) -> Iterator[str]:
        """Yield the document in pieces."""
        if form not in FORMATS:
            raise UsageError(f"Unknown format {form!r}: choose one of {', '.join(FORMATS)}.")
        return export(form, self.summary(text), sound_records(self._readable(text)))

    def fork(self, text: str, cut: Cut = EVERYTHING, *, name: str | None = None) -> SessionFolder:
        if not is_enabled(Settings(self._store.home), "forkSessions.enabled"):
            raise UsageError(
                "Copying sessions is switched off; set host.forkSessions.enabled to true."
            )
        source = self.folder(text)
        check_readable(source.events)
        return fork(self._store, source, cut, name=name)

    def event_before(self, text: str, event_id: str) -> str:
        """Return the id of the event before the given one."""
        before: str | None = None
        for record in self.all_records(text):
            if record.id == event_id:
                break
            before = record.id
        else:
            raise UsageError(f"Event {event_id} not found in session {text}; see its events.")
        if before is None:
            raise UsageError(f"{event_id!r} is the first event of the session: choose a later one.")
        return before

    def delete(self, text: str) -> Trashed:
        return trash.delete(self.home, self.folder(text))

    def deleted(self) -> Sequence[Trashed]:
        return trash.list_trash(self.home)

    def restore(self, text: str) -> Trashed:
        return trash.restore(self.home, text)

    def _readable(self, text: str) -> str:
        path = self.folder(text).events
        check_readable(path)
        return path
