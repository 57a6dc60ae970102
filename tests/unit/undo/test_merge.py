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
