"""Text from elsewhere made safe to show: it cannot move the cursor, hide or reorder anything."""

import re
from functools import lru_cache
from typing import Literal

_NAMED_CONTROLS = {"\n": "\n", "\t": "\t", "\x7f": "\u2421", "\u2028": "\n", "\u2029": "\n"}


def neutralise(text: str, context: Literal["transcript", "approval"] = "transcript") -> str:
    """The text without terminal commands, and with everything else that is not seen made visible.

    Newlines and tabs stay. In a transcript, escape sequences and zero-width characters are
    dropped; control and direction characters and lone surrogates are replaced by something a
    person can see. In an approval nothing is dropped: what is not seen, or looks like a blank and
    is none, becomes its code, so that different texts never look the same.
    """
    if text.isprintable() and text.isascii():
        return text
    if context == "approval":
        return _hidden().sub(lambda match: f"\u27e8U+{ord(match[0]):04X}\u27e9", text)
    commands, unseen = _patterns()
    text = commands.sub("", text.replace("\r\n", "\n"))
    return unseen.sub(_shown, text)


@lru_cache(1)
def _hidden() -> re.Pattern[str]:
    return re.compile(
        "[\0-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
        "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u27e8\u27e9\u2800\u3000\u3164\ud800-\udfff"
        "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
    )


@lru_cache(1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    commands = re.compile(
        r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, modes
        r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # strings
        r"|\x1b[ -/]*[0-~]"  # all others
    )
    unseen = re.compile(
        "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
        "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\uffff"
        "\U000e0000-\U000e01ef]"
    )
    return commands, unseen


def _shown(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _NAMED_CONTROLS:
        return _NAMED_CONTROLS[character]
    if code < 0x20:
        return chr(0x2400 + code)  # the pictures of control characters
    if 0x80 <= code <= 0x9F or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if code == 0xFFFD:
        return character
    if code in (0x61C, 0x200E, 0x200F) or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069:
        return f"\u27e8U+{code:04X}\u27e9"
    return ""
