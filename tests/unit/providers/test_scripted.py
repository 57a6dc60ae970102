import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.contracts.messages import Message, ToolMessage, UserMessage
from trimtab.contracts.provider import Delta, ReasoningDelta, Reply, Request, TextDelta
from trimtab.testing import Script, ScriptedProvider


def request(*messages: Message, stream: bool = True, system: str = "s") -> Request:
    shown = messages or (UserMessage.of("hi"),)
    return Request(model="m", system=system, messages=shown, stream=stream)


async def ask(provider: ScriptedProvider, asked: Request) -> tuple[list[Delta | Reply], Reply]:
    items = [item async for item in provider.stream(asked)]
    assert isinstance(items[-1], Reply)
    return items[:-1], items[-1]


async def texts(script: Script, count: int) -> list[str]:
    provider = ScriptedProvider(script)
    return [(await ask(provider, request()))[1].message.text for _ in range(count)]


async def test_replies_come_in_order_and_repeat_as_asked() -> None:
    script = Script.parse("- one\n- text: two {n} {i}\n  repeat: 2\n- three\n")
    assert await texts(script, 4) == ["one", "two 2 1", "two 3 2", "three"]


async def test_a_script_that_has_run_out_says_so() -> None:
    with pytest.raises(ModelError, match="no reply left for request 2; add one") as caught:
        await texts(Script.of(["one"]), 2)
    assert (caught.value.status, caught.value.code) == (400, "script_exhausted")


async def test_otherwise_answers_when_the_script_has_run_out() -> None:
    script = Script.parse("replies: [one]\notherwise: enough")
    assert await texts(script, 3) == ["one", "enough", "enough"]


async def test_a_rule_that_matches_comes_before_the_replies_in_order() -> None:
    script = Script.parse(
        """
        - when: (?i)weather
          text: It rains.
        - when: {system: reviewer, last: .}
          text: Looks good.
        - when: failed$
          text: I try again.
          repeat: 1
        - first
        - second
        """
    )
    provider = ScriptedProvider(script)
    asked = [
        request(UserMessage.of("How is the Weather?")),
        request(UserMessage.of("hi")),
        request(UserMessage.of("hi"), system="You are a reviewer."),
        request(ToolMessage(call_id="c", text="it failed")),
        request(ToolMessage(call_id="c", text="it failed")),
    ]
    answers = [(await ask(provider, request))[1].message.text for request in asked]
    assert answers == ["It rains.", "first", "Looks good.", "I try again.", "second"]


async def test_pieces_add_up_to_the_reply_and_tools_have_ids_of_their_own() -> None:
    script = Script.of(
        [
            {
                "reasoning": {"text": "thinking about it", "opaque": "o"},
                "text": "an answer in pieces",
                "chunk": 4,
                "tools": [{"bash": {"command": "echo {n}"}}, {"view": {"path": "a"}}],
                "repeat": 2,
            }
        ]
    )
    provider = ScriptedProvider(script)
    deltas, reply = await ask(provider, request())
    _, other = await ask(provider, request())
    assert (
        "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        == reply.message.text
    )
    thoughts = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert thoughts == "thinking about it"
    calls = [*reply.message.tool_calls, *other.message.tool_calls]
    assert len({call.id for call in calls}) == 4
    assert calls[2].arguments == '{"command":"echo 2"}'
    assert reply.finish_reason == "tool_calls"


async def test_no_pieces_are_given_when_not_streaming() -> None:
    deltas, reply = await ask(ScriptedProvider(Script.of(["abc"])), request(stream=False))
    assert (deltas, reply.message.text) == ([], "abc")


async def test_tokens_are_a_quarter_of_the_bytes_or_what_the_script_says() -> None:
    script = Script.of(["x" * 80, {"text": "a", "usage": {"input": 7, "output": 3, "cached": 2}}])
    provider = ScriptedProvider(script)
    _, derived = await ask(provider, request())
    _, given_ = await ask(provider, request())
    assert derived.usage.output_tokens == 20
    assert derived.usage.input_tokens
    usage = given_.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (7, 3, 2)


async def test_errors_breaks_and_raw_streams_are_model_errors() -> None:
    script = Script.parse(
        """
        - error: {status: 429, headers: {Retry-After: "3"}, message: slow}
        - error: 401
        - text: a longer text
          chunk: 2
          break: {after: 3}
        - break: reset
        - raw: "data: {\\"choices\\":[{\\"delta\\":{\\"content\\":\\"cut\\"}}]}\\n\\n"
        """
    )
    provider = ScriptedProvider(script)
    categories = []
    for _ in range(5):
        with pytest.raises(ModelError) as caught:
            await ask(provider, request())
        categories.append(caught.value.category)
        if caught.value.status == 429:
            assert caught.value.retry_after == 3.0
    assert categories == ["rate_limit", "auth", "transport", "transport", "transport"]


async def test_a_stall_lasts_until_the_stream_is_closed() -> None:
    provider = ScriptedProvider(
        Script.of([{"text": "abc", "chunk": 1, "break": {"how": "stall", "after": 1}}])
    )
    stream = provider.stream(request())
    assert isinstance(await anext(stream), TextDelta)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(stream), 0.05)
    await stream.aclose()


async def test_requests_are_kept_for_the_test_to_look_at() -> None:
    provider = ScriptedProvider(Script.of([{"text": "a", "repeat": "forever"}]), keep=3)
    for number in range(5):
        await ask(provider, request(UserMessage.of(str(number))))
    assert [len(request.messages) for request in provider.requests] == [1, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "- txt: a",
        "- tools: 7",
        "just words: [",
        "7",
        "- when: '('\n  text: a",
        "- repeat: sometimes",
        "- error: {stat: 500}",
        "- break: explode",
        "[{]",
        "replys: []",
        "- 7",
    ],
)
def test_a_bad_script_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Script.parse(text, "bad.yaml")
    message = caught.value.message
    assert message.startswith("The script bad.yaml is invalid (")
    assert message.endswith("see the guide on the scripted model.")
    assert "\n" not in message


def test_a_script_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"/nowhere/s.yaml cannot be read"):
        Script.load("/nowhere/s.yaml")


def test_json_is_accepted_as_well() -> None:
    assert Script.parse('[{"text": "a"}]') == Script.of(["a"]) == Script.parse("- text: a")


@given(st.text(max_size=60))
def test_any_text_gives_a_script_or_a_configuration_error(text: str) -> None:
    with suppress(ConfigurationError):
        Script.parse(text)
