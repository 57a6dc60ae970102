"""Titles of sessions from their first prompt."""

import pytest

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.user import UserMessage
from trimtab.session.projections.title import LENGTH, Title, title_of


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("fix the parser", "fix the parser"),
        ("\n\n  fix   the parser \nand more", "fix the parser"),
        ("<reminder>x\ny</reminder>fix it", "fix it"),
        ("a < b and <b>bold</b> text", "a < b and text"),
        ("", ""),
        ("<x>only</x>", ""),
        ("x" * LENGTH, "x" * LENGTH),
        ("x" * (LENGTH + 1), "x" * (LENGTH - 1) + "…"),
        ("x" * (LENGTH - 2) + " yz", "x" * (LENGTH - 2) + "…"),
        ("x" * (LENGTH - 3) + " yzz", "x" * (LENGTH - 3) + "…"),
        ("one two " + "x" * LENGTH, "one two…"),
        (" \t\n<x/>\n line", "line"),
    ],
)
def test_a_title_is_the_first_line_without_tags(prompt: str, title: str) -> None:
    assert title_of(prompt) == title


def test_a_long_title_ends_at_a_word() -> None:
    title = title_of("word " * 40)
    assert title == ("word " * 11).strip() + "…"
    assert len(title) <= LENGTH


def test_only_the_first_prompt_of_the_person_counts() -> None:
    title = Title()
    for content, source, agent in (
        ("from a hook", "hook", None),
        ("of a sub-agent", None, "child"),
        ("mine", None, None),
        ("later", None, None),
    ):
        data = UserMessage(content=content, source=source)
        title.apply(
            Event(
                type="user.message",
                data=data,
                id="1",
                timestamp="t",
                parent_id=None,
                agent_id=agent,
            )
        )
    assert title.text == "mine"
