"""Programs that run code we do not read: given inline, on their input, or on another machine."""

import os
import re
from functools import lru_cache

import msgspec

from trimtab.permissions.shell.verdict.analysis import Found

INPUT = "<input>"
"""Marks programs that read their code from their input if they have no arguments."""

_FILE_OPTION = re.compile(r"-\w*f|--\w*file=")
_LETTERS = re.compile(r"-([A-Za-z0-9]+)")
"""Options of one letter, in one word."""


@lru_cache(1)
def _load_table() -> dict[str, frozenset[str]]:
    """Return programs, each with the words of which one makes it run such code; none: any.

    An option with `+` may stand behind other letters: `python -Sc`.
    """
    path = os.path.join(os.path.dirname(__file__), "inline_code.json")
    with open(path, "rb") as file:
        given = msgspec.json.decode(file.read(), type=dict[str, str])
    return {
        name: frozenset(words.split()) for names, words in given.items() for name in names.split()
    }


def runs_inline_code(found: Found) -> bool:
    """Return True if a command runs code that is not among the commands we found."""
    table, name = _load_table(), found.base.partition(" ")[0]
    wanted = table.get(name, table.get(re.sub(r"[\d.]+$", "", name)))
    if wanted is None:
        return False
    words = found.words[1:]
    if not wanted or (not words and INPUT in wanted):
        return True
    return any(_starts(word, wanted) for word in words)


def _starts(word: str, wanted: frozenset[str]) -> bool:
    """Compare a word without its value: `--eval=x`, letters as in `-Sc`; or the value: `-f-`."""
    value = _FILE_OPTION.sub("", word)
    if "-" in wanted and (value == "-" or value.startswith(("/dev/stdin", "/dev/fd/", "/proc/"))):
        return True
    if word.partition("=")[0] in wanted or (word[:1] == "-" and word[:2] in wanted):
        return True
    letters = _LETTERS.match(word)
    return letters is not None and any(f"-{letter}+" in wanted for letter in letters[1])
