"""Themes: the colours of each style, as parameters of the terminal's SGR command."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from trimtab.transports.tui.cells import Span

Theme = Mapping[str, str]

LINK = "link="
"""Begins a style that is the address of a link, without spaces and control characters."""

BASIC: dict[str, str] = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "strike": "9",
    "reverse": "7",
    "accent": "36",
    "heading": "1;36",
    "code": "33",
    "link": "4;34",
    "person": "1;32",
    "error": "31",
    "warning": "33",
    "success": "32",
    "added": "32",
    "removed": "31",
    "changed-added": "1;4;32",
    "changed-removed": "1;4;31",
    "keyword": "35",
    "string": "32",
    "number": "36",
    "comment": "2;3",
    "name": "34",
    "selected": "1;36",
    "matched": "1;4",
}
"""The 16 colours of the terminal, which follow the person's own scheme."""
BASIC_LIGHT: Theme = BASIC | {"code": "35", "warning": "1;33", "comment": "2;3"}
BASIC_HIGH_CONTRAST: Theme = BASIC | {
    "dim": "",
    "comment": "3",
    "accent": "1;96",
    "heading": "1;4;97",
    "error": "1;91",
    "warning": "1;93",
    "success": "1;92",
    "added": "1;92",
    "removed": "1;91",
    "selected": "7",
}


def _paint(colours: Mapping[str, str]) -> dict[str, str]:
    """Return a theme of RGB colours. A value is `RRGGBB`, after other parameters if need be."""
    painted = dict(BASIC)
    for name, value in colours.items():
        *codes, colour = value.split(";")
        red, green, blue = bytes.fromhex(colour)
        painted[name] = ";".join((*codes, f"38;2;{red};{green};{blue}"))
    return painted


DARK: Theme = _paint(
    {
        "dim": "a0a0a0",
        "accent": "56c8d8",
        "heading": "1;61c9ff",
        "code": "e5c07b",
        "link": "4;79c0ff",
        "person": "1;8fd694",
        "error": "ff8078",
        "warning": "e3b341",
        "success": "7ee787",
        "added": "7ee787",
        "removed": "ff8078",
        "changed-added": "1;4;7ee787",
        "changed-removed": "1;4;ff8078",
        "keyword": "d2a8ff",
        "string": "a5d6a7",
        "number": "79c0ff",
        "comment": "3;a0a0a0",
        "name": "82bfff",
        "selected": "1;56d4dd",
    }
)
"""For a dark background: every colour has a contrast of at least 4.5 to `#282828`."""
LIGHT: Theme = _paint(
    {
        "dim": "595959",
        "accent": "0b6470",
        "heading": "1;05566b",
        "code": "8a3c00",
        "link": "4;0550ae",
        "person": "1;116329",
        "error": "b31d28",
        "warning": "7a4b00",
        "success": "116329",
        "added": "116329",
        "removed": "b31d28",
        "changed-added": "1;4;116329",
        "changed-removed": "1;4;b31d28",
        "keyword": "6f3fc4",
        "string": "0a5c36",
        "number": "0550ae",
        "comment": "3;595959",
        "name": "0550ae",
        "selected": "1;0b6470",
    }
)
"""For a light background: every colour has a contrast of at least 4.5 to `#f5f5f5`."""
HIGH_CONTRAST: Theme = _paint(
    {
        "dim": "d8d8d8",
        "accent": "1;00ffff",
        "heading": "1;4;ffffff",
        "code": "ffff9f",
        "link": "4;9fd3ff",
        "person": "1;9fff9f",
        "error": "1;ffa8a8",
        "warning": "1;ffd75f",
        "success": "1;87ff87",
        "added": "1;87ff87",
        "removed": "1;ffa8a8",
        "changed-added": "1;4;87ff87",
        "changed-removed": "1;4;ffa8a8",
        "keyword": "e0c0ff",
        "string": "afffaf",
        "number": "9fd3ff",
        "comment": "3;d8d8d8",
        "name": "9fd3ff",
    }
) | {"selected": "7"}
"""For a black background: every colour has a contrast of at least 7 to `#282828`."""
NONE: Theme = {}
THEMES: Mapping[str, tuple[Theme, Theme]] = {
    "auto": (BASIC, BASIC),
    "dark": (BASIC, DARK),
    "light": (BASIC_LIGHT, LIGHT),
    "high-contrast": (BASIC_HIGH_CONTRAST, HIGH_CONTRAST),
    "none": (NONE, NONE),
}
"""Each theme with the colours of the terminal, and with RGB colours."""


def choose_theme(name: str, env: Mapping[str, str]) -> Theme:
    """Return a theme, with RGB colours if the terminal says that it has them."""
    has_rgb = env.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    return THEMES.get(name, THEMES["auto"])[has_rgb]


NO_LINKS = "no-links"
"""A key of themes whose links are plain text."""
DIFF_STYLES = ("added", "removed", "changed-added", "changed-removed")


def without_diff_colours(theme: Theme) -> Theme:
    return {name: codes for name, codes in theme.items() if name not in DIFF_STYLES}


def without_links(theme: Theme) -> Theme:
    return {**theme, NO_LINKS: "1"}


def encode(line: Iterable[Span], theme: Theme) -> str:
    """Return a line with the terminal's commands for its styles."""
    return "".join(
        _encode_run(style, "".join(text for _, text in spans), theme)
        for style, spans in groupby(line, key=itemgetter(0))
    )


def _encode_run(style: str, text: str, theme: Theme) -> str:
    names = style.split()
    codes = ";".join(filter(None, (theme.get(name, "") for name in names)))
    shown = f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text
    if NO_LINKS in theme:
        return shown
    address = next((name[len(LINK) :] for name in names if name.startswith(LINK)), "")
    return f"\x1b]8;;{address}\x1b\\{shown}\x1b]8;;\x1b\\" if address and text else shown
