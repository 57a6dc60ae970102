"""Reading a log: each record and each piece of damage at its exact place."""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from logkit import event, joined, lines_in, short_log
from trimtab.session.record import Damage, Record, parse_record
from trimtab.session.records import (
    begins_turn,
    count_turns,
    find_last,
    follow_records,
    last_record,
    read_records,
    scan,
)

A, B, C = short_log()[2:5]
BLOCK = 1 << 18
"""Bytes that are read at a time."""
NEXT = len(A) + 1
"""The offset of the line after `A`."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def scanned(path: Path, data: bytes, start: int = 0) -> list[tuple[Any, ...]]:
    """Return offset and line of each record; kind, offset, length and bytes of each damage."""
    path.write_bytes(data)
    with path.open("rb") as file:
        return [
            (piece.offset, piece.line)
            if isinstance(piece, Record)
            else (piece.kind, piece.offset, piece.length, piece.raw)
            for piece in scan(file.fileno(), start)
        ]


@pytest.mark.parametrize(
    ("rest", "pieces"),
    [
        (B + b"\n", [(NEXT, B)]),
        (B, [("unterminated", NEXT + len(B), 0, b""), (NEXT, B)]),
        (b" \t" + B + b"  \n", [(NEXT + 2, B)]),
        (b"\0\0" + B + b"\n", [("nul", NEXT, len(B) + 2, b""), (NEXT + 2, B)]),
        (B + b"\0\n", [("nul", NEXT, len(B) + 1, b""), (NEXT, B)]),
        (b"\xef\xbb\xbf" + B + b"\n", [("bom", NEXT, len(B) + 3, b""), (NEXT + 3, B)]),
        (B + b"\r\n", [("crlf", NEXT, len(B) + 1, b""), (NEXT, B)]),
        (b"\n" + B + b"\n", [("blank", NEXT, 0, b""), (NEXT + 1, B)]),
        (b"  \n" + B + b"\n", [("blank", NEXT, 2, b""), (NEXT + 3, B)]),
        (b"\0\0\0\n" + B + b"\n", [("nul", NEXT, 3, b""), (NEXT + 4, B)]),
        (b"no\n" + B + b"\n", [("garbage", NEXT, 2, b"no"), (NEXT + 3, B)]),
        (b"no", [("garbage", NEXT, 2, b"no")]),
        (B[:-5], [("torn", NEXT, len(B) - 5, B[:-5])]),
        (
            b"no\n" + B + b"\r\n",
            [("garbage", NEXT, 2, b"no"), ("crlf", NEXT + 3, len(B) + 1, b""), (NEXT + 3, B)],
        ),
        (
            b"no\n" + B,
            [("garbage", NEXT, 2, b"no"), ("unterminated", NEXT + 3 + len(B), 0, b""), (NEXT + 3, B)],
        ),
    ],
)  # fmt: skip
def test_everything_in_a_log_is_found_at_its_place(
    path: Path, rest: bytes, pieces: list[tuple[Any, ...]]
) -> None:
    assert scanned(path, A + b"\n" + rest) == [(0, A), *pieces]
    assert scanned(path, A + b"\n" + rest, start=NEXT) == pieces


def test_an_empty_line_inside_a_record_is_part_of_its_text(path: Path) -> None:
    whole = event("user.message", {"content": "one\n\ntwo"}, 3)
    broken = whole.replace(rb"\n", b"\n")
    assert scanned(path, broken + b"\n") == [
        ("newline", 0, len(broken), broken),
        (0, whole),
    ]


def test_a_line_that_begins_like_an_event_never_continues_the_line_before_it(path: Path) -> None:
    first, second = b'{"id":"1","data":', b'{"type":"x"},"type":"y"}'
    assert parse_record(first + second, 0)
    assert scanned(path, first + b"\n" + second + b"\n") == [
        ("garbage", 0, len(first), first),
        ("torn", len(first) + 1, len(second), second),
    ]


def test_rubbish_of_any_size_is_read_in_pieces(path: Path) -> None:
    line = b"x" * (1 << 20) + b"\n"
    with path.open("wb") as file:
        for _ in range(24):
            file.write(line)
    with path.open("rb", buffering=0) as file:
        pieces = scan(file.fileno())
        first = next(pieces)
        assert first == Damage("garbage", 0, 1 << 20, line[:-1])
        assert (1 << 24) < file.tell() < (1 << 24) + (1 << 22)
        assert [piece.offset for piece in pieces] == [n * len(line) for n in range(1, 24)]


@pytest.mark.parametrize("size", [1, BLOCK - NEXT, BLOCK, 3 * BLOCK, 3 * BLOCK + 5])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_hole_of_any_size_moves_no_record(path: Path, size: int, end: bytes) -> None:
    found = scanned(path, A + b"\n" + bytes(size) + end + B + b"\n")
    records = [piece for piece in found if len(piece) == 2]
    assert records == [(0, A), (NEXT + size + len(end), B)]
    damage = [piece for piece in found if len(piece) > 2]
    assert {piece[0] for piece in damage} == {"nul"}
    assert damage[0][1] == NEXT
    for before, after in pairwise(damage):
        assert before[1] + before[2] == after[1]


def test_a_hole_after_rubbish_moves_no_record(path: Path) -> None:
    rubbish = b"no" * BLOCK
    data = joined([A]) + rubbish + bytes(3 * BLOCK) + joined([B])
    first, garbage, hole, last = scanned(path, data)
    assert (first, last) == ((0, A), (data.index(B), B))
    assert garbage == ("garbage", NEXT, len(rubbish), rubbish)
    assert (hole[0], hole[1] + hole[2]) == ("nul", len(data) - 1)


@pytest.mark.parametrize("around", [BLOCK, 4 * BLOCK])
def test_the_last_prompt_is_found_wherever_blocks_begin(path: Path, around: int) -> None:
    prompt = event("user.message", {"content": "last"}, 5)
    for after in range(around - len(prompt) - 2, around + 2, 3):
        path.write_bytes(joined([A, prompt]) + b"x" * (after - 1) + b"\n")
        assert find_last(str(path), "user.message") == NEXT, after


@pytest.mark.parametrize("size", [10, BLOCK - 1, BLOCK, 2 * BLOCK, 5 * BLOCK])
@pytest.mark.parametrize("order", ["early", "late"])
@pytest.mark.parametrize("first", [True, False])
def test_a_prompt_of_any_size_is_found_with_its_whole_line(
    path: Path, size: int, order: str, first: bool
) -> None:
    data = b'"data":{"content":"%s"}' % (b"x" * size)
    kind = b'"type":"user.message"'
    line = b"{%s}" % b",".join((kind, data) if order == "early" else (data, kind))
    path.write_bytes(joined([line, C] if first else [A, line, C]))
    assert find_last(str(path), "user.message") == (0 if first else NEXT)


def test_only_a_prompt_of_the_main_agent_is_the_last_one(path: Path) -> None:
    prompt = event("user.message", {"content": "mine"}, 5)
    theirs = prompt.replace(b'{"type"', b'{"agentId":"sub","type"')
    quoted = event("tool.execution_start", {"arguments": {"type": "user.message"}}, 6)
    path.write_bytes(joined([A, prompt, theirs, quoted]))
    assert find_last(str(path), "user.message") == NEXT
    path.write_bytes(joined([A, theirs, quoted]))
    assert find_last(str(path), "user.message") == 0
    path.write_bytes(b"")
    assert find_last(str(path), "user.message") == 0


def test_a_prompt_is_found_before_many_lines_that_quote_one(path: Path) -> None:
    prompt = event("user.message", {"content": "mine"}, 5)
    quoted = event("tool.execution_start", {"arguments": {"type": "user.message"}}, 6)
    other = event("x", {"text": "y" * 30_000}, 7)
    path.write_bytes(joined([A, prompt, *[quoted, other] * 80, quoted]))
    assert path.stat().st_size > 8 * BLOCK
    assert find_last(str(path), "user.message") == NEXT


def last(path: Path, data: bytes, **limit: int) -> tuple[int, bytes] | None:
    path.write_bytes(data)
    with path.open("rb") as file:
        record = last_record(file.fileno(), **limit)
    return None if record is None else (record.offset, record.line)


@pytest.mark.parametrize("size", [0, 8_000, 8_191, 8_192, 9_000, 70_000, 600_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\nrubbish\n", b"\n" + B[:-3]])
def test_the_last_record_is_found_from_the_end(path: Path, size: int, end: bytes) -> None:
    line = event("x", {"text": "y" * size}, 1)
    assert last(path, joined([A]) + line + end) == (NEXT, line)
    assert last(path, line + end) == (0, line)


def test_a_log_without_a_record_has_no_last_one(path: Path) -> None:
    assert last(path, b"") is None
    for limit in (1 << 14, 1 << 30):
        assert last(path, b"rubbish\n" * 9_000, within=limit) is None


def test_the_last_record_is_not_looked_for_beyond_the_limit(path: Path) -> None:
    line = event("x", {"text": "y" * 40_000}, 1)
    data = joined([A, line])
    assert last(path, data, within=1 << 16) == (NEXT, line)
    assert last(path, data, within=1 << 13) is None
    assert last(path, joined([line]), within=1 << 30) == (0, line)


def test_the_end_of_a_line_is_never_taken_for_the_last_record(path: Path) -> None:
    inner = event("x", {"text": "y" * 8_050}, 1)
    inner = inner[:-1] + b" " * (8_191 - len(inner)) + b"}"
    data = joined([A, b"rubbish" + inner])
    assert len(inner) + 1 == 1 << 13
    assert last(path, data) == (0, A)


class Writer:
    """Another process: each time somebody asks whether it runs, it does its next step."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)

    def is_running(self) -> bool:
        if not self._steps:
            return False
        self._steps.pop(0)()
        return True


