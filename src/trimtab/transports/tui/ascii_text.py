"""ASCII in place of other characters, for terminals whose locale is not UTF-8."""

import unicodedata
from collections.abc import Mapping

from trimtab.transports.tui.cells import cell

_LIKE = str.maketrans(
    {
        **dict.fromkeys("●◆•", "*"),
        **dict.fromkeys("▸→›", ">"),
        **dict.fromkeys("⋯…", "."),
        **dict.fromkeys("○◌", "o"),
        **dict.fromkeys("✗\u00d7", "x"),
        **dict.fromkeys("·\u2212—\u2013─", "-"),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("“”", '"'),
        "∴": ":",
        "│": "|",
        "\u00a0": " ",
    }
)
"""Characters of the interface, and the ASCII that stands for each; all take one cell."""
COERCED = "C.UTF-8"
"""Python itself puts this into `LC_CTYPE` when the person's locale is C."""


def is_utf8(env: Mapping[str, str]) -> bool:
    """Return False if the environment names a locale of another encoding.

    One that names none counts as UTF-8: containers often set nothing, terminals show UTF-8.
    """
    values = {key: env.get(key, "") for key in ("LC_ALL", "LC_CTYPE", "LANG")}
    if values["LANG"] in ("C", "POSIX") and values["LC_CTYPE"] == COERCED:
        values["LC_CTYPE"] = ""
    name = next(filter(None, values.values()), "utf8")
    return "utf8" in name.lower().replace("-", "")


def to_ascii(text: str) -> str:
    """Return a text that takes the same cells and is ASCII."""
    if text.isascii():
        return text
    return "".join(
        character if character.isascii() else _replace(character)
        for character in text.translate(_LIKE)
    )


def _replace(character: str) -> str:
    """Return a letter without its accent, or a question mark for each cell."""
    letter = unicodedata.normalize("NFKD", character)[0]
    return letter if letter.isascii() and cell(character) == 1 else "?" * cell(character)
