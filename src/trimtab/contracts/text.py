"""Text for people: counted nouns, and foreign text made safe for a terminal."""

import re
from functools import lru_cache
from typing import Any, Literal

_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_NAMED_CONTROLS = {"\n": "\n", "\t": "\t", "\x7f": "\u2421", "\u2028": "\n", "\u2029": "\n"}

SHOWN_ARGUMENTS = (
    *("command", "path", "pattern", "url", "query", "skill", "summary", "shellId"),
    *("description", "prompt", "agent_id", "message"),
)
"""Arguments that tell people most about a tool call; the first one given is shown."""
MAX_ARGUMENTS = 160
"""Characters of the arguments of a call that has none of these, such as one of an MCP server."""


def show_arguments(arguments: Any) -> str:
    """Return what tells people most about a tool call: one argument, or short ones by name."""
    if not isinstance(arguments, dict):
        return ""
    for key in SHOWN_ARGUMENTS:
        if value := arguments.get(key):
            return str(value)
    texts = (
        f"{key}: {' '.join(str(value).split())}"
        for key, value in arguments.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    )
    shown = ", ".join(texts)
    return shown if len(shown) <= MAX_ARGUMENTS else f"{shown[: MAX_ARGUMENTS - 1]}…"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in the right form: `1 file`, `1,200 files`, `0 entries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def neutralise(text: str, context: Literal["transcript", "approval"] = "transcript") -> str:
    """Return the text without terminal commands and with invisible characters made visible.

    Newlines and tabs stay. In a transcript, escape sequences and zero-width characters are
    dropped, and so are excessive combining marks; control and direction characters and lone
    surrogates are replaced by visible characters. In an approval nothing is dropped: characters
    that are invisible, or look like a space without being one, become their code, so that
    different texts never look the same.
    """
    if text.isprintable() and text.isascii():
        return text
    if context == "approval":
        text = _invisible_in_approvals().sub(lambda match: "".join(map(_code, match[0])), text)
        return _excessive_marks().sub(lambda match: match[1] + "".join(map(_code, match[2])), text)
    commands, invisible = _patterns()
    text = commands.sub("", text.replace("\r\n", "\n"))
    return _excessive_marks().sub(
        r"\1", invisible.sub(lambda match: "".join(map(_visible_form, match[0])), text)
    )


@lru_cache(1)
def _excessive_marks() -> re.Pattern[str]:
    """Match more combining marks than any language needs: they would cover neighbouring lines."""
    return re.compile(f"([{_MARKS}]{{4}})([{_MARKS}]+)")


@lru_cache(1)
def _invisible_in_approvals() -> re.Pattern[str]:
    return re.compile(
        "[\0-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
        "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u27e8\u27e9\u2800\u3000\u3164\ud800-\udfff"
        "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff\u070f\ue000-\uf8ff"
        "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
        "\U000f0000-\U0010ffff]+"
    )


@lru_cache(1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    commands = re.compile(
        r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, modes
        r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # strings
        r"|\x1b[ -/]*[0-~]"  # all others
    )
    invisible = re.compile(
        "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
        "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\uffff"
        "\U000e0000-\U000e01ef\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]+"
    )
    return commands, invisible


@lru_cache(256)
def _code(character: str) -> str:
    return f"\u27e8U+{ord(character):04X}\u27e9"


@lru_cache(256)
def _visible_form(character: str) -> str:
    code = ord(character)
    if character in _NAMED_CONTROLS:
        return _NAMED_CONTROLS[character]
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of control characters
    if 0x80 <= code <= 0x9F or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if code == 0xFFFD:
        return character
    if code in (0x61C, 0x200E, 0x200F) or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069:
        return _code(character)
    return ""
