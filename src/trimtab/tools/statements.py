"""Cuts a text of SQL into its statements."""

import re

import msgspec

_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
TRANSACTIONS = frozenset(
    ("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "VACUUM", "PRAGMA")
)
"""What only works, or only makes sense, outside a transaction of somebody else."""


class Statement(msgspec.Struct, frozen=True):
    """One statement; `verb` is the word it begins with, in capitals."""

    text: str
    verb: str


def split_statements(text: str) -> list[Statement]:
    """The statements of a text, without comments around them and without empty ones.

    A semicolon in a string, a comment or the body of a trigger ends nothing.
    """
    from sqlite3 import complete_statement

    found: list[Statement] = []
    start = at = 0
    while (at := text.find(";", at) + 1) > 0:
        if complete_statement(text[start:at]):
            found += _read(text[start : at - 1])
            start = at
    return [*found, *_read(text[start:])]


def _read(text: str) -> list[Statement]:
    beginning = _BLANK.match(text)
    assert beginning is not None  # it matches nothing at all, too
    text = text[beginning.end() :].rstrip()
    if not text:
        return []
    word = _WORD.match(text)
    return [Statement(text, word.group().upper() if word else text[:1])]
