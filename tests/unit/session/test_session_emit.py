"""Emitting: an event is in the log before it is folded and before subscribers see it."""

from pathlib import Path
from typing import ClassVar

import pytest

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.user import UserMessage
from trimtab.session.log import EventLog
from trimtab.session.session import Projections, Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    log = EventLog.create(str(tmp_path / "events.jsonl"))
    return Session("s", log, Projections())


def test_an_event_that_cannot_be_stored_is_folded_by_nobody_and_heard_by_nobody(
    session: Session,
) -> None:
    heard: list[Event] = []
    session.subscribe(lambda event, _: heard.append(event))
    session.emit(UserMessage(content="stored"))
    last_id = session.log.last_id
    session.log.close()  # as good as a full disk: nothing can be appended
    with pytest.raises(TrimtabError):
        session.emit(UserMessage(content="lost"))
    assert len(session.conversation.messages) == 1
    assert [event.data.content for event in heard] == ["stored"]
    assert session.log.last_id == last_id


def test_whoever_hears_of_an_event_finds_it_in_the_log_and_in_the_folds(
    session: Session,
) -> None:
    found: list[tuple[bool, int]] = []

    def look(event: Event, line: bytes) -> None:
        lines = Path(session.log.path).read_bytes().split(b"\n")
        found.append((line in lines, len(session.conversation.messages)))

    session.subscribe(look)
    for number in range(3):
        session.emit(UserMessage(content=str(number)))
    session.close()
    assert found == [(True, 1), (True, 2), (True, 3)]


def test_what_is_folded_is_in_the_log_already(session: Session) -> None:
    """A projection that reads the log finds the event it is given."""

    class Looker:
        reads: ClassVar[frozenset[str]] = frozenset(("user.message",))

        def __init__(self) -> None:
            self.found: list[bool] = []

        def apply(self, event: Event) -> None:
            self.found.append(event.id.encode() in Path(session.log.path).read_bytes())

    looker = Looker()
    session.projections.add(looker)
    session.emit(UserMessage(content="one"))
    session.emit(UserMessage(content="two"))
    session.close()
    assert looker.found == [True, True]