def followed(path: Path, start: int, *steps: Callable[[], object]) -> Iterator[bytes]:
    running = Writer(*steps).is_running
    return (record.line for record in follow_records(str(path), start=start, is_running=running))


def appending(path: Path, data: bytes) -> Callable[[], object]:
    def append() -> None:
        with path.open("ab") as file:
            file.write(data)

    return append


def test_records_are_followed_once_each_until_the_writer_ends(path: Path) -> None:
    path.write_bytes(joined([A]))
    steps = (appending(path, B + b"\n" + C[:20]), appending(path, C[20:]), appending(path, b"\n"))
    assert list(followed(path, NEXT, *steps)) == [B, C]
    assert list(followed(path, 0)) == [A, B, C]


def test_a_record_without_its_newline_is_not_shown_while_it_is_written(path: Path) -> None:
    path.write_bytes(joined([A]) + B)
    assert list(followed(path, 0)) == [A]
    assert list(followed(path, 0, appending(path, b"\n" + C))) == [A, B]


def test_following_goes_on_after_a_log_got_shorter(path: Path) -> None:
    path.write_bytes(joined([A, B]))
    steps = (
        lambda: path.write_bytes(joined([A])),
        appending(path, joined([C])),
    )
    assert list(followed(path, len(joined([A, B])), *steps)) == [C]


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({}, True),
        ({"source": "user"}, True),
        ({"source": "hook"}, False),
        ({"content": 5}, True),
    ],
)
def test_a_turn_begins_with_a_prompt_of_a_person(
    path: Path, fields: dict[str, Any], begins: bool
) -> None:
    line = event("user.message", {"content": "x", **fields}, 1)
    theirs = line.replace(b'{"type"', b'{"agentId":"sub","type"')
    path.write_bytes(joined([line, theirs, A]))
    assert [begins_turn(record) for record in read_records(str(path))] == [begins, False, False]
    assert count_turns(str(path)) == begins
    path.write_bytes(joined([line, A, line.replace(b"0001", b"0009")]))
    assert count_turns(str(path)) == 2 * begins


