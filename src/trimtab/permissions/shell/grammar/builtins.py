"""Builtins of the shell, however a command writes them, and words as they are written."""

import re
from collections.abc import Sequence

from trimtab.permissions.shell.grammar.syntax import Word
from trimtab.permissions.shell.grammar.words import Argument

_PATTERN = re.compile(r"[*?\[{~]")
_BEFORE = frozenset(("builtin", "command", "-p", "--"))
"""Words that stand before the name of a builtin and leave it one."""


def find_builtin(words: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    """Return the name of a command as it is written, and its words, also behind `builtin`."""
    rest = list(words)
    while rest and spell(rest[0]) in ("builtin", "command"):
        del rest[0]
        while rest and spell(rest[0]) in ("-p", "--"):
            del rest[0]
    return spell(rest[0]) or "" if rest else "", rest[1:]


def unwrap(arguments: Sequence[Argument]) -> Sequence[Argument]:
    """Return the arguments of a command without `builtin` and `command` before them."""
    start = next((n for n, argument in enumerate(arguments) if argument.text not in _BEFORE), 0)
    return arguments[start:]


def has_pattern(word: Word) -> bool:
    """Return True if a word may become others by its patterns, braces or tilde."""
    return _PATTERN.search(join_bare(word)) is not None


def spell(word: Word) -> str | None:
    """Return the text of a word that is the same before and after expansion; None otherwise."""
    literal = all(piece.kind in ("bare", "quoted") for piece in word.pieces)
    return join(word) if literal and not has_pattern(word) else None


def join_bare(word: Word) -> str:
    return "".join(piece.text for piece in word.pieces if piece.kind == "bare")


def join(word: Word) -> str:
    return "".join(piece.text for piece in word.pieces)
