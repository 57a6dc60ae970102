"""Projections: state of a session, folded from its events. Pure: no I/O, no clock."""

from typing import ClassVar, Protocol

from trimtab.contracts.events.envelope import Event


class Projection(Protocol):
    """A fold over events.

    Folding a log from the start gives the same result as folding the events live. `reads` names
    the event types it is given.
    """

    reads: ClassVar[frozenset[str]]

    def apply(self, event: Event) -> None: ...
