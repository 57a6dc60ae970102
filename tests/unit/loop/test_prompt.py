"""The next prompt of a run, and the message that records it."""

import pytest

from loopkit import MemorySession, make_run
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.run import Prompt
from trimtab.loop.prompt import next_prompt, record_prompt


def test_the_open_calls_of_a_suspended_run_come_first_and_are_not_billed() -> None:
    run = make_run([], "waiting")
    run.pending_calls = (ToolCall(id="1", name="echo", arguments="{}"),)
    pending = next_prompt(run)
    assert pending is not None
    assert (pending.source, pending.billable, pending.text) == ("pending", False, "")
    run.pending_calls = ()
    prompt = next_prompt(run)
    assert prompt is not None
    assert prompt.text == "waiting"
    assert next_prompt(run) is None


@pytest.mark.parametrize(
    ("prompt", "content", "source", "delivery"),
    [
        (Prompt(text="go", id="1"), "go", None, "idle"),
        (Prompt(text="long", display="/short", id="1"), "/short", None, "idle"),
        (Prompt(text="go on", source="autopilot", id="1"), "", "autopilot", "idle"),
        (Prompt(text="now", mode="immediate", id="1"), "now", None, "steering"),
    ],
)
def test_a_prompt_is_recorded_as_it_was_typed_and_as_it_is_sent(
    prompt: Prompt, content: str, source: str | None, delivery: str
) -> None:
    run = make_run([])
    record_prompt(run, prompt, delivery="idle")
    session = run.session
    assert isinstance(session, MemorySession)
    (message,) = session.of("user.message")
    assert (message.content, message.source, message.delivery) == (content, source, delivery)
    assert message.transformed_content == prompt.text
    assert message.is_autopilot_continuation is (True if source == "autopilot" else None)
    assert (run.origin is prompt) == (source is None and delivery == "idle")


def test_a_notification_is_not_a_message_of_the_person() -> None:
    run = make_run([])
    prompt = Prompt(text="It ended.", source="notification", notification={"type": "x"}, id="1")
    record_prompt(run, prompt, delivery="idle")
    session = run.session
    assert isinstance(session, MemorySession)
    (said,) = session.of("system.notification")
    assert (said.content, said.kind) == ("It ended.", {"type": "x"})
    assert session.of("user.message") == []
