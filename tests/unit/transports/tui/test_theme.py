"""The colours of the terminal."""

import re

import pytest

from trimtab.transports.tui.session_panels import ABOUT_THEMES
from trimtab.transports.tui.theme import (
    BASIC,
    DARK,
    HIGH_CONTRAST,
    LIGHT,
    NONE,
    THEMES,
    Theme,
    choose_theme,
    encode,
)


def _luminance(colour: tuple[int, ...]) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    parts = [part / 255 for part in colour]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("theme", "background", "least"),
    [
        (DARK, (0x28, 0x28, 0x28), 4.5),
        (LIGHT, (0xF5, 0xF5, 0xF5), 4.5),
        (HIGH_CONTRAST, (0x28, 0x28, 0x28), 7.0),
    ],
)
def test_every_colour_of_a_theme_can_be_read(
    theme: Theme, background: tuple[int, ...], least: float
) -> None:
    found = {
        name: tuple(map(int, match.groups()))
        for name, codes in theme.items()
        if (match := re.search(r"38;2;(\d+);(\d+);(\d+)", codes))
    }
    assert len(found) > 15
    poor = {name for name, colour in found.items() if _contrast(colour, background) < least}
    assert not poor


@pytest.mark.parametrize("name", [name for name in THEMES if name != "none"])
def test_every_theme_has_the_same_styles(name: str) -> None:
    assert all(theme.keys() == BASIC.keys() for theme in THEMES[name])


def test_rgb_colours_are_used_only_where_the_terminal_says_that_it_has_them() -> None:
    assert choose_theme("dark", {}) == BASIC
    assert choose_theme("dark", {"COLORTERM": "truecolor"}) == DARK
    assert choose_theme("light", {"COLORTERM": "24bit"}) == LIGHT
    assert choose_theme("auto", {"COLORTERM": "truecolor"}) == BASIC
    assert choose_theme("none", {"COLORTERM": "truecolor"}) == NONE
    assert choose_theme("nosuch", {}) == BASIC
    assert encode((("error", "no"),), DARK) == "\x1b[38;2;255;128;120mno\x1b[0m"


def test_the_panel_describes_every_theme() -> None:
    assert ABOUT_THEMES.keys() == THEMES.keys()
