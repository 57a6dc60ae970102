"""The conversation is always something a model service accepts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killkit import well_formed
from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.context import (
    MECHANICAL,
    SessionCompactionComplete,
    SessionCompactionStart,
    SessionContextCleared,
)
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.own import ArgumentsChanged, ImagesRemoved
from trimtab.contracts.events.system import SystemMessage, SystemNotification
from trimtab.contracts.events.tool import ToolExecutionComplete
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.messages import (
    INTERRUPTED,
    Image,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
)
from trimtab.contracts.messages import AssistantMessage as Answered
from trimtab.contracts.messages import UserMessage as Asked
from trimtab.session.projections.conversation import (
    IMAGE_CHARACTERS,
    NO_IMAGE,
    Conversation,
)


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


PICTURE = {"type": "blob", "data": "QUJDREVGRw==", "mimeType": "image/png"}


def added(conversation: Conversation, *datas: EventData) -> Conversation:
    for data in datas:
        conversation.apply(
            Event(type=data.wire_name, data=data, id="", timestamp="", parent_id=None)
        )
    return conversation


def test_an_interrupted_call_is_a_failure_of_its_tool() -> None:
    request = {"toolCallId": "a", "name": "patch", "arguments": "x", "type": "custom"}
    answer = AssistantMessage(message_id="m", content="", tool_requests=[request])
    expected = ToolMessage(call_id="a", text=INTERRUPTED, name="patch", failed=True, kind="custom")
    assert fold(answer).messages[-1] == expected
    assert fold(answer, says("next")).messages[1] == expected


def test_the_result_of_a_call_has_its_name_and_kind() -> None:
    request = {"toolCallId": "a", "name": "patch", "arguments": "x", "type": "custom"}
    answer = AssistantMessage(message_id="m", content="", tool_requests=[request])
    conversation = fold(answer, done("a", "yes"))
    assert conversation.messages[-1] == ToolMessage(
        call_id="a", text="yes", name="patch", failed=False, kind="custom"
    )
    assert (conversation.open_calls, conversation.open_tool_calls) == ((), ())


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"success": True, "result": {"content": "fine"}}, "fine"),
        ({"success": True, "result": {"content": "fine"}, "model_text": ""}, ""),
        ({"success": True}, ""),
        ({"success": True, "result": {"content": 5}}, ""),
        ({"success": False, "error": {"message": "bad"}, "result": {"content": "x"}}, "bad"),
        ({"success": False, "error": {"message": "bad"}, "model_text": "worse"}, "worse"),
        ({"success": False}, ""),
    ],
)
def test_the_text_of_a_result_is_the_one_for_the_model(fields: dict[str, Any], text: str) -> None:
    conversation = fold(says("", "a"), ToolExecutionComplete(tool_call_id="a", **fields))
    (result,) = conversation.messages[1:]
    assert isinstance(result, ToolMessage)
    assert (result.text, result.failed) == (text, not fields["success"])


def test_a_result_nobody_asked_for_is_left_out() -> None:
    assert list(fold(UserMessage(content="x"), done("a")).messages) == [Asked.of("x")]


def test_open_calls_are_known_with_their_arguments() -> None:
    conversation = fold(says("", "a", "b"), done("a"))
    assert conversation.open_tool_calls == (ToolCall(id="b", name="t", arguments='{"a":1}'),)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("{broken", "{broken"),
        ("", ""),
        ({"a": [1]}, '{"a":[1]}'),
        ({}, "{}"),
        (None, "{}"),
        (False, "false"),
        ({"a": "\ud800"}, '{"a":"\\ud800"}'),
    ],
)
def test_arguments_are_the_text_the_model_wrote(arguments: Any, text: str) -> None:
    request = {"toolCallId": "a", "name": "t", "arguments": arguments, "extra": {"sign": "x"}}
    (message,) = fold(
        AssistantMessage(message_id="m", content="", tool_requests=[request])
    ).messages[:1]
    assert isinstance(message, Answered)
    expected = ToolCall(id="a", name="t", arguments=text, extra={"sign": "x"})
    assert message.tool_calls == (expected,)


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({}, None),
        ({"reasoning_wire_field": "thinking"}, None),
        ({"reasoning_text": "hm"}, Reasoning(text="hm")),
        ({"reasoning_opaque": "o"}, Reasoning(opaque="o")),
        ({"encrypted_content": "e"}, Reasoning(encrypted="e")),
        ({"reasoning_blocks": {"blocks": [{"a": 1}]}}, Reasoning(blocks=[{"a": 1}])),
        (
            {"reasoning_text": "hm", "reasoning_wire_field": "thinking", "reasoning_opaque": "o"},
            Reasoning(text="hm", field="thinking", opaque="o"),
        ),
    ],
)
def test_reasoning_is_kept_in_each_of_its_forms(
    fields: dict[str, Any], reasoning: Reasoning | None
) -> None:
    answer = AssistantMessage(message_id="m", content="x", phase="p", **fields)
    assert fold(answer).messages[0] == Answered(text="x", phase="p", reasoning=reasoning)


@pytest.mark.parametrize(
    "attachment",
    [
        {**PICTURE, "type": "file"},
        {**PICTURE, "data": None},
        {**PICTURE, "mimeType": "text/plain"},
        {**PICTURE, "mimeType": None},
    ],
)
def test_only_images_become_parts(attachment: dict[str, Any]) -> None:
    assert list(fold(UserMessage(content="x", attachments=[attachment])).messages) == [
        Asked.of("x")
    ]


def test_an_image_needs_neither_a_text_nor_a_name() -> None:
    image = Image(data=str(PICTURE["data"]), mime_type="image/png")
    conversation = fold(UserMessage(content="", attachments=[PICTURE]), UserMessage(content=""))
    assert list(conversation.messages) == [Asked(parts=(image,))]


def test_length_and_size_count_every_part_of_every_message() -> None:
    conversation = fold(
        UserMessage(content="née", attachments=[PICTURE]),
        says("größe", "a"),
        done("a", "five5"),
    )
    characters = 3 + IMAGE_CHARACTERS + 5 + len('{"a":1}') + 5
    size = 4 + len(str(PICTURE["data"])) + 7 + len('{"a":1}') + 5
    for _ in range(2):
        assert (conversation.characters, conversation.size) == (characters, size)
    added(conversation, UserMessage(content="more"))
    assert (conversation.characters, conversation.size) == (characters + 4, size + 4)
    added(conversation, SessionContextCleared(messages_cleared=4), UserMessage(content="new"))
    assert (conversation.characters, conversation.size) == (3, 3)


def test_a_new_conversation_is_empty() -> None:
    conversation = Conversation()
    assert (conversation.characters, conversation.size, conversation.compactions) == (0, 0, 0)
    assert (conversation.system, list(conversation.messages)) == ("", [])


def test_the_count_begins_anew_when_messages_are_replaced_by_as_many() -> None:
    conversation = fold(UserMessage(content="a long text"))
    assert conversation.characters == 11
    added(
        conversation,
        SessionCompactionStart(),
        SessionCompactionComplete(success=True, summary_content="short"),
    )
    assert (conversation.characters, conversation.size) == (5, 5)


def test_a_compaction_keeps_the_message_whose_calls_are_open() -> None:
    conversation = fold(
        UserMessage(content="old"),
        says("before"),
        says("calls", "a"),
        SessionCompactionStart(),
        done("a"),
        SessionCompactionComplete(success=True, summary_content="summary"),
    )
    kinds = [type(message).__name__ for message in conversation.messages]
    assert kinds == ["UserMessage", "AssistantMessage", "ToolMessage"]
    assert conversation.messages[0] == Asked.of("summary")
    assert conversation.compactions == 1


@pytest.mark.parametrize(
    ("fields", "compacted"),
    [
        ({"success": True, "summary_content": "s"}, True),
        ({"success": False, "outcome": MECHANICAL, "summary_content": "s"}, True),
        ({"success": False, "outcome": "failed", "summary_content": "s"}, False),
        ({"success": True, "summary_content": ""}, False),
        ({"success": True}, False),
    ],
)
def test_a_compaction_needs_a_summary(fields: dict[str, Any], compacted: bool) -> None:
    end = SessionCompactionComplete(**fields)
    conversation = fold(UserMessage(content="old"), SessionCompactionStart(), end)
    assert list(conversation.messages) == [Asked.of("s" if compacted else "old")]
    assert conversation.compactions == compacted
    added(conversation, SessionCompactionComplete(success=True, summary_content="again"))
    assert conversation.compactions == compacted, "an end without a beginning changes nothing"
    added(
        conversation,
        SessionCompactionStart(),
        SessionCompactionComplete(success=True, summary_content="t"),
    )
    assert conversation.compactions == compacted + 1


def test_images_are_replaced_in_prompts_that_were_read_and_in_those_that_wait() -> None:
    look = UserMessage(content="look", attachments=[PICTURE])
    conversation = fold(look, says("", "a"), look, ImagesRemoved(count=2), done("a"))
    without = Asked(parts=(Text(text="look"), Text(text=NO_IMAGE)))
    assert conversation.messages[0] == conversation.messages[-1] == without
    assert [type(message) for message in conversation.messages[1:3]] == [Answered, ToolMessage]


def test_a_call_is_shown_with_the_arguments_it_was_made_with() -> None:
    custom = {"toolCallId": "c", "name": "patch", "arguments": "x", "type": "custom"}
    requests = [*(says("", "a", "b").tool_requests or ()), custom]
    answer = AssistantMessage(message_id="m", content="", tool_requests=requests)
    before = fold(UserMessage(content="x"), says("y"), UserMessage(content="z"), answer)
    messages = list(before.messages)
    kept = before.messages
    added(before, ArgumentsChanged(tool_call_id="b", arguments={"é": 2}))
    changed = before.messages[3]
    assert isinstance(changed, Answered)
    texts = [call.arguments for call in changed.tool_calls]
    assert texts == ['{"a":1}', '{"é":2}', "x"]
    assert list(before.messages[:3]) == messages[:3]
    assert list(kept) == messages, "a request that is being written still shows the old call"
    for other in ("c", "unknown"):
        added(before, ArgumentsChanged(tool_call_id=other, arguments={"n": 1}))
        assert before.messages[3] == changed


def test_a_call_that_has_ended_keeps_its_arguments() -> None:
    conversation = fold(says("", "a"), done("a"), UserMessage(content="x"))
    before = list(conversation.messages)
    added(conversation, ArgumentsChanged(tool_call_id="a", arguments={}))
    assert list(conversation.messages) == before


def test_a_notification_is_a_message_and_another_role_is_no_system_prompt() -> None:
    conversation = fold(
        SystemMessage(role="system", content="one"),
        SystemMessage(role="developer", content="two"),
        SystemNotification(content="done", kind={}),
    )
    assert conversation.system == "one"
    assert list(conversation.messages) == [Asked.of("done")]


def test_a_cleared_conversation_keeps_nothing_of_an_open_call() -> None:
    conversation = fold(
        says("", "a"), UserMessage(content="late"), SessionContextCleared(messages_cleared=3)
    )
    assert list(conversation.messages) == []
    assert conversation.open_calls == ()


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
