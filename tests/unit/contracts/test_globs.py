"""Glob patterns as regular expressions."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.globs import to_regex, translate


def plainly(pattern: str) -> str:
    """Translate element by element, without the protection against backtracking."""
    parts, at = list[str](), 0
    while at < len(pattern):
        piece, at = translate(pattern, at, 0)
        parts.append(piece)
    return "".join(parts)


@given(
    st.lists(st.sampled_from(["*", "**", "**/", "/", "a", "b", "?", "[ab]"]), max_size=8),
    st.text("ab/", max_size=9),
)
def test_a_pattern_matches_what_its_elements_match(pieces: list[str], path: str) -> None:
    pattern = "".join(pieces)
    expected = re.fullmatch(plainly(pattern), path) is not None
    assert (re.fullmatch(to_regex(pattern), path) is not None) == expected


def takes_long(pattern: str, path: str) -> bool:
    began = time.process_time()
    assert not re.fullmatch(to_regex(pattern), path)
    return time.process_time() - began >= 2


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "/x", "**a" * 30 + "/x", "**/" * 30 + "y", "*a?" * 20 + "x"]
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert not takes_long(pattern, "a" * 200 + "b" + "/b" * 50 + "/x")


@pytest.mark.parametrize("repeated", ["**/a/", "**/a*/", "**/?/", "**/*a*/", "**/a/a/"])
def test_folders_between_double_stars_do_not_take_for_ever(repeated: str) -> None:
    assert not takes_long(repeated * 20 + "c", "a/" * 60 + "b")
