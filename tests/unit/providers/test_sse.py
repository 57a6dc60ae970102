from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.providers.sse import EventTooLarge, SseParser


def parse(pieces: list[bytes]) -> list[bytes]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.end()


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_kind_of_line_end_is_understood(newline: bytes) -> None:
    stream = newline.join(
        [b": comment", b"event: x", b"id: 1", b"retry: 5", b"data: one", b"data:two", b"", b"data"]
    )
    assert parse([stream + newline + newline]) == [b"one\ntwo", b""]


def test_a_byte_order_mark_is_dropped_even_in_pieces() -> None:
    assert parse([b"\xef", b"\xbb\xbfda", b"ta: a\n\n"]) == [b"a"]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert parse([b"data:  a\n\ndata:b \n\n"]) == [b" a", b"b "]


def test_a_last_event_without_its_blank_line_is_given_at_the_end() -> None:
    assert parse([b"data: a\n\ndata: [DONE]"]) == [b"a", b"[DONE]"]


def test_other_characters_that_end_lines_elsewhere_are_data() -> None:
    text = "a\u2028b\u0085c\x0bd\x0c".encode()
    assert parse([b"data: " + text + b"\n\n"]) == [text]


def test_a_line_that_never_ends_is_refused() -> None:
    parser = SseParser(limit=1000)
    parser.feed(b"x" * 900)
    with pytest.raises(EventTooLarge):
        parser.feed(b"x" * 101)


@given(
    st.lists(
        st.sampled_from([b"data: a", b"data:", b"data", b": c", b"x: y", b"", b"data: \xc3\xa9"])
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 60)),
)
def test_where_a_stream_is_cut_makes_no_difference(
    lines: list[bytes], newline: bytes, cuts: list[int]
) -> None:
    stream = newline.join([*lines, b"", b""])
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(places)]
    assert parse(pieces) == parse([stream])
