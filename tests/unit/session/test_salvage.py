"""Recovering events from a damaged stretch: what is found, where, and which bytes it was made of."""

import json
from typing import Any

import pytest

from logkit import event
from trimtab.session.record import Record
from trimtab.session.salvage import salvage

A = event("user.message", {"content": "one"}, 1)
B = event("user.message", {"content": "two"}, 2)
AT = 1000
"""The offset of the stretch in its log."""


def salvaged(raw: bytes, *, at_end: bool = False) -> list[tuple[Any, ...]]:
    """Return place and line of each event; kind, place, length and bytes of each damage."""
    return [
        (piece.offset - AT, piece.line)
        if isinstance(piece, Record)
        else (piece.kind, piece.offset - AT, piece.length, piece.raw)
        for piece in salvage(raw, AT, at_end=at_end)
    ]


def garbage(at: int, raw: bytes) -> tuple[Any, ...]:
    return ("garbage", at, len(raw), raw)


L = len(A)


@pytest.mark.parametrize(
    ("raw", "pieces"),
    [
        (A + B + b"\n", [(0, A), ("glued", L, L, b""), (L, B)]),
        (A + b" \t" + B + b"\n", [(0, A), ("glued", L + 2, L, b""), (L + 2, B)]),
        (A + b"\n" + B + b"\n", [(0, A), (L + 1, B)]),
        (b"no" + A + b"\n", [garbage(0, b"no"), (2, A)]),
        (A + b"no\n", [(0, A), garbage(L, b"no")]),
        (A + b" no \n", [(0, A), garbage(L + 1, b"no")]),
        (A + b"no" + B + b"\n", [(0, A), garbage(L, b"no"), ("glued", L + 2, L, b""), (L + 2, B)]),
        (A + b"no\n" + B + b"\n", [(0, A), garbage(L, b"no"), (L + 3, B)]),
        (b"a\nb\n" + A + b"\n", [garbage(0, b"a"), garbage(2, b"b"), (4, A)]),
        (b"a\n\nb\n", [garbage(0, b"a"), ("blank", 2, 0, b""), garbage(3, b"b")]),
        (b"a\n \t\nb\n", [garbage(0, b"a"), ("blank", 2, 2, b""), garbage(5, b"b")]),
        (b"a\n\0\0\nb\n", [garbage(0, b"a"), ("nul", 2, 2, b""), garbage(5, b"b")]),
        (bytes(5) + A + b"\n", [("nul", 0, 5, b""), (5, A)]),
        (A + bytes(5) + B + b"\n", [(0, A), ("nul", L, 5, b""), ("glued", L + 5, L, b""), (L + 5, B)]),
        (b"\xff\n", [garbage(0, b"\xff")]),
        (b"\nno\n", [("blank", 0, 0, b""), garbage(1, b"no")]),
        (b"{}\n[]\n", [garbage(0, b"{}"), garbage(3, b"[]")]),
        (b'{"type":5}\n', [garbage(0, b'{"type":5}')]),
        (b"", []),
    ],
)  # fmt: skip
def test_events_and_the_bytes_between_them_are_found_at_their_places(
    raw: bytes, pieces: list[tuple[Any, ...]]
) -> None:
    assert salvaged(raw) == pieces


@pytest.mark.parametrize(
    ("raw", "pieces"),
    [
        (A[:-4], [("torn", 0, L - 4, A[:-4])]),
        (A + B[:-4], [(0, A), ("torn", L, L - 4, B[:-4])]),
        (A[:-4] + b"\nno", [garbage(0, A[:-4]), garbage(L - 3, b"no")]),
        (b"no", [garbage(0, b"no")]),
        (b"}~", [garbage(0, b"}~")]),
        (A + B, [(0, A), ("glued", L, L, b""), (L, B), ("unterminated", 2 * L, 0, b"")]),
        (A + B + b"\n", [(0, A), ("glued", L, L, b""), (L, B)]),
        (A + B + b" ", [(0, A), ("glued", L, L, b""), (L, B), ("unterminated", 2 * L + 1, 0, b"")]),
        (A + b"no", [(0, A), garbage(L, b"no")]),
    ],
)  # fmt: skip
def test_at_the_end_of_a_log_a_record_may_be_cut_off_or_lack_its_newline(
    raw: bytes, pieces: list[tuple[Any, ...]]
) -> None:
    assert salvaged(raw, at_end=True) == pieces


