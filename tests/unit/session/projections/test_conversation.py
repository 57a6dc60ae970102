"""The conversation is always something a model service accepts."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from killkit import well_formed
from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.context import SessionCompactionComplete, SessionCompactionStart
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.events.tool import ToolExecutionComplete
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.messages import INTERRUPTED, Image, Text, ToolMessage
from trimtab.contracts.messages import UserMessage as Asked
from trimtab.session.projections.conversation import Conversation


def fold(*datas: EventData) -> Conversation:
    conversation = Conversation()
    for data in datas:
        conversation.apply(
            Event(type=data.wire_name, data=data, id="", timestamp="", parent_id=None)
        )
    return conversation


def says(text: str, *calls: str) -> AssistantMessage:
    requests = [
        {"toolCallId": c, "name": "t", "arguments": {"a": 1}, "type": "function"} for c in calls
    ]
    return AssistantMessage(message_id="m", content=text, tool_requests=requests)


def done(call_id: str, text: str = "ok") -> ToolExecutionComplete:
    return ToolExecutionComplete(tool_call_id=call_id, success=True, result={"content": text})


def test_results_stand_in_the_order_they_were_asked_for() -> None:
    conversation = fold(
        UserMessage(content="go"), says("", "a", "b"), done("b", "B"), done("a", "A")
    )
    assert [m.text for m in conversation.messages if isinstance(m, ToolMessage)] == ["A", "B"]


def test_a_call_without_result_reads_as_interrupted() -> None:
    conversation = fold(UserMessage(content="go"), says("", "a", "b"), done("b"))
    texts = [m.text for m in conversation.messages if isinstance(m, ToolMessage)]
    assert texts == [INTERRUPTED, "ok"]
    assert conversation.open_calls == ("a",)


def test_what_comes_while_calls_are_open_follows_their_results() -> None:
    conversation = fold(
        UserMessage(content="go"),
        says("", "a"),
        UserMessage(content="hurry"),
        done("a"),
        says("done"),
    )
    kinds = [type(m).__name__ for m in conversation.messages]
    assert kinds == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "UserMessage",
        "AssistantMessage",
    ]


def test_transformed_text_wins_over_what_was_typed() -> None:
    conversation = fold(UserMessage(content="hi", transformed_content="<now/> hi"))
    assert conversation.messages[0] == Asked.of("<now/> hi")


def test_images_become_parts_after_their_names() -> None:
    blob = {"type": "blob", "data": "AA==", "mimeType": "image/png", "displayName": "x.png"}
    conversation = fold(
        UserMessage(content="look", attachments=[blob, {"type": "file", "path": "y"}])
    )
    parts: Any = conversation.messages[0]
    assert parts.parts == (
        Text(text="look"),
        Text(text="x.png"),
        Image(data="AA==", mime_type="image/png", name="x.png"),
    )


def test_a_failure_shows_the_model_its_own_text() -> None:
    failed = ToolExecutionComplete(
        tool_call_id="a",
        success=False,
        error={"message": "short", "code": "failure"},
        model_text="long",
    )
    conversation = fold(says("", "a"), failed)
    assert conversation.messages[-1] == ToolMessage(call_id="a", text="long", name="t", failed=True)


def test_the_last_system_message_is_the_system_prompt() -> None:
    conversation = fold(
        SystemMessage(role="system", content="one"), SystemMessage(role="system", content="two")
    )
    assert conversation.system == "two"
    assert conversation.messages == []


def test_compaction_replaces_what_came_before_its_start_and_keeps_the_rest() -> None:
    conversation = fold(
        UserMessage(content="old"), says("older"), SessionCompactionStart(), UserMessage(content="new"),
        SessionCompactionComplete(success=True, summary_content="summary"),
    )  # fmt: skip
    assert [m.parts[0].text for m in conversation.messages] == ["summary", "new"]  # type: ignore[union-attr]


def test_a_compaction_that_failed_or_never_ended_changes_nothing() -> None:
    before = fold(UserMessage(content="old"), says("older"))
    after = fold(
        UserMessage(content="old"), says("older"), SessionCompactionStart(),
        SessionCompactionComplete(success=False), SessionCompactionStart(),
    )  # fmt: skip
    assert list(after.messages) == list(before.messages)


def test_events_of_another_agent_are_another_conversation() -> None:
    conversation = Conversation()
    data = UserMessage(content="theirs")
    event = Event(type=data.wire_name, data=data, id="", timestamp="", parent_id=None, agent_id="x")
    conversation.apply(event)
    assert not conversation.messages
    theirs = Conversation("x")
    theirs.apply(event)
    assert len(theirs.messages) == 1


ids = st.sampled_from("abcdef")
anything = st.lists(
    st.one_of(
        st.builds(UserMessage, content=st.text(min_size=1, max_size=5)),
        st.lists(ids, unique=True, max_size=4).map(lambda calls: says("x", *calls)),
        ids.map(done),
        st.just(SessionCompactionStart()),
        st.booleans().map(lambda ok: SessionCompactionComplete(success=ok, summary_content="s")),
    ),
    max_size=30,
)


@given(anything)
def test_any_sequence_of_events_gives_a_conversation_services_accept(
    datas: list[EventData],
) -> None:
    conversation = Conversation()
    for data in datas:
        conversation.apply(
            Event(type=data.wire_name, data=data, id="", timestamp="", parent_id=None)
        )
        assert well_formed(list(conversation.messages))
