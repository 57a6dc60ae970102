"""Programs that run code we do not read: given inline, on their input, or on another machine."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from trimtab.contracts.permission import Rule
from trimtab.permissions.shell.programs.carriers import SHELLS
from trimtab.permissions.shell.programs.launchers import find_inner, is_described
from trimtab.permissions.shell.verdict.analysis import Found

INPUT = "<input>"
"""Marks programs that read their code from their input if they have no arguments."""

_FILE_OPTION = re.compile(r"-\w*f|--\w*file=")
_SCRIPT = re.compile(r"-\w*c\w*")
_OPTION = re.compile(r"-[cerE]|--(?:eval|exec\w*|command|code|expression)")
_CODE = re.compile(r"[(;`\n]")
"""An option behind which an unknown program may take code, and what is in such a text."""
_LETTERS = re.compile(r"-([A-Za-z0-9]+)")
"""Options of one letter, in one word."""
INSTALLED = ("/usr/", "/bin/", "/sbin/", "/opt/", "/nix/store/", "/Library/", "/System/")
"""Folders that hold the programs of the system."""
_NAMING = frozenset(("cp", "ln", "mv", "install", "rsync", "ditto"))
"""Programs that give a file another name."""


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


def starts_inline_code(found: Found) -> bool:
    """Return True if an unknown program is given code, or the name of what runs code, and code."""
    if not found.words or is_described(os.path.basename(found.words[0])):
        return False
    for words in find_inner(found.words):
        name = os.path.basename(words[0])
        inner = Found(identifier=name, read_only=False, base=name, words=tuple(words))
        if name == "eval" or (name in SHELLS and any(map(_SCRIPT.fullmatch, words))):
            return True
        if len(words) > 1 and runs_inline_code(inner):
            return True
    return any(
        _OPTION.fullmatch(word) and _CODE.search(code) for word, code in pairwise(found.words)
    )


def find_renamed(commands: Sequence[Found], rules: Iterable[Rule]) -> str:
    """Return a program of the system that commands give another name, if rules deny it."""
    if not any(found.base in _NAMING for found in commands):
        return ""
    words = (word for found in commands for word in found.words[1:])
    installed = {os.path.basename(word) for word in words if word.startswith(INSTALLED)}
    denied = {(rule.argument or "").removesuffix(":*").partition(" ")[0] for rule in rules}
    return min(installed & denied, default="")


def _starts(word: str, wanted: frozenset[str]) -> bool:
    """Compare a word without its value: `--eval=x`, letters as in `-Sc`; or the value: `-f-`."""
    value = _FILE_OPTION.sub("", word)
    if "-" in wanted and (value == "-" or value.startswith(("/dev/stdin", "/dev/fd/", "/proc/"))):
        return True
    if value.startswith("data:") or "=data:" in value:
        return True
    if word.partition("=")[0] in wanted or (word[:1] == "-" and word[:2] in wanted):
        return True
    letters = _LETTERS.match(word)
    return letters is not None and any(f"-{letter}+" in wanted for letter in letters[1])
