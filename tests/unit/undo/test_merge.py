"""Three-way merges: the changes of both sides, or a conflict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.undo.merge import (
    MAX_LINES,
    apply_hunk,
    changed,
    count_lines,
    merge,
    split,
)

BASE = b"1\n2\n3\n4\n5\n6\n"
TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\r\n"]), max_size=8).map(b"".join)


def test_changes_in_different_places_are_merged() -> None:
    mine, theirs = BASE.replace(b"2", b"mine"), BASE.replace(b"5", b"theirs")
    assert merge(BASE, mine, theirs) == b"1\nmine\n3\n4\ntheirs\n6\n"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (BASE.replace(b"2", b"x"), BASE.replace(b"2", b"y")),
        (BASE.replace(b"2", b"x"), BASE.replace(b"3", b"y")),
        (b"0\n" + BASE, b"9\n" + BASE),
        (BASE.replace(b"2\n", b""), BASE.replace(b"2", b"y")),
    ],
)
def test_changes_that_touch_are_a_conflict(mine: bytes, theirs: bytes) -> None:
    assert merge(BASE, mine, theirs) is None


def test_the_same_change_on_both_sides_is_made_once() -> None:
    both = BASE.replace(b"2", b"x")
    assert merge(BASE, both, both.replace(b"5", b"y")) == both.replace(b"5", b"y")


def test_binary_content_is_never_merged() -> None:
    assert merge(b"a\0b", b"a\0c", b"b\0b") is None


@given(TEXTS, TEXTS)
def test_a_change_of_one_side_alone_is_taken_whole(base: bytes, other: bytes) -> None:
    assert merge(base, base, other) == other
    assert merge(base, other, base) == other


@given(TEXTS, TEXTS)
def test_the_differences_rebuild_the_other_text(one: bytes, other: bytes) -> None:
    ops = changed(split(one), split(other))
    assert ops is not None
    text = one
    for _ in ops:
        step = apply_hunk(text, other, 1)
        assert step is not None
        text = step
    assert text == other


def test_lines_are_counted() -> None:
    assert count_lines(BASE, BASE.replace(b"2\n", b"x\ny\n")) == (2, 1)
    assert apply_hunk(BASE, BASE, 1) is None


def test_a_text_that_is_too_long_to_compare_is_not_merged() -> None:
    base = [b"%d\n" % number for number in range(MAX_LINES + 10)]
    other = b"".join(b"x" + line for line in base)
    mine = b"".join([b"mine\n", *base[1:]])
    assert merge(b"".join(base), mine, other) is None
    assert merge(b"".join(base), other, mine) is None


@pytest.mark.parametrize(("old", "new"), [(b"a\0", b"a\n"), (b"a\n", b"a\0"), (b"\0", b"\0\n")])
def test_lines_are_not_counted_if_either_side_is_binary(old: bytes, new: bytes) -> None:
    assert count_lines(old, new) == (0, 0)


@pytest.mark.parametrize("mine", [b"A", b"z"])
@pytest.mark.parametrize("theirs", [b"A", b"z"])
@pytest.mark.parametrize(("first", "second"), [(b"1", b"6"), (b"6", b"1"), (b"2", b"4")])
def test_texts_are_merged_whichever_side_is_changed_first(
    mine: bytes, theirs: bytes, first: bytes, second: bytes
) -> None:
    merged = merge(BASE, BASE.replace(first, mine), BASE.replace(second, theirs))
    assert merged == BASE.replace(first, mine).replace(second, theirs)


@pytest.mark.parametrize(("mine", "theirs"), [(b"", BASE + b"7\n"), (BASE + b"7\n", b"")])
def test_a_text_that_is_all_gone_on_one_side_is_a_conflict(mine: bytes, theirs: bytes) -> None:
    assert merge(BASE, mine, theirs) is None


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_zero_byte_on_any_side_makes_it_binary(place: int) -> None:
    texts = [BASE, BASE.replace(b"1", b"x"), BASE.replace(b"6", b"y")]
    texts[place] += b"\0"
    assert merge(*texts) is None


def lines(text: str) -> list[bytes]:
    return [f"{character}\n".encode() for character in text]


@pytest.mark.parametrize(
    ("old", "new", "ops"),
    [
        ("", "", []),
        ("abc", "abc", []),
        ("", "ab", [(0, 0, 0, 2)]),
        ("ab", "", [(0, 2, 0, 0)]),
        ("abc", "xabc", [(0, 0, 0, 1)]),
        ("abc", "abcx", [(3, 3, 3, 4)]),
        ("abc", "axc", [(1, 2, 1, 2)]),
        ("aa", "aaa", [(2, 2, 2, 3)]),
        ("aaa", "aa", [(2, 3, 2, 2)]),
        ("aaaa", "aaaaaaa", [(4, 4, 4, 7)]),
        ("abcdef", "xbcdey", [(0, 1, 0, 1), (5, 6, 5, 6)]),
        ("abcdef", "acdxf", [(1, 2, 1, 1), (4, 5, 3, 4)]),
        ("zabcdefz", "zacdxfz", [(2, 3, 2, 2), (5, 6, 4, 5)]),
    ],
)
def test_hunks_are_where_the_texts_differ(
    old: str, new: str, ops: list[tuple[int, int, int, int]]
) -> None:
    assert changed(lines(old), lines(new)) == ops


def test_lines_after_hundreds_of_equal_ones_are_found() -> None:
    long = [b"%d\n" % number for number in range(300)]
    assert changed(long, [*long, b"x\n"]) == [(300, 300, 300, 301)]
    assert changed([*long, b"x\n"], long) == [(300, 301, 300, 300)]
    assert changed(long, [b"x\n", *long]) == [(0, 0, 0, 1)]
    assert changed(long, long) == []


def test_a_line_that_is_often_there_is_compared_like_any_other() -> None:
    many = [b"same\n"] * 250
    ops = changed([b"1\n", *many, b"2\n"], [b"A\n", *many, b"B\n"])
    assert ops == [(0, 1, 0, 1), (251, 252, 251, 252)]


@pytest.mark.parametrize(
    ("old", "new", "compared"),
    [
        (1, MAX_LINES - 1, True),
        (1, MAX_LINES, False),
        (MAX_LINES // 2 + 1, MAX_LINES // 2, False),
        (MAX_LINES, 0, True),
        (MAX_LINES + 1, 0, False),
    ],
)
def test_no_more_changed_lines_are_compared_than_the_limit(
    old: int, new: int, compared: bool
) -> None:
    before = [b"old %d\n" % number for number in range(old)]
    after = [b"new %d\n" % number for number in range(new)]
    assert (changed(before, after) is not None) is compared


@pytest.mark.parametrize(
    ("number", "text"),
    [(-1, None), (0, None), (1, b"x\n2\n3\n4\n5\n6\n"), (2, b"1\n2\n3\ny\n5\n6\n"), (3, None)],
)
def test_a_hunk_is_applied_by_its_number(number: int, text: bytes | None) -> None:
    assert apply_hunk(BASE, b"x\n2\n3\ny\n5\n6\n", number) == text


def test_a_hunk_of_texts_too_long_to_compare_is_not_applied() -> None:
    assert apply_hunk(b"x\n", b"y\n" * MAX_LINES, 1) is None
    assert count_lines(b"x\n", b"y\n" * MAX_LINES) == (0, 0)


@pytest.mark.parametrize(
    ("text", "parts"),
    [(b"", []), (b"a", [b"a"]), (b"a\n", [b"a\n"]), (b"\n\nb", [b"\n", b"\n", b"b"])],
)
def test_lines_keep_their_newlines(text: bytes, parts: list[bytes]) -> None:
    assert split(text) == parts


def test_a_zero_byte_far_from_the_beginning_does_not_make_a_text_binary_for_counting() -> None:
    long = b"x" * 8192
    for old, new in ((long + b"\0\n", b""), (long[1:] + b"\0\n", b"")):
        assert count_lines(old, new) == ((0, 1) if old[8191:8192] != b"\0" else (0, 0))
        assert count_lines(new, old) == ((1, 0) if old[8191:8192] != b"\0" else (0, 0))