@pytest.mark.parametrize("size", [10, 4_000, 4_095, 4_096, 4_100, 33_000, 300_000])
def test_an_event_of_any_size_is_recovered(size: int) -> None:
    long = event("user.message", {"content": "x" * size}, 3)
    assert salvaged(b"no" + long + B + b"\n") == [
        garbage(0, b"no"),
        (2, long),
        ("glued", 2 + len(long), L, b""),
        (2 + len(long), B),
    ]


@pytest.mark.parametrize("size", range(4_060, 4_100))
def test_numbers_and_words_at_the_end_of_a_piece_are_read_whole(size: int) -> None:
    head = b'{"type":"x","data":{"text":"%s","number":-123456.75e10,"yes":false}}'
    long = head % (b"y" * (size - 40))
    assert salvaged(b"no\n" + long + b"\n") == [garbage(0, b"no"), (3, long)]


def halves(at: int, raw: bytes) -> tuple[Any, ...]:
    return ("halves", at, len(raw), raw)


@pytest.mark.parametrize("cut", [1, 30, L // 2, L - 1])
def test_an_event_around_another_is_joined(cut: int) -> None:
    first, second = A[:cut], A[cut:]
    for end in (b"", b"\n"):
        rest = cut + len(B) + len(end)
        assert salvaged(first + B + end + second + b"\n") == [
            halves(0, first),
            (0, A),
            (cut, B),
            halves(rest, second),
        ]


def test_two_events_in_halves_are_joined_each() -> None:
    other = event("user.message", {"content": "three"}, 3)
    raw = A[:50] + B + A[50:] + b"\n" + other[:50] + B + other[50:] + b"\n"
    lines = [piece[1] for piece in salvaged(raw) if len(piece) == 2]
    assert lines == [A, B, other, B]


def test_joined_halves_have_the_place_of_the_first() -> None:
    found = salvaged(b"no\n" + A[:50] + B + A[50:] + b"\n")
    assert (3, A) in found
    assert halves(3, A[:50]) in found


def test_halves_that_make_no_event_stay_rubbish() -> None:
    assert salvaged(b'{"type":\n5}\n') == [garbage(0, b'{"type":'), garbage(9, b"5}")]
    nameless = b'{"type":"x","data":"', b'"}'
    assert [piece[0] for piece in salvaged(nameless[0] + B + nameless[1] + b"\n")] == [
        "garbage",
        len(nameless[0]),
        "garbage",
    ]


def test_a_newline_in_a_text_becomes_part_of_it() -> None:
    whole = event("user.message", {"content": "one\ntwo\nthree"}, 3)
    for newline in (b"\n", b"\r\n"):
        raw = whole.replace(rb"\n", newline)
        assert salvaged(raw + b"\n") == [("newline", 0, len(raw), raw), (0, whole)]


def test_a_newline_between_fields_is_removed() -> None:
    raw = A.replace(b',"data"', b'\n,\n"data"')
    assert salvaged(b"no\n" + raw + b"\n") == [
        garbage(0, b"no"),
        ("newline", 3, len(raw), raw),
        (3, A),
    ]


@pytest.mark.parametrize("name", ["type", "data", "id", "timestamp", "parentId", "agentId"])
def test_a_newline_in_a_name_of_the_envelope_is_taken_out(name: str) -> None:
    whole = event("user.message", {"content": "one\ntwo"}, 3, 2)
    whole = whole.replace(b'{"type"', b'{"agentId":"a","type"')
    for cut in range(1, len(name)):
        split = f'"{name[:cut]}\n{name[cut:]}":'.encode()
        raw = whole.replace(f'"{name}":'.encode(), split)
        assert [piece for piece in salvaged(raw + b"\n") if len(piece) == 2] == [(0, whole)]


def test_a_newline_that_split_a_word_of_the_envelope_is_taken_out() -> None:
    raw = A.replace(b"user.message", b"user.\nmessage")
    assert salvaged(raw + b"\n") == [("newline", 0, len(raw), raw), (0, A)]


@pytest.mark.parametrize(
    ("broken", "kind", "content"),
    [
        (b"o\0\0\0ne", "nul", "o\ufffdne"),
        (b"o\0n\0e", "nul", "o\ufffdn\ufffde"),
        (b"o\xffne", "utf8", "o\ufffdne"),
        (b"o\xff\nne", "newline", "o\ufffd\nne"),
    ],
)
def test_lost_bytes_are_marked_in_the_text(broken: bytes, kind: str, content: str) -> None:
    raw = A.replace(b"one", broken)
    damage, record = salvaged(b"no\n" + raw + b"\n")[1:]
    assert damage == (kind, 3, len(raw), raw)
    assert record[0] == 3
    assert json.loads(record[1])["data"]["content"] == content


INNER = b'{"type":"x","id":"1","data":{},"timestamp":"t","parentId":null}'


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (b"", b"\n", True),
        (b"", b"", True),
        (b"}", b"{", True),
        (b"\n", b"no\n", True),
        (b'"', b'"\n', True),
        (b"[1,", b"no", True),
        (b"no", b",", True),
        (b'{"a":', b"}\n", False),
        (b"[", b"]\n", False),
        (b"[1, ", b", 2]\n", False),
        (b'{"a":  ', b"  }\n", False),
    ],
)
def test_an_object_inside_a_broken_event_is_not_an_event(
    before: bytes, after: bytes, found: bool
) -> None:
    raw = b"no " + before + INNER + after
    assert ((3 + len(before), INNER) in salvaged(raw)) is found


