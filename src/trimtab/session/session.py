"""A session: the one writer of its log, and what is folded from it."""

from collections.abc import Callable, Iterable

from trimtab.contracts.events.codec import encode
from trimtab.contracts.events.envelope import Event, EventData, Subscriber
from trimtab.contracts.ids import is_uuid, new_id, timestamp
from trimtab.session.log import EventLog
from trimtab.session.masking import EventMask
from trimtab.session.projections import Projection
from trimtab.session.projections.approvals import Approvals
from trimtab.session.projections.changes import CodeChanges
from trimtab.session.projections.conversation import Conversation
from trimtab.session.projections.queue import Queue
from trimtab.session.projections.title import Title
from trimtab.session.projections.usage import UsageLedger
from trimtab.session.unmasked import keep_unmasked, read_events

"""Called with each event and its line of JSON, in order, on the loop's thread. Must not block."""

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
"""Events that are on their way to the disk as soon as they are emitted."""


class Projections:
    """All folds of a session; `replay` builds them from a log, `emit` keeps them up to date."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.usage = UsageLedger()
        self.changes = CodeChanges()
        self.title = Title()
        self.queue = Queue()
        self.approvals = Approvals()
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
        )

    def join(self, projection: Projection) -> None:
        """Keep another fold up to date from now on, such as the conversation of a sub-agent."""
        for wire_name in projection.reads:
            self._readers.setdefault(wire_name, []).append(projection)

    def leave(self, projection: Projection) -> None:
        for wire_name in projection.reads:
            self._readers[wire_name].remove(projection)

    @property
    def wanted(self) -> frozenset[str]:
        """The event types any fold looks at."""
        return frozenset(self._readers)

    def apply(self, event: Event) -> None:
        for projection in self._readers.get(event.type, ()):
            projection.apply(event)


def replay(path: str) -> Projections:
    """Fold a log from the start. Streams: memory holds what the folds keep, never the log."""
    projections = Projections()
    for event in read_events(path, projections.wanted):
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
            log.last_id = None  # some other program's id; clients accept only UUIDs as parents
        self._subscribers: list[Subscriber] = []
        self.mask: EventMask | None = None
        """Hides secrets in what is stored and shown, where there may be any."""

    @property
    def conversation(self) -> Conversation:
        return self.projections.conversation

    @property
    def prompt_tokens(self) -> int | None:
        return self.projections.usage.last_input_tokens

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have every event from now on given to `subscriber`; returns what ends that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def emit(
        self, data: EventData, *, agent_id: str | None = None, ephemeral: bool | None = None
    ) -> Event:
        """Record that something happened. `ephemeral` overrides what is usual for the type."""
        if self.mask is not None:
            if (rest := self.mask.take_rest(data)) is not None:
                self._emit(rest, agent_id, ephemeral=True)
            joined = self.mask.join(data)
            if joined is None:  # it waits for the next piece, and nobody hears of it before
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
        seen = event
        if self.mask is not None:
            seen, event, line = self.mask.cover(event, line)
        if not event.ephemeral:
            if seen is not event and event.type in self.projections.wanted:
                keep_unmasked(self.log.path, seen)
            self.log.append(line)
            self.log.last_id = event.id
            if event.type in SYNCED:
                self.log.sync_soon()
        self.projections.apply(seen)
        for subscriber in tuple(self._subscribers):
            subscriber(event, line)
        return event

    async def synced(self) -> None:
        """Wait until everything emitted so far would survive a power cut."""
        await self.log.synced()

    def close(self) -> None:
        self.log.close()
