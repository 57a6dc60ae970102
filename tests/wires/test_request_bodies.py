"""What each wire sends."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from trimtab.contracts.provider import Request, ToolSpec
from trimtab.providers.wires import new_wire
from trimtab.providers.wires.encoding import EncodedMessages
from trimtab.providers.wires.openai_chat import OpenAIChat
from wirekit import WIRES

TOOLS = (
    ToolSpec(name="view", description="Look.", parameters={"type": "object", "properties": {}}),
    ToolSpec(name="bash", description="Run."),
)
PATCH = ToolSpec(
    name="apply_patch",
    description="Patch.",
    format={"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
)


def sent(wire: str, *messages: Message, **options: Any) -> dict[str, Any]:
    options = {"model": "m", "system": "Be brief.", **options}
    request = Request(messages=list(messages) or [UserMessage.of("hi")], **options)
    body: dict[str, Any] = json.loads(b"".join(new_wire(wire).body(request)))
    return body


def call(arguments: str = "{}", **fields: Any) -> AssistantMessage:
    made = ToolCall(id="c1", name="bash", arguments=arguments, **fields)
    return AssistantMessage(text="", tool_calls=(made,))


def test_chat_sends_one_system_message_first_and_asks_for_usage() -> None:
    body = sent("openai-chat", effort="high", max_output_tokens=99)
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]
    assert body["stream_options"] == {"include_usage": True}
    assert (body["reasoning_effort"], body["max_tokens"]) == ("high", 99)
    assert "tools" not in body


def test_chat_names_the_output_limit_as_the_service_does() -> None:
    wire = OpenAIChat(limit_field="max_completion_tokens")
    request = Request(model="m", system="", messages=[], max_output_tokens=5, stream=False)
    body = json.loads(b"".join(wire.body(request)))
    assert body["max_completion_tokens"] == 5
    assert "stream_options" not in body


def test_chat_sends_images_as_data_urls() -> None:
    picture = Image(data="AAAA", mime_type="image/png")
    body = sent("openai-chat", UserMessage(parts=(Text(text="see"), picture)))
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_chat_sends_calls_results_and_what_was_attached_to_a_call() -> None:
    body = sent(
        "openai-chat",
        UserMessage.of("hi"),
        call('{"command":"ls"}', extra={"extra_content": {"google": {"thought_signature": "s"}}}),
        ToolMessage(call_id="c1", text="a.py"),
    )
    assert body["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "bash", "arguments": '{"command":"ls"}'},
                    "extra_content": {"google": {"thought_signature": "s"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    ]


def test_chat_sends_reasoning_back_in_the_field_it_came_in() -> None:
    said = Reasoning(text="hm", opaque="o", field="reasoning_content")
    body = sent("openai-chat", UserMessage.of("hi"), AssistantMessage(text="yes", reasoning=said))
    assert body["messages"][2] == {
        "role": "assistant",
        "content": "yes",
        "reasoning_content": "hm",
        "reasoning_opaque": "o",
    }


@pytest.mark.parametrize("wire", WIRES)
def test_reasoning_of_another_wire_is_not_sent(wire: str) -> None:
    foreign = {
        "openai-chat": Reasoning(text="SECRET", opaque="SECRET", field="thinking"),
        "openai-responses": Reasoning(text="SECRET", opaque="SECRET", field="reasoning_text"),
        "anthropic-messages": Reasoning(
            text="SECRET",
            encrypted="SECRET",
            field="reasoning_summary",
            blocks=[{"type": "reasoning", "encrypted_content": "SECRET"}],
        ),
    }[wire]
    body = sent(wire, UserMessage.of("hi"), AssistantMessage(text="yes", reasoning=foreign))
    assert "SECRET" not in json.dumps(body)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("text", ["", "{broken", "[1]", '"text"'])
def test_arguments_that_are_no_object_are_sent_as_one(wire: str, text: str) -> None:
    """A model's slip in one turn must not make every later request invalid."""
    body = sent(wire, UserMessage.of("hi"), call(text), ToolMessage(call_id="c1", text="failed"))
    if wire == "anthropic-messages":
        value = body["messages"][1]["content"][0]["input"]
    elif wire == "openai-chat":
        value = json.loads(body["messages"][2]["tool_calls"][0]["function"]["arguments"])
    else:
        value = json.loads(body["input"][1]["arguments"])
    assert value == ({"invalid_arguments": text} if text else {})


