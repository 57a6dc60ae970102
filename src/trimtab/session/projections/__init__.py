"""Everything known about a session, folded from its events. Pure: no I/O, no clock."""

from typing import ClassVar, Protocol

from trimtab.contracts.events.envelope import Event


class Projection(Protocol):
    """A fold over events.

    Folding a log from the start gives the same answers as having been there: live == replay.
    `reads` names the event types it looks at; others are never given to it.
    """

    reads: ClassVar[frozenset[str]]

    def apply(self, event: Event) -> None: ...
