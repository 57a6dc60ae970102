"""The queue of a session: nothing typed is lost, whatever is done to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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
