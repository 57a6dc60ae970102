"""A session: the fields of its events, who hears of them, and what is cut off."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from logkit import event_id, joined, lines_in, short_log
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.events.assistant import AssistantMessage, AssistantMessageDelta
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.secrets import Masker
from trimtab.session.log import EventLog
from trimtab.session.masking import EventMask
from trimtab.session.session import Projections, Session, replay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.fixture
def session(path: Path) -> Iterator[Session]:
    session = Session("s", EventLog.create(str(path)), Projections())
    yield session
    session.close()


@pytest.fixture
def stored(path: Path) -> Iterator[Session]:
    path.write_bytes(joined(short_log()))
    session = Session("s", EventLog.open(str(path)), replay(str(path)))
    yield session
    session.close()


def test_every_durable_event_names_the_one_before_it(session: Session) -> None:
    first = session.emit(UserMessage(content="a"))
    piece = session.emit(AssistantMessageDelta(message_id="m", delta_content="x"))
    second = session.emit(UserMessage(content="b"), agent_id="child")
    assert (first.parent_id, piece.parent_id, second.parent_id) == (None, first.id, first.id)
    assert [event.ephemeral for event in (first, piece, second)] == [False, True, False]
    assert (first.agent_id, second.agent_id) == (None, "child")
    assert session.log.last_id == second.id
    stored = [json.loads(line)["id"] for line in lines_in(session.log.path)]
    assert stored == [first.id, second.id]


def test_who_emits_may_say_if_an_event_is_stored(session: Session) -> None:
    session.emit(UserMessage(content="a"), ephemeral=True)
    assert session.log.count == 0
    session.emit(AssistantMessageDelta(message_id="m", delta_content="x"), ephemeral=False)
    assert session.log.count == 1


def test_an_id_of_another_program_is_not_named_as_parent(path: Path) -> None:
    for last, parent in (("not-a-uuid", None), (event_id(3), event_id(3))):
        path.write_bytes(b'{"type":"x","data":{},"id":"%s"}\n' % last.encode())
        session = Session("s", EventLog.open(str(path)), Projections())
        assert session.emit(UserMessage(content="a")).parent_id == parent
        session.close()


def test_a_subscriber_hears_everything_until_it_unsubscribes(session: Session) -> None:
    heard: list[str] = []
    unsubscribe = session.subscribe(lambda event, _: heard.append(event.type))
    session.subscribe(lambda *_: unsubscribe())
    session.subscribe(lambda *_: heard.append("last"))
    session.emit(UserMessage(content="a"))
    session.emit(UserMessage(content="b"))
    unsubscribe()
    assert heard == ["user.message", "last", "last"]


def test_prompts_are_synced_at_once_and_other_events_later(path: Path) -> None:
    synced = threading.Semaphore(0)

    def sync(_fd: int) -> None:
        synced.release()

    session = Session("s", EventLog.create(str(path), sync=sync), Projections())
    session.emit(ModelCall(purpose="main", model="m", status="success"))
    session.emit(UserMessage(content="a"), ephemeral=True)
    assert not any(thread.name == "log-sync" for thread in threading.enumerate())
    session.emit(UserMessage(content="a"))
    assert synced.acquire(timeout=50)
    session.close()


def test_a_closed_session_tells_nobody_anything(session: Session) -> None:
    heard: list[Event] = []
    session.subscribe(lambda event, _: heard.append(event))
    session.close()
    session.emit(UserMessage(content="a"), ephemeral=True)
    with pytest.raises(TrimtabError, match="closed"):
        session.emit(UserMessage(content="b"))
    assert heard == []


def test_the_prompt_tokens_are_those_of_the_last_call(session: Session) -> None:
    assert session.prompt_tokens is None
    session.emit(ModelCall(purpose="main", model="m", status="success", input_tokens=5))
    assert session.prompt_tokens == 5


class Counter:
    reads: ClassVar[frozenset[str]] = frozenset(("user.message", "made.up"))

    def __init__(self) -> None:
        self.count = 0

    def apply(self, event: Event) -> None:
        self.count += 1


def test_a_projection_is_given_what_it_reads_until_it_is_removed() -> None:
    projections, counter = Projections(), Counter()
    assert "made.up" not in projections.event_types
    projections.add(counter)
    assert {"made.up", "user.message", "trimtab.model_call"} <= projections.event_types
    for kind in ("user.message", "made.up", "session.idle"):
        data = UserMessage(content="x")
        projections.apply(Event(type=kind, data=data, id="", timestamp="", parent_id=None))
    projections.remove(counter)
    data = UserMessage(content="x")
    projections.apply(Event(type="made.up", data=data, id="", timestamp="", parent_id=None))
    assert counter.count == 2
    assert projections.title.text == "x"


def test_an_event_and_all_after_it_are_cut_off_and_kept_aside(stored: Session, path: Path) -> None:
    lines = short_log()
    assert stored.truncate(event_id(4)) == len(lines) - 4
    assert path.read_bytes() == joined(lines[:4])
    (aside,) = path.parent.glob("events.jsonl.cut-*")
    assert aside.read_bytes() == joined(lines[4:])
    assert ":" not in aside.name
    assert len(stored.conversation.messages) == 1
    assert stored.log.last_id == event_id(3)
    assert stored.emit(UserMessage(content="on")).parent_id == event_id(3)
    assert len(lines_in(path)) == 5


def test_the_last_event_can_be_cut_off_and_the_first_cannot(stored: Session, path: Path) -> None:
    assert stored.truncate(event_id(11)) == 1
    with pytest.raises(UsageError, match="first event of a session cannot be removed"):
        stored.truncate(event_id(0))
    with pytest.raises(UsageError, match="Event nosuch not found in session s"):
        stored.truncate("nosuch")
    assert path.read_bytes() == joined(short_log()[:11])
    assert stored.truncate(event_id(1)) == 10
    assert len(list(path.parent.glob("events.jsonl.cut-*"))) == 2


def test_a_withheld_end_is_shown_before_the_event_that_completes_its_text(
    session: Session,
) -> None:
    session.mask = EventMask(Masker(["correct horse"]))
    heard: list[tuple[str, bool, str | None]] = []
    session.subscribe(lambda event, _: heard.append((event.type, event.ephemeral, event.agent_id)))
    delta = AssistantMessageDelta(message_id="m", delta_content="correct ")
    withheld = session.emit(delta, agent_id="a")
    assert (withheld.data, withheld.ephemeral, heard) == (delta, True, [])

    session.emit(AssistantMessage(message_id="m", content="correct "), agent_id="a")
    assert heard == [("assistant.message_delta", True, "a"), ("assistant.message", False, "a")]


def test_a_secret_is_shown_to_the_model_of_a_resumed_session_only(session: Session) -> None:
    session.mask = EventMask(Masker(likely=["hunter2hunter2"]))
    shown: list[bytes] = []
    session.subscribe(lambda _, line: shown.append(line))
    session.emit(UserMessage(content="my hunter2hunter2"))
    path = Path(session.log.path)
    assert b"hunter2" not in path.read_bytes()
    assert b"hunter2" not in shown[0]
    kept = path.with_name("unmasked.jsonl")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert list(replay(str(path)).conversation.messages) == list(session.conversation.messages)
    assert "hunter2hunter2" in str(session.conversation.messages)
    before = kept.read_bytes()
    session.emit(AssistantMessageDelta(message_id="m", delta_content="hunter2hunter2 "))
    session.emit(UserMessage(content="nothing"))
    assert kept.read_bytes() == before
