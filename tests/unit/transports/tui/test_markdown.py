"""Markdown in the terminal, whole or in pieces as it streams."""

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trimtab.contracts.text import neutralise
from trimtab.transports.tui.cells import plain
from trimtab.transports.tui.markdown import MarkdownStream
from trimtab.transports.tui.theme import NONE, encode

WIDE = "漢字かな한글🙂é\u0301\t"


TEXTS = st.text(
    alphabet=string.ascii_letters + string.digits + " .,-`*_[]()#>|~" + WIDE, max_size=300
)


LINES = st.lists(TEXTS, max_size=12).map("\n".join)


WIDTHS = st.integers(min_value=8, max_value=120)


WORDS = st.text(alphabet="abcdefgh 漢🙂.", max_size=200)


def letters(text: str) -> str:
    """What must survive rendering whatever is done to spaces and markup."""
    return "".join(character for character in text if character.isalnum())


def render(text: str, columns: int, cuts: list[int]) -> list[str]:
    """Render a message that arrives in pieces, taking what is certain after each piece."""
    stream, lines, at = MarkdownStream(), [], 0
    for cut in [*sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]:
        stream.feed(text[at:cut])
        at = cut
        lines += stream.take(columns)
    stream.end()
    lines += stream.take(columns)
    assert not stream.tail(columns)
    return [plain(line) for line in lines]


@settings(max_examples=200)
@given(
    st.lists(WORDS, max_size=10).map("\n".join), WIDTHS, st.lists(st.integers(0, 2000), max_size=20)
)
@example("a " * 200, 20, [7, 30, 31, 32, 90])
@example("\n" + "a" * 16 + "  \n", 8, [19])
@example("aaaaaa漢  a ", 8, [9])
def test_prose_gives_the_same_rows_however_it_is_cut(
    text: str, columns: int, cuts: list[int]
) -> None:
    assert render(text, columns, cuts) == render(text, columns, [])


@settings(max_examples=200)
@given(LINES, WIDTHS, st.lists(st.integers(0, 4000), max_size=20))
@example("|000000か\n|", 8, [])
@example("|000000か\n|-|", 8, [])
def test_no_letter_of_a_message_is_lost_or_doubled(
    text: str, columns: int, cuts: list[int]
) -> None:
    text = text.replace("[", "(").replace("~~~", "~").replace("```", "`")
    assert letters("".join(render(text, columns, cuts))) == letters(text)


def test_code_in_a_list_is_written_without_the_indent_of_the_list() -> None:
    stream = MarkdownStream()
    stream.feed("1. Run:\n   ```sh\n   if true; then\n     date\n\n   fi\n   ```\n")
    stream.end()
    lines = [plain(line) for line in stream.take(40)]
    assert lines == ["1. Run:", "sh", "if true; then", "  date", "", "fi"]


def test_code_is_written_as_it_stands_and_a_docstring_keeps_its_colour() -> None:
    code = '```python\ndef f():\n    """one\n    two"""\n    return 1\n```\n'
    stream = MarkdownStream()
    stream.feed(code)
    lines = stream.take(20)
    assert [plain(line) for line in lines[1:]] == [
        "def f():",
        '    """one',
        '    two"""',
        "    return 1",
    ]
    assert ("string", '    two"""') in lines[3]


def show(text: str, columns: int = 60) -> str:
    """A message as it is sent to a terminal."""
    stream = MarkdownStream()
    stream.feed(text)
    stream.end()
    return "\n".join(encode(line, NONE) for line in stream.take(columns))


def test_links_are_links_of_the_terminal_and_show_where_they_lead() -> None:
    sent = show("See [the guide](https://example.com/a?b=1) now.")
    assert "\x1b]8;;https://example.com/a?b=1\x1b\\the guide\x1b]8;;\x1b\\" in sent
    assert "(https://example.com/a?b=1)" in sent


def test_an_address_in_prose_stays_one_link_when_it_wraps() -> None:
    address = "https://example.com/" + "x" * 50
    sent = show(f"It is at {address}.", 30)
    assert sent.count(f"\x1b]8;;{address}\x1b\\") == 3
    assert f"\x1b]8;;{address}.\x1b" not in sent


@pytest.mark.parametrize("target", ["javascript:alert(1)", "file:///etc/passwd", "x\x1b]0;y"])
def test_only_pages_and_mail_are_links_of_the_terminal(target: str) -> None:
    assert "\x1b]8;;" not in show(neutralise(f"[here]({target})"))
