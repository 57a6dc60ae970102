"""Tokens are counted on this machine as services count them."""

import asyncio
import base64
import json
import struct
import time
import zlib
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.messages import (
    AssistantMessage,
    Image,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from trimtab.contracts.provider import ToolSpec
from trimtab.providers.image_size import image_size
from trimtab.providers.meter import ContextMeter
from trimtab.providers.tokens import PIECE, TokenCounter, counter_for, family_of
from trimtab.session.projections.conversation import Conversation


class Words:
    """An encoder that can be checked by hand: one token a word."""

    def encode_ordinary(self, text: str) -> list[int]:
        return [0] * len(text.split())


PLAIN = TokenCounter(Words())
SCALED = TokenCounter(Words(), 1.5)


@pytest.mark.proves("TOK-01")
def test_messages_are_counted_in_the_form_they_are_sent_in() -> None:
    counter = counter_for("gpt-4.1")
    call = ToolCall(id="1", name="bash", arguments='{"command":"ls"}')
    assert counter.of(AssistantMessage(text="", tool_calls=(call,))) == counter.message(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "bash", "arguments": '{"command":"ls"}'},
                }
            ],
        }
    )
    result = ToolMessage(call_id="1", text="a b c", name="bash")
    assert counter.of(result) == 4 + counter.text("a b c")


@pytest.mark.proves("TOK-02")
def test_a_model_has_one_counter_and_an_unknown_one_the_default() -> None:
    assert counter_for("gpt-4.1") is counter_for("gpt-4.1")
    assert family_of("gpt-4").encoding == "cl100k_base"
    assert family_of("gpt-4o").encoding == "o200k_base"
    assert family_of("never-heard-of").encoding == "o200k_base"
    assert counter_for("gpt-4").text("ünïcödé " * 9) != counter_for("o3").text("ünïcödé " * 9)


@pytest.mark.proves("TOK-03")
@given(st.text(max_size=60))
def test_text_is_its_encoded_length_scaled_and_rounded_up(text: str) -> None:
    assert SCALED.text(text) == ceil(len(text.split()) * 1.5)


@pytest.mark.proves("TOK-04")
def test_most_families_are_not_scaled_and_some_are() -> None:
    assert [family_of(name).scale for name in ("gpt-5", "gpt-4", "llama3", "o3")] == [1.0] * 4
    assert family_of("anthropic/claude-sonnet-4.5").scale > 1


@pytest.mark.proves("TOK-05", "TOK-06")
def test_an_array_and_each_message_have_an_overhead() -> None:
    assert PLAIN.messages([]) == 3
    assert SCALED.messages([]) == 5
    assert PLAIN.message({"content": "a b"}) == 3 + 2
    assert PLAIN.message({"role": "user", "content": "a b"}) == 4 + 2
    assert PLAIN.messages([{"role": "user", "content": "a"}] * 2) == 3 + 5 + 5


@pytest.mark.proves("TOK-07")
def test_a_name_costs_its_text_and_one_except_on_results() -> None:
    assert PLAIN.message({"role": "user", "name": "a b", "content": "c"}) == 4 + 1 + 2 + 1
    assert SCALED.message({"role": "user", "name": "a b"}) == 4 + 3 + 2
    for role in ("tool", "function"):
        assert PLAIN.message({"role": role, "name": "a b", "content": "c"}) == 4 + 1


@pytest.mark.proves("TOK-08")
def test_parts_are_counted_by_their_kind() -> None:
    def part(value: dict[str, Any]) -> int:
        return PLAIN.message({"role": "user", "content": [value]}) - 4

    assert part({"type": "text", "text": "a b c"}) == 3
    assert part({"type": "refusal", "refusal": "a b"}) == 2
    assert part({"type": "image_url", "image_url": {"url": "x", "detail": "low"}}) == 85
    assert part({"type": "image_url", "image_url": {"url": png(1024, 1024)}}) == 765
    assert part({"type": "image_url", "image_url": {"url": png(100, 100)}}) == 85 + 170
    odd = {"type": "input_audio", "data": "a b"}
    assert part(odd) == len(json.dumps(odd, separators=(",", ":")).split())


@pytest.mark.proves("TOK-09")
def test_a_call_costs_its_name_its_arguments_and_three() -> None:
    call = {"function": {"name": "one", "arguments": "two three"}}
    assert PLAIN.message({"role": "assistant", "tool_calls": [call, call]}) == 4 + 2 * (1 + 2 + 3)
    assert PLAIN.message({"role": "user", "tool_calls": [call]}) == 4