def test_records_know_their_fields(path: Path) -> None:
    path.write_bytes(joined(short_log()))
    record = list(read_records(str(path)))[3]
    assert (record.type, record.id[-2:], (record.parent_id or "")[-2:], record.agent_id) == (
        "user.message",
        "03",
        "02",
        None,
    )
    assert record.timestamp == "2025-11-15T20:00:03.000Z"
    assert lines_in(path)[3] == record.line
    assert os.path.getsize(path) > record.offset > 0


@pytest.mark.parametrize(
    ("line", "has_data"),
    [
        (b'{"type":"x"}', False),
        (b'{"type":"x","data":{}}', True),
        (b'{"type":"x","data": {"a":1}}', True),
        (b'{"type":"x","data":[]}', False),
        (b'{"type":"x","data":null}', False),
        (b'{"type":"x","data":{"a":NaN}}', True),
        (b'{"type":"x","data":[NaN]}', False),
    ],
)
def test_a_record_says_if_its_data_is_an_object(line: bytes, has_data: bool) -> None:
    record = parse_record(line, 7)
    assert record is not None
    assert (record.has_data, record.offset) == (has_data, 7)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b'{"type":5}',
        b'{"type":"x"',
        b'{"type":"x"} {"type":"y"}',
        b'{"type":"x","data":{"a":NaN}} ',
        b' {"type":"x","data":{"a":NaN}}',
        b'{"type":"x","data":{"a":"\0"}}',
        b'{"type":"x","data":{"a":"\xff"}}',
        b'{"type":"x","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_line_that_is_not_exactly_one_event_is_no_record(line: bytes) -> None:
    assert parse_record(line, 0) is None