@pytest.mark.parametrize("wire", WIRES)
def test_lone_surrogates_do_not_make_a_request_invalid(wire: str) -> None:
    request = Request(model="m", system="a\udfff", messages=[UserMessage.of("b\ud800c")])
    body = b"".join(new_wire(wire).body(request)).decode("utf-8")
    assert "b\ufffdc" in body
    assert "a\ufffd" in body


def test_freeform_tools_are_sent_in_each_wires_own_way() -> None:
    chat = sent("openai-chat", tools=(PATCH,))["tools"][0]
    assert chat["custom"]["format"] == {
        "type": "grammar",
        "grammar": {"syntax": "lark", "definition": "start: /.+/"},
    }
    responses = sent("openai-responses", tools=(PATCH,))["tools"][0]
    assert (responses["type"], responses["format"]) == ("custom", PATCH.format)
    anthropic = sent("anthropic-messages", tools=(PATCH,))["tools"][0]
    assert anthropic["input_schema"]["required"] == ["input"]


def test_a_freeform_call_over_anthropic_is_given_as_plain_text() -> None:
    wire = new_wire("anthropic-messages")
    wire.body(Request(model="m", system="", messages=[UserMessage.of("hi")], tools=(PATCH,)))
    answer = {
        "content": [
            {"type": "tool_use", "id": "t", "name": "apply_patch", "input": {"input": "*** Begin"}}
        ],
        "stop_reason": "tool_use",
    }
    (made,) = wire.reply(json.dumps(answer).encode()).message.tool_calls
    assert (made.kind, made.arguments) == ("custom", "*** Begin")


def test_responses_are_stateless_and_keep_the_cache_key() -> None:
    body = sent("openai-responses", model="gpt-5.1", cache_key="s-1", effort="low", tools=TOOLS)
    assert body["store"] is False
    assert body["instructions"] == "Be brief."
    assert body["prompt_cache_key"] == "s-1"
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert [tool["type"] for tool in body["tools"]] == ["function", "function"]


def test_responses_do_not_ask_a_model_without_reasoning_for_it() -> None:
    assert "include" not in sent("openai-responses", model="gpt-4.1")


def test_responses_send_reasoning_items_back_only_with_their_encrypted_form() -> None:
    readable = {"type": "reasoning", "id": "r1", "summary": []}
    sealed = {**readable, "id": "r2", "encrypted_content": "gA", "status": None}
    said = Reasoning(field="reasoning_summary", blocks=[readable, sealed])
    body = sent(
        "openai-responses", UserMessage.of("hi"), AssistantMessage(text="yes", reasoning=said)
    )
    assert body["input"][1] == {
        "type": "reasoning",
        "id": "r2",
        "summary": [],
        "encrypted_content": "gA",
    }
    rebuilt = Reasoning(text="t", opaque="r3", encrypted="gB", field="reasoning_summary")
    body = sent(
        "openai-responses", UserMessage.of("hi"), AssistantMessage(text="yes", reasoning=rebuilt)
    )
    assert body["input"][1]["id"] == "r3"
    assert body["input"][1]["encrypted_content"] == "gB"


def test_responses_keep_phase_and_the_kind_of_results() -> None:
    body = sent(
        "openai-responses",
        UserMessage.of("hi"),
        AssistantMessage(
            text="so",
            phase="commentary",
            tool_calls=(ToolCall(id="c", name="apply_patch", arguments="***", kind="custom"),),
        ),
        ToolMessage(call_id="c", text="done", kind="custom"),
    )
    assert body["input"][1]["phase"] == "commentary"
    assert body["input"][2]["type"] == "custom_tool_call"
    assert body["input"][3]["type"] == "custom_tool_call_output"


