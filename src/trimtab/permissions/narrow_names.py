"""The narrowest useful name of a command, for the rule that an answer for longer makes."""

import re
from collections.abc import Sequence

from trimtab.contracts.permission import can_name_command
from trimtab.permissions.groups import find_members
from trimtab.permissions.left_out import is_left_out, name_package, reaches_far
from trimtab.permissions.reach import pushes_to_remote
from trimtab.permissions.shell.programs.launchers import measure_launcher
from trimtab.permissions.shell.programs.options import load_subcommands
from trimtab.permissions.shell.verdict.analysis import Found

_PACKAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_NAMED = {"npm": 2, "pnpm": 2, "yarn": 2, "bun": 2, "git": 2, "gh": 3}
"""Programs whose identifiers have several words, and how many."""
_INFORMING = frozenset(("--version", "-v", "-V", "version", "--help", "-h", "help"))
_SSH_VALUED = frozenset("-" + letter for letter in "BbcDEeFIiJLlmOopQRSWw")


def name_narrowly(found: Found) -> str | None:
    """Return the narrowest useful name of a command: of `cargo test -q` that is `cargo test`.

    Programs that have subcommands, or run scripts, are listed with the number of words. What a
    launcher runs is named as it would be without one. None if only the whole of a program could be
    named that reaches far.
    """
    words = found.leading
    if not words:
        return found.identifier
    if found.base == "git push" and not pushes_to_remote(found, ""):
        named = words[:3]
        narrow = len(named) == 3 and is_plain(named[2]) and pushes_to_remote(found, named[2])
        return " ".join(named) if narrow else None
    start = _find_start(words)
    inner = _name(words[start:], launched=start > 0) if start < len(words) else None
    if inner is None:
        return None
    if start == 0:
        return " ".join(inner) if len(inner) > 1 else found.identifier
    name = " ".join((*words[:start], *inner))
    return name if can_name_command(name) else None


def _find_start(words: Sequence[str]) -> int:
    """Return how many words stand before the program that a launcher runs; 0 if none does."""
    if start := measure_launcher(words):
        return start
    if words[0].startswith("python") and words[1:2] == ("-m",):
        return 2 if reaches_far("".join(words[2:3])) else 0
    if words[0] in _PACKAGERS:
        before = 2 if words[1:2] == ("run",) else 1
        return before if reaches_far("".join(words[before : before + 1])) else 0
    return 0


def _name(words: Sequence[str], *, launched: bool) -> tuple[str, ...] | None:
    """Return the words that name a command; None if it is not clear what it does elsewhere."""
    program = name_package(words[0])
    far = reaches_far(program)
    if launched and program in find_members("@code", program) and not is_left_out(words):
        return (words[0],)
    if launched and program in _NAMED:
        named = tuple(words[: _NAMED[program]])
        return named if len(named) > 1 and all(map(is_plain, named)) else None
    if program == "ssh":
        return _name_host(words)
    table = load_subcommands()
    key = (program, *words[1:3]) if launched or far else tuple(words[:3])
    counts = [table.get(" ".join(key[:length]), 0) for length in (3, 2, 1)]
    for length, count in zip((3, 2, 1), counts, strict=True):
        if length < len(words[:count]) == count and all(map(is_plain, words[length:count])):
            return tuple(words[:count])
    if any(counts) and len(words) == 2 and words[1] in _INFORMING and (launched or far):
        return tuple(words)
    return None if far and any(counts) else (words[0],)


def _name_host(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the words of `ssh -p 22 HOST`, options included."""
    before = ""
    for index, word in enumerate(words[1:], 1):
        if before not in _SSH_VALUED and word[:1] != "-":
            name = words[: index + 1]
            return tuple(name) if is_plain(word) and can_name_command(" ".join(name)) else None
        before = "" if before in _SSH_VALUED else word
    return None


def is_plain(word: str) -> bool:
    """Return True for a word that can stand in a rule and is not an option."""
    return re.fullmatch(r"[^-\s(),*'\"][^\s(),*'\"]*", word) is not None
