"""Themes: the colours of each style, as parameters of the terminal's SGR command."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from trimtab.transports.tui.cells import Span

Theme = Mapping[str, str]

LINK = "link="
"""Begins a style that is the address of a link, without spaces and control characters."""

DARK: dict[str, str] = {
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
LIGHT: Theme = DARK | {"code": "35", "warning": "1;33", "comment": "2;3"}
HIGH_CONTRAST: Theme = DARK | {
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
NONE: Theme = {}
THEMES: Mapping[str, Theme] = {
    "dark": DARK,
    "light": LIGHT,
    "high-contrast": HIGH_CONTRAST,
    "none": NONE,
}


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