@pytest.mark.parametrize(
    "missing", [b'"id":"1",', b'"data":{},', b'"timestamp":"t",', b',"parentId":null']
)
def test_between_other_bytes_only_a_complete_event_is_recovered(missing: bytes) -> None:
    short = INNER.replace(missing, b"")
    assert (2, INNER) in salvaged(b"no" + INNER + b"no")
    assert (2, short) not in salvaged(b"no" + short + b"no")
    assert (2, short) not in salvaged(b"no" + short + b"\n")
    assert (1, short) not in salvaged(b"\n" + short + b"no")
    for line in (b"%s", b"\0%s", b" %s ", b"%s \t"):
        raw = b"no\n" + line % short + b"\nno"
        assert (raw.index(short), short) in salvaged(raw), "on a line of its own it is one"
    assert (1, short) in salvaged(b"\0" + short + short + b"\n")


def test_an_event_after_countless_braces_is_found() -> None:
    assert (400, B) in salvaged(b"{" * 400 + B + b"\n")
    assert (800, B) in salvaged(b'{"' * 400 + B + b"\n")


def test_the_newline_that_is_missing_is_the_last_one() -> None:
    other = event("user.message", {"content": "three"}, 3)
    found = salvaged(A + B + b"\n" + other, at_end=True)
    assert found[-2:] == [(2 * L + 1, other), ("unterminated", 2 * L + 1 + len(other), 0, b"")]


@pytest.mark.parametrize("before", [b"", b"no\n"])
def test_an_event_after_rubbish_that_is_nested_too_deeply_is_found(before: bytes) -> None:
    rubbish = b'{"a":' * 3_000
    at = len(before) + len(rubbish) + 1
    assert salvaged(before + rubbish + b"\n" + A + b"\n")[-1] == (at, A)