def test_anthropic_merges_neighbours_of_one_role_and_marks_the_three_ends() -> None:
    body = sent(
        "anthropic-messages",
        UserMessage.of("hi"),
        call('{"command":"ls"}'),
        ToolMessage(call_id="c1", text="no such file", failed=True),
        UserMessage.of("go on"),
        tools=TOOLS,
    )
    mark = {"type": "ephemeral"}
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    result, words = body["messages"][2]["content"]
    assert result == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": "no such file",
        "is_error": True,
    }
    assert words == {"type": "text", "text": "go on", "cache_control": mark}
    assert body["system"][-1]["cache_control"] == mark
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, mark]
    assert json.dumps(body).count("cache_control") == 3


def test_anthropic_never_sends_what_the_service_refuses() -> None:
    body = sent(
        "anthropic-messages",
        AssistantMessage(text=""),
        UserMessage.of("  "),
        AssistantMessage(text="", tool_calls=(ToolCall(id="a:b/1", name="n", arguments="{}"),)),
        ToolMessage(call_id="a:b/1", text=""),
        system="",
    )
    assert body["messages"][0] == {"role": "user", "content": "(empty)"}
    assert body["messages"][1]["content"] == [{"type": "text", "text": "(empty)"}]
    assert body["messages"][2]["content"] == [{"type": "text", "text": "(empty)"}]
    assert body["messages"][3]["content"][0]["id"] == "a_b_1"
    assert body["messages"][4]["content"][0]["tool_use_id"] == "a_b_1"
    assert "system" not in body


def test_anthropic_thinks_by_effort_but_not_in_the_middle_of_a_turn_without_thinking() -> None:
    body = sent("anthropic-messages", effort="low", max_output_tokens=3000)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2999}
    assert "thinking" not in sent("anthropic-messages", effort="low", max_output_tokens=900)
    turn = (UserMessage.of("hi"), call(), ToolMessage(call_id="c1", text="ok"))
    assert "thinking" not in sent("anthropic-messages", *turn, effort="high")


def test_anthropic_gives_a_tool_choice_it_accepts() -> None:
    body = sent("anthropic-messages", tools=TOOLS, tool_choice="required")
    assert body["tool_choice"] == {"type": "any"}
    body = sent("anthropic-messages", tools=TOOLS, tool_choice="required", effort="low")
    assert body["tool_choice"] == {"type": "auto"}


def test_a_long_conversation_is_not_encoded_again() -> None:
    encoded = 0

    def encode(previous: Message | None, message: Message) -> bytes:
        nonlocal encoded
        encoded += 1
        return b"x" * 300

    messages: list[Message] = [UserMessage.of(str(number)) for number in range(6000)]
    cache = EncodedMessages(encode)
    cache.pieces(messages)
    messages.append(UserMessage.of("new"))
    started = time.process_time()
    pieces = cache.pieces(messages)
    assert time.process_time() - started < 0.05
    assert encoded == 6001
    assert len(pieces) < 300
    assert sum(map(len, pieces)) == 6001 * 300


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=6),
    st.integers(1, 30),
)
def test_pieces_are_those_of_the_messages_given_last(texts: list[list[str]], block: int) -> None:
    pool: dict[str, Message] = {text: UserMessage.of(text) for text in "abcdefgh"}

    def encode(previous: Message | None, message: Message) -> bytes:
        return f"({previous and plain(previous)}>{plain(message)})".encode()

    def plain(message: Message) -> str:
        assert isinstance(message, UserMessage)
        assert isinstance(message.parts[0], Text)
        return message.parts[0].text

    cache = EncodedMessages(encode, block=block)
    for letters in texts:
        messages = [pool[letter] for letter in letters]
        fresh = EncodedMessages(encode, block=10**9)
        assert b"".join(cache.pieces(messages)) == b"".join(fresh.pieces(messages))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("count", [1, 400])
def test_a_request_without_a_system_message_is_still_well_formed(wire: str, count: int) -> None:
    words = [UserMessage.of(f"message {number} " * 50) for number in range(count)]
    body = sent(wire, *words, system="")
    first = (body.get("messages") or body["input"])[0]
    assert first["role"] == "user"
