"""What one side of a wire writes, the other side reads."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import Message, UserMessage
from trimtab.contracts.provider import Reply, Request, ToolSpec
from trimtab.providers.sse import SseParser
from trimtab.providers.wires import new_server_wire, new_wire
from wirekit import WIRES, conversations, replies, specs, words

wires = pytest.mark.parametrize("wire", WIRES)


def read_frames(wire: str, frames: list[bytes]) -> Reply:
    reader = new_wire(wire).reader()
    parser = SseParser()
    for frame in frames:
        for event in parser.feed(frame):
            reader.feed(event)
    for event in parser.end():
        reader.feed(event)
    return reader.finish()


def same_reply(wire: str, left: Reply, right: Reply) -> bool:
    if wire == "openai-chat":
        left = msgspec.structs.replace(left, request_id=f"chatcmpl-{left.request_id}")
    return left == right


@wires
@settings(max_examples=60)
@given(data=st.data())
def test_the_server_side_reads_what_the_client_side_asks(wire: str, data: st.DataObject) -> None:
    messages = data.draw(conversations(wire))
    tools: tuple[ToolSpec, ...] = tuple(data.draw(st.lists(specs, max_size=2)))
    system = data.draw(words)
    request = Request(model="m-1", system=system, messages=messages, tools=tools)
    served = new_server_wire(wire).request(b"".join(new_wire(wire).body(request)))
    assert served.model == "m-1"
    assert served.stream is True
    assert served.system == system
    assert served.tools == tools
    assert list(served.messages) == messages


@wires
@settings(max_examples=60)
@given(data=st.data())
def test_the_client_side_reads_what_the_server_side_answers(wire: str, data: st.DataObject) -> None:
    reply = data.draw(replies(wire))
    server = new_server_wire(wire)
    chunk = data.draw(st.integers(1, 50))
    assert same_reply(wire, reply, read_frames(wire, list(server.frames(reply, chunk=chunk))))
    assert same_reply(wire, reply, new_wire(wire).reply(server.body(reply)))


@wires
@settings(max_examples=60)
@given(data=st.data())
def test_a_stream_cut_anywhere_gives_an_error_or_the_whole_answer(
    wire: str, data: st.DataObject
) -> None:
    reply = data.draw(replies(wire))
    stream = b"".join(new_server_wire(wire).frames(reply, chunk=5))
    cut = data.draw(st.integers(0, len(stream)))
    received: Reply | ModelError
    try:
        received = read_frames(wire, [stream[:cut]])
    except ModelError as error:
        received = error
    if isinstance(received, Reply):
        assert received.message == reply.message
    else:
        assert received.category == "transport"


@wires
@settings(max_examples=40)
@given(data=st.data())
def test_a_wire_that_has_seen_a_conversation_sends_the_same_as_a_new_one(
    wire: str, data: st.DataObject
) -> None:
    seasoned = new_wire(wire)
    messages: list[Message] = data.draw(conversations(wire))
    for _ in range(3):
        change = data.draw(st.sampled_from(["grow", "cut", "replace", "same"]))
        if change == "grow":
            messages = messages + data.draw(conversations(wire))
        elif change == "cut":
            messages = messages[: data.draw(st.integers(1, len(messages)))]
        elif change == "replace":
            at = data.draw(st.integers(0, len(messages) - 1))
            messages = [*messages[:at], UserMessage.of("changed"), *messages[at + 1 :]]
        system = data.draw(st.sampled_from(["a", "b"]))
        request = Request(model="m", system=system, messages=messages)
        assert b"".join(seasoned.body(request)) == b"".join(new_wire(wire).body(request))


@wires
@given(body=st.binary(max_size=200) | st.sampled_from([b"[]", b"null", b"{}", b'{"a":']))
def test_any_bytes_as_a_whole_answer_give_a_model_error(wire: str, body: bytes) -> None:
    with pytest.raises(ModelError):
        new_wire(wire).reply(body)
