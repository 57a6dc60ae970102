"""The queue of a session: nothing typed is lost, whatever is done to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.contracts.provider import AnswerSchema
from trimtab.contracts.run import Prompt
from trimtab.session.inbox import Inbox, TaskInbox
from trimtab.session.log import EventLog
from trimtab.session.session import Projections, Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    log = EventLog.create(str(tmp_path / "events.jsonl"))
    yield Session("s", log, Projections())
    log.close()


@pytest.fixture
def inbox(session: Session) -> Inbox:
    inbox = Inbox(session)
    for name in "abc":
        inbox.put(Prompt(text=f"text {name}", id=name))
    return inbox


def names(inbox: Inbox) -> str:
    return "".join(prompt.message_id for prompt in inbox.pending)


@pytest.mark.parametrize(
    ("name", "position", "order"),
    [("c", 0, "cab"), ("c", 1, "acb"), ("a", 1, "bac"), ("a", 2, "bca"), ("a", 99, "bca"),
     ("b", -5, "bac")],
)  # fmt: skip
def test_a_prompt_is_moved_to_a_place(inbox: Inbox, name: str, position: int, order: str) -> None:
    assert inbox.move(name, position)
    assert names(inbox) == order


def test_a_prompt_that_no_longer_waits_cannot_be_changed(inbox: Inbox) -> None:
    taken = inbox.take()
    assert taken is not None
    assert taken.id == "a"
    assert not inbox.move("a", 1)
    assert not inbox.edit("a", "new")
    assert not inbox.steer("a")
    assert not inbox.withdraw("a")
    inbox.give_back(taken)
    assert inbox.edit("a", "new", "/new")
    again = inbox.take()
    assert again is not None
    assert (again.id, again.text, again.display) == ("a", "new", "/new")


def test_a_paused_queue_gives_steering_prompts_only(inbox: Inbox) -> None:
    inbox.pause(paused=True)
    assert inbox.take() is None
    assert inbox.steer("b")
    steering = inbox.take()
    assert steering is not None
    assert (steering.id, steering.mode) == ("b", "immediate")
    inbox.pause(paused=False)
    assert names(inbox) == "ac"
    assert inbox.take_immediate() is None


def test_held_prompts_wait_until_they_are_released(inbox: Inbox) -> None:
    inbox.put(Prompt(text="n", id="n", notification={"type": "x"}))
    assert inbox.hold() == 3
    assert names(inbox) == "n"
    assert "".join(prompt.message_id for prompt in inbox.held) == "abc"
    inbox.release(["b"])
    assert names(inbox) == "bn"
    inbox.steer("c")
    assert names(inbox) == "bcn"


def test_prompts_of_an_earlier_process_are_held_except_notifications(
    session: Session, inbox: Inbox
) -> None:
    inbox.put(Prompt(text="n", id="n", notification={"type": "x"}))
    later = Inbox(session)
    assert names(later) == "n"
    assert len(later.held) == 3


def test_a_prompt_comes_back_as_it_was_put_and_headers_are_not_in_the_log(
    session: Session,
) -> None:
    inbox = Inbox(session)
    blob = {"type": "blob", "data": "AA=="}
    prompt = Prompt(
        text="t", display="d", attachments=(blob,), billable=False, headers={"x": "secret-value"}
    )
    name = inbox.put(prompt, front=True)
    taken = inbox.take()
    assert taken is not None
    assert (taken.id, taken.text, taken.display, taken.attachments) == (name, "t", "d", (blob,))
    assert (taken.billable, taken.headers, taken.mode) == (False, {"x": "secret-value"}, "enqueue")
    assert b"secret-value" not in Path(session.log.path).read_bytes()


def test_the_task_of_a_sub_agent_comes_before_its_messages(session: Session) -> None:
    task = Prompt(text="task", source="agent", id="t")
    inbox = TaskInbox(session, "child", task)
    inbox.put(Prompt(text="message", id="m"))
    assert [inbox.is_empty] == [False]
    assert inbox.take() is task
    inbox.give_back(task)
    assert inbox.take() is task
    message = inbox.take()
    assert message is not None
    assert message.id == "m"
    assert [inbox.is_empty] == [True]
    assert Inbox(session).pending == []


def test_every_field_of_a_prompt_comes_back(session: Session) -> None:
    inbox = Inbox(session)
    schema = AnswerSchema(schema={"type": "object"}, name="n", strict=False)
    prompt = Prompt(
        text="t", display="d", mode="immediate", source="hook", billable=False, id="x",
        attachments=({"type": "file"},), headers={"a": "b"}, answer_schema=schema,
        notification={"type": "n"},
    )  # fmt: skip
    assert inbox.put(prompt) == "x"
    assert inbox.take() == prompt
    plain = Prompt(text="p", id="y")
    inbox.put(plain)
    assert inbox.take() == plain
    assert inbox.take() is None


def test_a_prompt_without_an_id_gets_a_new_one(session: Session) -> None:
    inbox = Inbox(session)
    first, second = inbox.put(Prompt(text="a")), inbox.put(Prompt(text="a"))
    assert first != second
    assert names(inbox) == first + second
    assert Inbox(session).put(Prompt(text="z", id="z"), front=True) == "z"
    assert names(inbox) == "z" + first + second


def emitted(session: Session) -> list[str]:
    found: list[str] = []
    session.subscribe(lambda event, _: found.append(event.type))
    return found


def test_every_change_of_the_queue_is_announced(session: Session, inbox: Inbox) -> None:
    found = emitted(session)
    announced = "pending_messages.modified"
    inbox.put(Prompt(text="d", id="d"))
    assert found == ["trimtab.prompt_queued", announced]
    found.clear()
    assert inbox.edit("a", "new")
    assert found == ["trimtab.prompt_changed", announced]
    found.clear()
    assert inbox.withdraw("a", "why")
    assert found == ["trimtab.prompt_withdrawn", announced]
    found.clear()
    inbox.pause(paused=True)
    inbox.pause(paused=True)
    assert found == ["trimtab.queue_paused"]
    inbox.pause(paused=False)
    assert found == ["trimtab.queue_paused"] * 2
    found.clear()
    for unknown in ("a", "z"):
        assert not inbox.withdraw(unknown)
        assert not inbox.edit(unknown, "x")
    assert found == []
    assert names(inbox) == "bcd"


def test_a_consumed_prompt_leaves_the_queue_once(session: Session, inbox: Inbox) -> None:
    taken = inbox.take()
    assert taken is not None
    reasons: list[str | None] = []
    session.subscribe(
        lambda event, _: (
            reasons.append(event.data.reason) if hasattr(event.data, "reason") else None
        )
    )
    inbox.consume(taken)
    inbox.consume(taken)
    inbox.consume(Prompt(text="never queued", id="q"))
    assert reasons == ["consumed"]
    inbox.give_back(taken)
    assert names(inbox) == "bc"


def test_a_steering_prompt_is_taken_before_others_wait(inbox: Inbox) -> None:
    assert inbox.take_immediate() is None
    inbox.put(Prompt(text="now", id="n", mode="immediate"))
    assert [prompt.message_id for prompt in inbox.ready] == ["a", "b", "c", "n"]
    steering = inbox.take_immediate()
    assert steering is not None
    assert steering.id == "n"
    assert names(inbox) == "abc"


def test_a_place_is_counted_among_the_prompts_that_wait(inbox: Inbox) -> None:
    inbox.hold()
    inbox.release(["a", "c"])
    assert inbox.move("a", 1)
    assert [prompt.message_id for prompt in inbox.held] == ["b"]
    assert names(inbox) == "ac"
    assert inbox.move("a", 2)
    assert names(inbox) == "ca"
    taken = inbox.take()
    assert taken is not None
    assert (taken.id, inbox.move("c", 0)) == ("c", False)


def test_a_queue_of_a_sub_agent_holds_nothing_back(session: Session) -> None:
    earlier = TaskInbox(session, "child")
    assert earlier.is_empty
    earlier.put(Prompt(text="m", id="m"))
    later = TaskInbox(session, "child")
    assert (names(later), later.is_empty) == ("m", False)
    message = later.take()
    assert message is not None
    later.give_back(message)
    assert names(later) == "m"


def test_only_a_task_is_given_back_as_the_task(session: Session) -> None:
    inbox = TaskInbox(session, "child", Prompt(text="task", source="agent", id="t"))
    assert inbox.take() is not None
    assert inbox.is_empty
    inbox.give_back(Prompt(text="x", source="user", id="x"))
    assert inbox.is_empty
    inbox.put(Prompt(text="m", source="agent", id="m"))
    message = inbox.take()
    assert message is not None
    inbox.give_back(message)
    assert inbox.take() == message
    assert inbox.take() is None
