"""Rows of terminal cells: wrapped and clipped to a width."""

import string

from hypothesis import given
from hypothesis import strategies as st

from trimtab.transports.tui.cells import clip, line_width, plain, wrap

WIDE = "漢字かな한글🙂é\u0301\t"


TEXTS = st.text(
    alphabet=string.ascii_letters + string.digits + " .,-`*_[]()#>|~" + WIDE, max_size=300
)


WIDTHS = st.integers(min_value=8, max_value=120)


def letters(text: str) -> str:
    """What must survive rendering whatever is done to spaces and markup."""
    return "".join(character for character in text if character.isalnum())


@given(TEXTS, WIDTHS)
def test_a_wrapped_row_is_never_too_wide_and_no_letter_is_lost(text: str, limit: int) -> None:
    rows = wrap((("", text),), limit, "  ")
    assert all(line_width(row) <= limit for row in rows)
    assert letters("".join(plain(row) for row in rows)) == letters(text)


@given(TEXTS, st.integers(min_value=0, max_value=100))
def test_a_clipped_row_is_never_too_wide(text: str, limit: int) -> None:
    assert line_width(clip((("bold", text[:9]), ("", text[9:])), limit)) <= max(0, limit)
