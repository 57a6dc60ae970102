"""Frames in pieces, in bulk, and broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.transports.rpc.framing import BadFrame, FrameParser, frame


@given(st.lists(st.binary(max_size=200), max_size=8), st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    bodies: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(map(frame, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    parser = FrameParser()
    out: list[object] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += parser.feed(stream[start:end])
    assert out == bodies


@given(st.binary(max_size=400))
def test_a_lenient_parser_survives_anything_and_finds_the_next_frame(noise: bytes) -> None:
    parser = FrameParser()
    list(parser.feed(noise))
    filler = b"x" * 70_000  # whatever the noise began, this ends it
    list(parser.feed(b"\r\n\r\n" + filler))
    bodies = [piece for piece in parser.feed(b"\r\n" + frame(b"{}")) if piece == b"{}"]
    assert bodies == [b"{}"] or b"ength" in noise.lower()


def test_a_strict_parser_gives_up_at_the_first_thing_that_is_no_frame() -> None:
    with pytest.raises(BadFrame):
        list(FrameParser(strict=True).feed(b"POST / HTTP/1.1\r\n" + frame(b"{}")))


@pytest.mark.parametrize("ending", [b"\r\n\r\n", b"\n\n"])
def test_both_line_endings_are_understood(ending: bytes) -> None:
    assert list(FrameParser().feed(b"content-length:  2" + ending + b"{}")) == [b"{}"]


def test_other_header_lines_are_not_looked_at() -> None:
    head = b"Content-Length: 2\r\nContent-Type: application/json\r\n\r\n"
    assert list(FrameParser().feed(head + b"{}")) == [b"{}"]


def test_two_lengths_are_no_length() -> None:
    pieces = list(FrameParser().feed(b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"))
    assert isinstance(pieces[0], BadFrame)
