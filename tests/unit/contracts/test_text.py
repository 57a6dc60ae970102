import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.text import neutralise, show_arguments


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("naïve 日本語 🙂 \u2764\ufe0f", "naïve 日本語 🙂 \u2764\ufe0f"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;never ended", "52;c;never ended"),
        ("\x9b31mred", "red"),
        ("\x1bPdevice\x1b\\x", "x"),
        ("a\x1bcb", "ab"),
        ("bell\x07 back\x08", "bell\u2407 back\u2408"),
        ("over\rwritten", "over\u240dwritten"),
        ("two\r\nlines", "two\nlines"),
        ("access\u202egpj.exe", "access\u27e8U+202E\u27e9gpj.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("hidden\U000e0041\U000e0042tags", "hiddentags"),
        ("half \ud83d", "half \ufffd"),
        ("end\x1b", "end\u241b"),
    ],
)
def test_foreign_text_is_shown_harmlessly(foreign: str, shown: str) -> None:
    assert neutralise(foreign) == shown


@given(st.text(st.characters(), max_size=60))
def test_nothing_that_acts_on_a_terminal_ever_remains(text: str) -> None:
    shown = neutralise(text)
    assert not any(
        (ord(character) < 0x20 and character not in "\n\t") or 0x7F <= ord(character) <= 0x9F
        for character in shown
    )
    shown.encode()
    assert neutralise(shown) == shown


@given(st.text(st.characters(), max_size=60))
def test_in_an_approval_nothing_is_hidden_and_nothing_is_lost(text: str) -> None:
    shown = neutralise(text, "approval")
    hidden = re.compile(r"⟨U\+([0-9A-F]{4,6})⟩")
    assert hidden.sub(lambda token: chr(int(token[1], 16)), shown) == text
    assert all(
        character.isprintable() or character in "\n\t" or ord(character) > 0xFF
        for character in shown
    )
    shown.encode()


def test_in_an_approval_escape_sequences_and_look_alike_blanks_are_seen() -> None:
    assert neutralise("a\x1b[1mb\r\nc\u00a0d", "approval") == "a⟨U+001B⟩[1mb⟨U+000D⟩\nc⟨U+00A0⟩d"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"path": "a.txt", "command": "ls"}, "ls"),
        ({"title": "Say  bye\nnow", "number": 7, "draft": True, "labels": ["x"], "body": ""},
         "title: Say bye now, number: 7"),
        ({"text": "x" * 200}, f"text: {'x' * 153}…"),
        ({}, ""),
        ("freeform", ""),
    ],
)  # fmt: skip
def test_a_call_is_shown_by_its_best_argument_or_by_short_ones(arguments: Any, shown: str) -> None:
    assert show_arguments(arguments) == shown
