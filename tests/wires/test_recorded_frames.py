"""Every recorded stream gives the reply, or the error, its first line names."""

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.contracts.errors import ModelError
from trimtab.contracts.provider import Delta, ReasoningDelta, Reply, TextDelta, ToolCallDelta
from trimtab.providers.sse import SseParser
from trimtab.providers.wires import new_wire

FRAMES = sorted((Path(__file__).parent / "frames").glob("*/*.sse"))


def read(wire: str, data: bytes, size: int) -> tuple[list[Delta], Reply]:
    reader = new_wire(wire).reader()
    parser = SseParser()
    deltas: list[Delta] = []
    events = [
        event for at in range(0, len(data), size) for event in parser.feed(data[at : at + size])
    ]
    for event in events + parser.end():
        deltas += reader.feed(event)
    return deltas, reader.finish()


def expectation(data: bytes) -> dict[str, Any]:
    first = data.splitlines()[0].decode()
    expected: dict[str, Any] = json.loads(first.removeprefix(": expect "))
    return expected


@pytest.mark.parametrize("size", [1_000_000, 61, 1])
@pytest.mark.parametrize("path", FRAMES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_stream_reads_as_it_says(path: Path, size: int) -> None:
    data = path.read_bytes()
    expected = expectation(data)
    if "error" in expected:
        with pytest.raises(ModelError) as caught:
            read(path.parent.name, data, size)
        assert caught.value.category == expected["error"]["category"]
        if "code" in expected["error"]:
            assert caught.value.code == expected["error"]["code"]
        assert caught.value.message.endswith(".")
        return
    deltas, reply = read(path.parent.name, data, size)
    check_message(reply, expected)
    assert reply.finish_reason == expected["finish"]
    if "usage" in expected:
        usage = {name: getattr(reply.usage, name) for name in reply.usage.__struct_fields__}
        assert {k: v for k, v in usage.items() if v is not None} == expected["usage"]
    if "model" in expected:
        assert reply.model == expected["model"]
    check_deltas(deltas, reply)


def check_message(reply: Reply, expected: dict[str, Any]) -> None:
    message = reply.message
    assert message.text == expected.get("text", "")
    assert message.phase == expected.get("phase")
    calls = expected.get("calls", [])
    assert len(message.tool_calls) == len(calls)
    for call, (call_id, name, arguments, *kind) in zip(message.tool_calls, calls, strict=True):
        assert call.id == call_id or (call_id is None and call.id.startswith("call_"))
        assert (call.name, call.arguments) == (name, arguments)
        assert call.kind == (kind[0] if kind else "function")
    if "extra" in expected:
        assert [call.extra for call in message.tool_calls] == expected["extra"]
    reasoning = message.reasoning
    if "reasoning" not in expected:
        assert reasoning is None
        return
    assert reasoning is not None
    for name in reasoning.__struct_fields__:
        assert getattr(reasoning, name) == expected["reasoning"].get(name), name


def check_deltas(deltas: list[Delta], reply: Reply) -> None:
    """What was shown while it streamed is what the reply says."""
    message = reply.message
    assert "".join(one.text for one in deltas if isinstance(one, TextDelta)) == message.text
    shown = "".join(one.text for one in deltas if isinstance(one, ReasoningDelta))
    assert shown == ((message.reasoning and message.reasoning.text) or "")
    for call in message.tool_calls:
        pieces = [
            one for one in deltas if isinstance(one, ToolCallDelta) and one.call_id == call.id
        ]
        assert "".join(piece.arguments for piece in pieces) in {call.arguments, ""}
        assert {piece.name for piece in pieces} <= {call.name}


def test_there_are_recordings_for_every_wire() -> None:
    wires = {path.parent.name for path in FRAMES}
    assert wires == {"openai-chat", "openai-responses", "anthropic-messages"}
