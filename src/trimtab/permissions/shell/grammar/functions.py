"""Finds the functions that a command can call, and those that may call themselves."""

import re
from collections.abc import Iterator
from math import inf

from trimtab.permissions.shell.grammar.builtins import find_builtin
from trimtab.permissions.shell.grammar.syntax import Command, Script

MAX_FUNCTIONS = 64
_HANDLER = "command_not_found_handle"
"""A function that is called without being named."""
_WORD = re.compile(r"[^\s;&|()<>'\"`$]+")


def find_callable(script: Script) -> Iterator[frozenset[str]]:
    """For each command of a script, the functions that are there when it runs."""
    since = _find_certain(script)
    for run in _find_runs(script):
        yield frozenset(name for name, start in since.items() if start <= run)


def _find_runs(script: Script) -> list[int]:
    """When each command runs at the earliest: one in a body, where a command behind it is not."""
    runs: list[int] = []
    following = len(script.commands)
    for index in range(len(script.commands) - 1, -1, -1):
        if not script.commands[index].in_function:
            following = index
        runs.append(following)
    return runs[::-1]


def _find_certain(script: Script) -> dict[str, int]:
    """The functions of a script, none if it may unset one."""
    if not script.functions or _HANDLER in script.functions:
        return {}
    if any("unset" in word for command in script.commands for word in _words(command)):
        return {}
    # Not every shell calls a function by a name with a slash.
    return {name: start for name, start in script.functions.items() if "/" not in name}


def find_recursion(script: Script) -> str:
    """Return a function that may call itself, directly or through others, or an empty text.

    Calls are not followed in a script with very many functions: any of them may then.
    """
    names = {body.function for body in script.bodies}
    if len(names) > MAX_FUNCTIONS:
        return min(names)
    calls: dict[str, set[str]] = {name: set() for name in names}
    for body in script.bodies:
        for command in script.commands[body.start : body.end]:
            calls[body.function] |= names & _words(command)
    for _ in names:  # after as many rounds everything that is reached is known
        for called in calls.values():
            called.update(*(calls[name] for name in tuple(called)))
    return min((name for name, called in calls.items() if name in called), default="")


def find_later(script: Script) -> list[range]:
    """Return the commands that may run after those behind them: in loops, functions and traps."""
    spans = [range(int(span.start), int(span.end)) for span in script.repeats if span.end < inf]
    spans += [range(body.start, body.end) for body in script.bodies]
    traps = (n for n, one in enumerate(script.commands) if find_builtin(one.words)[0] == "trap")
    return [*spans, *(range(index, index + 1) for index in traps)]


def _words(command: Command) -> set[str]:
    """The words of a command, and those in its quotes."""
    texts = ("".join(piece.text for piece in word.pieces) for word in command.words)
    return {part for text in texts for part in _WORD.findall(text)}
