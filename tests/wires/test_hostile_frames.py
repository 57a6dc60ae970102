"""Whatever a service sends, a wire gives an answer or a model error, never another exception."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.contracts.errors import ModelError
from trimtab.contracts.provider import Reply
from trimtab.providers.sse import SseParser
from trimtab.providers.wires import new_wire
from wirekit import WIRES

FRAMES = Path(__file__).parent / "frames"

odd_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([1e308, -1.5, "", "text", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "name", "index", "error"]), inner)
    ),
    max_leaves=4,
)


def events_of(wire: str) -> list[Any]:
    events = []
    for path in sorted((FRAMES / wire).glob("*.sse")):
        for data in SseParser().feed(path.read_bytes()):
            try:
                events.append(json.loads(data))
            except ValueError:
                continue
    return events


EVENTS = {wire: events_of(wire) for wire in WIRES}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            found += places(value[key], (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=400)
@given(data=st.data())
def test_an_event_with_an_odd_value_in_any_place_is_survived(
    wire: str, data: st.DataObject
) -> None:
    reader = new_wire(wire).reader()
    whole = data.draw(st.booleans())
    try:
        for _ in range(data.draw(st.integers(1, 4))):
            event = data.draw(st.sampled_from(EVENTS[wire]))
            if data.draw(st.booleans()):
                place = data.draw(st.sampled_from(places(event)))
                event = replaced(event, place, data.draw(odd_values))
            encoded = json.dumps(event).encode()
            if whole:
                response = event.get("response", event) if isinstance(event, dict) else event
                new_wire(wire).reply(json.dumps(response).encode())
            reader.feed(encoded)
        reader.finish()
    except ModelError:
        pass


def read(wire: str, event: bytes) -> Reply:
    reader = new_wire(wire).reader()
    reader.feed(event)
    return reader.finish()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"choices":' * 50_000, b"\xff\xfe", b'{"content":7}', b"{}"]
)
def test_bodies_made_to_exhaust_a_parser_are_model_errors(wire: str, body: bytes) -> None:
    with pytest.raises(ModelError):
        new_wire(wire).reply(body)
    with pytest.raises(ModelError):
        read(wire, body)


@pytest.mark.parametrize("event", ["response.completed", "response.cancelled"])
def test_a_response_that_was_cancelled_is_not_an_answer(event: str) -> None:
    reader = new_wire("openai-responses").reader()
    response = {"id": "r", "status": "cancelled", "output": []}
    with pytest.raises(ModelError, match="cancelled"):
        reader.feed(json.dumps({"type": event, "response": response}).encode())


STREAMS = {
    "openai-chat": (
        '{"id":%(id)s,"model":%(model)s,"choices":[{"index":0,"delta":{"content":"hi"}}]}',
        '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":%(usage)s}',
        "[DONE]",
    ),
    "openai-responses": (
        (
            '{"type":"response.output_item.done","output_index":0,"item":{"type":"message",'
            '"content":[{"type":"output_text","text":"hi"}]}}'
        ),
        (
            '{"type":"response.completed","response":{"id":%(id)s,"model":%(model)s,'
            '"status":"completed","usage":%(usage)s}}'
        ),
    ),
    "anthropic-messages": (
        '{"type":"message_start","message":{"id":%(id)s,"model":%(model)s,"usage":%(usage)s}}',
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}',
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":%(usage)s}',
        '{"type":"message_stop"}',
    ),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("value", ["1e400", "-1", '"12"', "[]", "true", '{"input_tokens":1e400}'])
@pytest.mark.parametrize("field", ["id", "model", "usage"])
def test_what_is_said_about_a_reply_does_not_cost_the_reply(
    wire: str, field: str, value: str
) -> None:
    reader = new_wire(wire).reader()
    fields = {"id": '"r"', "model": '"m"', "usage": "{}", field: value}
    for event in STREAMS[wire]:
        reader.feed((event % fields).encode())
    reply = reader.finish()
    assert reply.message.text == "hi"
    assert reply.usage.input_tokens in (None, 1)
    assert reply.usage.output_tokens is None
