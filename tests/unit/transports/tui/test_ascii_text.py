"""ASCII for terminals whose locale is not UTF-8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.transports.tui.ascii_text import is_utf8, to_ascii
from trimtab.transports.tui.cells import width


@given(st.text())
def test_any_text_becomes_ascii_of_the_same_width(text: str) -> None:
    shown = to_ascii(text)
    assert shown.isascii()
    assert width(shown) == width(text) or not text.isprintable()


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, True),
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, True),
        ({"LANG": "C.UTF-8", "LC_CTYPE": "POSIX", "LC_ALL": ""}, False),
    ],
)
def test_the_first_variable_that_is_set_names_the_encoding(
    env: dict[str, str], expected: bool
) -> None:
    assert is_utf8(env) is expected
