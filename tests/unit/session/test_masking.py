"""A resumed session shows the model what it saw before, although the log is masked."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trimtab.contracts.events.assistant import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantReasoning,
    AssistantReasoningDelta,
)
from trimtab.contracts.events.codec import decode, encode
from trimtab.contracts.events.context import SessionCompactionComplete, SessionCompactionStart
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionPartialResult
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.secrets import Masker, find_secrets
from trimtab.session.log import EventLog
from trimtab.session.masking import EventMask
from trimtab.session.session import Projections, Session, replay

NAMED = "correct horse battery"
ENVIRONMENT = {"MINE": NAMED, "DB_PASSWORD": "hunter2hunter2"}
TOKENS = st.sampled_from(
    (
        "ghp_" + "a1B2c3D4e5" * 4,
        "github_pat_" + "A1" * 20,
        "sk-proj-" + "x9" * 20,
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-1234567890-abc",
        "AIza" + "x" * 35,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
        "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\n-----END PRIVATE KEY-----",
        "hunter2hunter2",
        NAMED,
        "******",
    )
)
TEXTS = st.lists(
    st.one_of(TOKENS, st.text(alphabet='ab "\\\n\t\u2028é\ud800{}*', max_size=8)), max_size=6
).map("".join)


def user(text: str) -> list[EventData]:
    return [UserMessage(content=text, transformed_content=f"<now>\n{text}")]


def system(text: str) -> list[EventData]:
    return [SystemMessage(role="system", content=text)]


def answer(text: str) -> list[EventData]:
    return [AssistantMessage(message_id="m", content=text, reasoning_text=text or None)]


def use(text: str) -> list[EventData]:
    request = {"toolCallId": "1", "name": "bash", "arguments": {"command": text}}
    return [
        AssistantMessage(message_id="m", content=text, tool_requests=[request]),
        ToolExecutionComplete(tool_call_id="1", success=True, result={"content": text}),
    ]


def fail(text: str) -> list[EventData]:
    request = {"toolCallId": "1", "name": "bash", "arguments": text}
    return [
        AssistantMessage(message_id="m", content="", tool_requests=[request]),
        ToolExecutionComplete(
            tool_call_id="1",
            success=False,
            error={"message": text, "code": "failure"},
            model_text=f"{text}!",
        ),
    ]


def compact(text: str) -> list[EventData]:
    return [
        SessionCompactionStart(),
        SessionCompactionComplete(success=True, summary_content=text or "nothing"),
    ]


EVENTS = st.builds(
    lambda make, text: make(text),
    st.sampled_from((user, system, answer, use, fail, compact)),
    TEXTS,
)


def shown(projections: Projections) -> Any:
    return projections.conversation.system, list(projections.conversation.messages)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS, max_size=8))
def test_messages_are_the_same_live_and_after_a_resume(groups: list[list[EventData]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        session = Session("s", EventLog.create(str(path)), Projections())
        session.mask = EventMask(find_secrets(ENVIRONMENT, ["MINE"]))
        for group in groups:
            for data in group:
                session.emit(data)
        session.close()
        assert shown(replay(str(path))) == shown(session.projections)
        for file in Path(folder).iterdir():
            assert NAMED.encode() not in file.read_bytes()
        assert b"hunter2hunter2" not in path.read_bytes()


def test_a_piece_that_may_begin_a_secret_is_withheld_and_never_stored(tmp_path: Path) -> None:
    log = EventLog.create(str(tmp_path / "events.jsonl"))
    session = Session("s", log, Projections())
    session.mask = EventMask(find_secrets(ENVIRONMENT, ("MINE",)))
    heard: list[str] = []
    session.subscribe(lambda event, _: heard.append(getattr(event.data, "delta_content", "")))
    withheld = session.emit(AssistantMessageDelta(message_id="m", delta_content="correct hor"))
    assert withheld.ephemeral
    session.emit(AssistantMessageDelta(message_id="m", delta_content="se battery and more"))
    session.emit(AssistantMessageDelta(message_id="m", delta_content=" correct h"))
    assert NAMED not in "".join(heard)
    assert "".join(heard).endswith(" and more ")
    session.emit(AssistantMessage(message_id="m", content="x"))
    log.close()
    (line,) = (tmp_path / "events.jsonl").read_bytes().splitlines()
    assert b'"assistant.message"' in line


def test_a_secret_within_one_piece_is_masked(tmp_path: Path) -> None:
    session = Session("s", EventLog.create(str(tmp_path / "events.jsonl")), Projections())
    session.mask = EventMask(find_secrets(ENVIRONMENT, ("MINE",)))
    heard: list[str] = []
    session.subscribe(lambda event, _: heard.append(getattr(event.data, "delta_content", "")))
    session.emit(AssistantMessageDelta(message_id="m", delta_content=f"It is {NAMED}."))
    session.close()
    assert heard == ["It is ******."]


def delta(text: str, name: str = "m") -> AssistantMessageDelta:
    return AssistantMessageDelta(message_id=name, delta_content=text)


def masking(*values: str) -> EventMask:
    return EventMask(Masker(values))


def test_a_piece_is_returned_with_what_was_withheld_before_it() -> None:
    mask = masking("correct horse")
    assert mask.mask_piece(delta("plain")) == delta("plain")
    assert mask.mask_piece(delta("it is corr")) == delta("it is ")
    assert mask.mask_piece(delta("ect")) is None
    assert mask.mask_piece(delta("ion")) == delta("correction")
    assert mask.mask_piece(delta("corr")) is None
    assert mask.mask_piece(delta("ect horse.")) == delta("******.")
    message = UserMessage(content="corr")
    assert mask.mask_piece(message) is message


def test_texts_that_stream_at_the_same_time_are_not_mixed() -> None:
    mask = masking("correct horse")
    assert mask.mask_piece(delta("corr", "one")) is None
    assert mask.mask_piece(delta("ect horse", "two")) == delta("ect horse", "two")
    output = ToolExecutionPartialResult(tool_call_id="one", partial_output="ect horse")
    assert mask.mask_piece(output) == output
    assert mask.flush(AssistantMessage(message_id="two", content="")) is None
    assert mask.flush(UserMessage(content="")) is None
    assert mask.flush(AssistantMessage(message_id="one", content="")) == delta("corr", "one")
    assert mask.flush(AssistantMessage(message_id="one", content="")) is None


def test_the_end_of_each_kind_of_stream_is_flushed() -> None:
    mask = masking("correct horse")
    output = ToolExecutionPartialResult(tool_call_id="c", partial_output="corr")
    assert mask.mask_piece(output) is None
    done = ToolExecutionComplete(tool_call_id="c", success=True)
    assert mask.flush(done) == output
    thought = AssistantReasoningDelta(reasoning_id="r", delta_content="corr")
    assert mask.mask_piece(thought) is None
    assert mask.flush(AssistantReasoning(reasoning_id="r", content="x")) == thought


def test_a_value_that_is_added_later_is_masked_from_then_on() -> None:
    mask = masking()
    assert mask.mask_piece(delta("correct horse.")) == delta("correct horse.")
    mask.add(["correct horse"])
    assert mask.mask_piece(delta("correct horse.")) == delta("******.")


def test_an_event_is_masked_for_the_model_and_for_others() -> None:
    mask = EventMask(Masker(["named secret"], ["likely secret"]))

    def masked(text: str) -> tuple[str, str, bytes]:
        data = UserMessage(content=text)
        event = Event(type=data.wire_name, data=data, id="1", timestamp="t", parent_id=None)
        for_model, for_others, line = mask.mask_event(event, encode(event))
        assert decode(line) == for_others
        if text == "nothing":
            assert for_model is for_others is event
        return for_model.data.content, for_others.data.content, line

    assert masked("nothing")[:2] == ("nothing", "nothing")
    assert masked("a named secret")[:2] == ("a ******", "a ******")
    model, others, line = masked("a likely secret")
    assert (model, others) == ("a likely secret", "a ******")
    assert b"likely secret" not in line
    both = masked("named secret, likely secret")
    assert both[:2] == ("******, likely secret", "******, ******")
