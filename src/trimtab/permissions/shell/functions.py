"""Which functions a command can call: only what is surely one is not the program of that name."""

import re
from collections.abc import Iterable, Iterator

from trimtab.permissions.shell.syntax import Command, Script

_HANDLER = "command_not_found_handle"
"""A function that is called without being named."""
_WORD = re.compile(r"[^\s;&|()<>'\"`$]+")


def find_callable(script: Script) -> Iterator[frozenset[str]]:
    """For each command of a script, the functions that are there when it runs."""
    since = _find_certain(script)
    # A body runs when its function is called, at the earliest where one is named.
    first = next(_find_calls(script, since), len(script.commands))
    within = frozenset(name for name, start in since.items() if start <= first)
    waiting = sorted(since.items(), key=lambda item: item[1], reverse=True)
    there: frozenset[str] = frozenset()
    for index, command in enumerate(script.commands):
        while waiting and waiting[-1][1] <= index:
            there |= {waiting.pop()[0]}
        yield within if command.in_function else there


def _find_calls(script: Script, names: Iterable[str]) -> Iterator[int]:
    if not names:
        return
    for index, command in enumerate(script.commands):
        if not command.in_function and not _words(command).isdisjoint(names):
            yield index


def _find_certain(script: Script) -> dict[str, int]:
    """The functions of a script, without those that it may unset."""
    if not script.functions or _HANDLER in script.functions:
        return {}
    unset: set[str] = set()
    for command in script.commands:
        words = _words(command)
        if any("unset" in word for word in words):
            unset |= words
            pieces = (piece for word in command.words for piece in word.pieces)
            if any(piece.kind in ("variable", "unknown") for piece in pieces):
                return {}
    # Not every shell calls a function by a name with a slash.
    return {
        name: start
        for name, start in script.functions.items()
        if name not in unset and "/" not in name
    }


def _words(command: Command) -> set[str]:
    """The words of a command, and those in its quotes."""
    texts = ("".join(piece.text for piece in word.pieces) for word in command.words)
    return {part for text in texts for part in _WORD.findall(text)}
