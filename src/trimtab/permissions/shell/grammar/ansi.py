"""Strings with escapes as C has them: `$'\\x41'`."""

import re

_ANSI = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})"
    r"|U([0-9a-fA-F]{1,8})|c(.))",
    re.DOTALL,
)
_ANSI_NAMES = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


def decode(raw: str) -> tuple[str, bool]:
    """Return the text of such a string, and True if an escape in it is not known."""
    return _ANSI.sub(_decode, raw), "\\" in _ANSI.sub("", raw)


def _decode(match: re.Match[str]) -> str:
    name, octal, *hexadecimal, control = match.groups()
    if name:
        return _ANSI_NAMES[name]
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control.upper()[0]) ^ 0x40 if control != "?" else 0x7F)
    code = int(next(filter(None, hexadecimal)), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
