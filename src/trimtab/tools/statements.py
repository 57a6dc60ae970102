"""Splits SQL into statements."""

import re
from sqlite3 import complete_statement

from trimtab.contracts.sql import Statement

_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
TRANSACTIONS = frozenset(
    ("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "VACUUM", "PRAGMA")
)
"""Statements that must not run inside a transaction that we began."""


def split_statements(text: str) -> list[Statement]:
    """Return the statements of a text, without surrounding comments and empty statements.

    Semicolons in strings, comments and bodies of triggers do not end a statement.
    """
    found: list[Statement] = []
    start = at = 0
    while (at := text.find(";", at) + 1) > 0:
        if complete_statement(text[start:at]):
            found += _read(text[start : at - 1])
            start = at
    return [*found, *_read(text[start:])]


def _read(text: str) -> list[Statement]:
    beginning = _BLANK.match(text)
    assert beginning is not None  # it also matches an empty text
    text = text[beginning.end() :].rstrip()
    if not text:
        return []
    word = _WORD.match(text)
    return [Statement(text, word.group().upper() if word else text[:1])]