@pytest.mark.proves("TOK-10")
def test_tools_are_counted_as_their_name_description_and_schema_are_written() -> None:
    counter = counter_for("gpt-4.1")
    spec = ToolSpec(name="t", description="Does it.", parameters={"type": "object"})
    written = '{"name":"t","description":"Does it.","parameters":{"type":"object"}}'
    assert counter.of_tools([spec, spec]) == 2 * counter.text(written)


@pytest.mark.proves("TOK-11")
def test_what_looks_like_a_control_token_is_text() -> None:
    counter = counter_for("gpt-4.1")
    assert counter.text("<|endoftext|>") > 3
    assert counter.text("<|im_start|>") > 3


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_can_be_counted(text: str) -> None:
    assert 0 <= counter_for("gpt-4.1").text(text) <= 4 * len(text)


def png(width: int, height: int) -> str:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header
    data += struct.pack(">I", zlib.crc32(header))
    return "data:image/png;base64," + base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"GIF89a" + struct.pack("<HH", 7, 9) + b"\0", (7, 9)),
        (b"\xff\xd8\xff\xe0\0\x04xx\xff\xc0\0\x11\x08\0\x10\0\x20\x03", (32, 16)),
        (b"\xff\xd8\xff", None),
        (b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\x0f\0\0\x1f\0\0", (16, 32)),
        (b"BM not known", None),
        (b"\x89PNG\r\n\x1a\n", None),
    ],
)
def test_sizes_are_read_from_the_first_bytes(data: bytes, size: tuple[int, int] | None) -> None:
    assert image_size("data:image/x;base64," + base64.b64encode(data).decode()) == size


def test_an_image_elsewhere_has_no_known_size() -> None:
    assert image_size("https://example.com/a.png") is None


def talk(*messages: Any) -> Conversation:
    conversation = Conversation()
    conversation.system = "s" * 400
    conversation._messages = list(messages)
    return conversation


SPECS = (ToolSpec(name="t", description="d" * 399),)


def test_before_anything_is_counted_lengths_are_a_guess() -> None:
    found = ContextMeter("m").measure(talk(UserMessage.of("x" * 800)), SPECS, None)
    assert (found.system, found.conversation, found.tools) == (100, 200, 100)


def test_the_services_count_corrects_the_guess() -> None:
    meter, conversation = ContextMeter("m"), talk(UserMessage.of("x" * 800))
    meter.measure(conversation, SPECS, None)
    found = meter.measure(conversation, SPECS, 800)
    assert found.system + found.conversation + found.tools == 800
    conversation._messages.append(ToolMessage(call_id="1", text="x" * 400))
    found = meter.measure(conversation, SPECS, 800)
    assert found.system + found.conversation + found.tools == 1000


def test_an_image_counts_as_an_image_not_as_its_bytes() -> None:
    picture = UserMessage(parts=(Text(text=""), Image(data="a" * 10**6, mime_type="image/png")))
    found = ContextMeter("m").measure(talk(picture), (), None)
    assert 500 < found.conversation < 1000


async def test_a_service_that_does_not_count_is_counted_for_in_a_thread() -> None:
    meter, text = ContextMeter("gpt-4.1"), "hello world " * 400
    conversation = talk(UserMessage.of(text))
    guessed = meter.measure(conversation, (), None).conversation
    assert meter.measure(conversation, (), None).conversation == guessed, "it did not wait"
    task = meter._exact._task
    assert task is not None
    async with asyncio.timeout(60):
        await task
    exact = counter_for("gpt-4.1").of(conversation._messages[0])
    assert meter.measure(conversation, (), None).conversation == exact
    await asyncio.gather(meter._exact._task or task)


def test_measuring_costs_next_to_nothing_however_long_the_conversation_is() -> None:
    meter = ContextMeter("m")
    conversation = talk(*[UserMessage.of("x" * 1000)] * 20_000)
    meter.measure(conversation, SPECS, None)
    started = time.process_time()
    for _ in range(200):
        meter.measure(conversation, SPECS, 5_000_000)
    assert (time.process_time() - started) / 200 < 0.0002


def test_a_long_text_is_encoded_in_pieces_of_bounded_size() -> None:
    lengths: list[int] = []

    class Listener:
        def encode_ordinary(self, text: str) -> list[int]:
            lengths.append(len(text))
            return [0] * len(text)

    assert TokenCounter(Listener()).text("a" * (2 * PIECE + 1)) == 2 * PIECE + 1
    assert lengths == [PIECE, PIECE, 1]
