"""A session: the only writer of its log, and the projections folded from the log."""

import os
from collections.abc import Callable, Iterable

from trimtab.config.files import cannot, replace_file
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.codec import encode
from trimtab.contracts.events.envelope import Event, EventData, Subscriber
from trimtab.contracts.ids import is_uuid, new_id, timestamp
from trimtab.session.log import EventLog
from trimtab.session.masking import EventMask
from trimtab.session.projections import Projection
from trimtab.session.projections.agents import Agents
from trimtab.session.projections.approvals import Approvals
from trimtab.session.projections.changes import CodeChanges
from trimtab.session.projections.conversation import Conversation
from trimtab.session.projections.instructions import SentInstructions
from trimtab.session.projections.queue import Queue
from trimtab.session.projections.runtimes import Runtimes
from trimtab.session.projections.title import Title
from trimtab.session.projections.usage import UsageLedger
from trimtab.session.records import read_records
from trimtab.session.unmasked import keep_unmasked, read_events

SYNCED = frozenset(
    (
        "user.message",
        "assistant.message",
        "permission.completed",
        "tool.execution_complete",
        "assistant.turn_end",
        "session.shutdown",
        "trimtab.prompt_queued",
    )
)
"""Events that start a sync to disk as soon as they are emitted."""


class Projections:
    """All projections of a session; `replay` folds a log, `emit` keeps them up to date."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.usage = UsageLedger()
        self.changes = CodeChanges()
        self.title = Title()
        self.queue = Queue()
        self.approvals = Approvals()
        self.agents = Agents()
        self.instructions = SentInstructions()
        self.runtimes = Runtimes()
        self._readers: dict[str, list[Projection]] = {}
        for projection in self.all():
            for wire_name in projection.reads:
                self._readers.setdefault(wire_name, []).append(projection)

    def all(self) -> Iterable[Projection]:
        return (
            self.conversation,
            self.usage,
            self.changes,
            self.title,
            self.queue,
            self.approvals,
            self.agents,
            self.instructions,
            self.runtimes,
        )

    def add(self, projection: Projection) -> None:
        """Keep another projection up to date, such as the conversation of a sub-agent."""
        for wire_name in projection.reads:
            self._readers.setdefault(wire_name, []).append(projection)

    def remove(self, projection: Projection) -> None:
        for wire_name in projection.reads:
            self._readers[wire_name].remove(projection)

    @property
    def event_types(self) -> frozenset[str]:
        """The event types that any projection reads."""
        return frozenset(self._readers)

    def apply(self, event: Event) -> None:
        for projection in self._readers.get(event.type, ()):
            projection.apply(event)


def replay(path: str) -> Projections:
    """Fold a log from the start. Reads a stream, so the log is never in memory as a whole."""
    projections = Projections()
    for event in read_events(path, projections.event_types):
        projections.apply(event)
    return projections


class Session:
    """The state of one conversation.

    `emit` is a plain function on the loop's thread: append, fold, publish, in that order, so that
    order needs no lock and nobody sees an event that is not in the log.
    """

    def __init__(self, session_id: str, log: EventLog, projections: Projections) -> None:
        self.id = session_id
        self.log = log
        self.projections = projections
        if log.last_id and not is_uuid(log.last_id):
            log.last_id = None  # another program's id; clients accept only UUIDs as parents
        self._subscribers: list[Subscriber] = []
        self.mask: EventMask | None = None
        """Masks secrets in stored and shown events, if there may be any."""

    @property
    def conversation(self) -> Conversation:
        return self.projections.conversation

    @property
    def prompt_tokens(self) -> int | None:
        return self.projections.usage.last_input_tokens

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event from now on. Returns an unsubscribe function."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def emit(
        self, data: EventData, *, agent_id: str | None = None, ephemeral: bool | None = None
    ) -> Event:
        """Record that something happened. `ephemeral` overrides the default of the type."""
        if self.mask is not None:
            if (rest := self.mask.flush(data)) is not None:
                self._emit(rest, agent_id, ephemeral=True)
            joined = self.mask.mask_piece(data)
            if joined is None:  # withheld until the next piece
                return self._make(data, agent_id, ephemeral=True)
            data = joined
        return self._emit(data, agent_id, ephemeral)

    def _make(self, data: EventData, agent_id: str | None, ephemeral: bool | None) -> Event:
        return Event(
            type=data.wire_name,
            data=data,
            id=new_id(),
            timestamp=timestamp(),
            parent_id=self.log.last_id,
            ephemeral=data.is_ephemeral if ephemeral is None else ephemeral,
            agent_id=agent_id,
        )

    def _emit(self, data: EventData, agent_id: str | None, ephemeral: bool | None) -> Event:
        event = self._make(data, agent_id, ephemeral)
        line = encode(event)
        for_model = event
        if self.mask is not None:
            for_model, event, line = self.mask.mask_event(event, line)
        if not event.ephemeral:
            if for_model is not event and event.type in self.projections.event_types:
                keep_unmasked(self.log.path, for_model)
            self.log.append(line)
            self.log.last_id = event.id
            if event.type in SYNCED:
                self.log.sync_soon()
        self.projections.apply(for_model)
        for subscriber in tuple(self._subscribers):
            subscriber(event, line)
        return event

    async def synced(self) -> None:
        """Wait until everything emitted so far would survive a power cut."""
        await self.log.synced()

    def truncate(self, event_id: str) -> int:
        """Remove an event and everything after it; return how many events.

        A new log replaces the old one atomically, so a crash leaves either. The removed events are
        kept in a file next to it.
        """
        path = self.log.path
        records = list(read_records(path))
        index = next((at for at, record in enumerate(records) if record.id == event_id), None)
        if index is None:
            raise UsageError(f"Event {event_id} not found in session {self.id}; see its events.")
        if index == 0:
            raise UsageError("The first event of a session cannot be removed; delete the session.")
        aside = f"{path}.cut-{timestamp().replace(':', '')}-{os.urandom(2).hex()}"
        self.log.close()
        try:
            replace_file(aside, (record.line + b"\n" for record in records[index:]))
            replace_file(path, (record.line + b"\n" for record in records[:index]))
        except OSError as error:
            raise cannot("cut", os.path.basename(path), error) from error
        finally:
            self.log = EventLog.open(path)
            self.projections = replay(path)
        return len(records) - index

    @property
    def is_open(self) -> bool:
        """True until the log is released."""
        return self.log.is_open

    def close(self) -> None:
        """Release the log and every subscriber."""
        self._subscribers.clear()
        self.log.close()
