"""Messages and lines: what comes from a server can be anything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.mcp.codec import Lines, decode, encode
from trimtab.mcp.messages import MAX_MESSAGE_BYTES, ServerProblem


@given(st.lists(st.binary().map(lambda one: one.replace(b"\n", b" "))), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    reader, found = Lines(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert found == lines


def test_a_line_without_an_end_is_given_up() -> None:
    reader = Lines()
    for _ in range(32):
        assert reader.feed(b"x" * (MAX_MESSAGE_BYTES // 32)) == []
    with pytest.raises(ServerProblem, match="more than 16 MB"):
        reader.feed(b"x")


@given(st.binary())
def test_whatever_a_line_is_only_objects_come_out(line: bytes) -> None:
    assert all(isinstance(message, dict) for message in decode(line))


@pytest.mark.parametrize("line", [b"", b"hello", b"[1, null]", b"{", b"[" * 5000, b'"\xff"'])
def test_what_is_no_message_is_dropped(line: bytes) -> None:
    assert list(decode(line)) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [(b'{"t": "cut \\ud83d"}', "cut ?"), (b'{"t": "caf\xe9"}', "caf\ufffd")],
)
def test_an_answer_with_half_a_character_is_an_answer(line: bytes, text: str) -> None:
    assert list(decode(line)) == [{"t": text}]


def test_a_batch_is_its_messages() -> None:
    assert list(decode(b'[{"id": 1}, 5, {"id": 2}]')) == [{"id": 1}, {"id": 2}]


def test_a_message_is_one_line() -> None:
    written = encode({"id": 1, "params": {"text": "two\nlines\u2028"}})
    assert b"\n" not in written
    assert json.loads(written)["jsonrpc"] == "2.0"
