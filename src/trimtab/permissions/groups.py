"""Groups of commands that belong together: the rule `shell(@git)` covers those of the group.

A rule like `shell(@npm)` covers a whole program, but for what reaches other people.
"""

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from trimtab.permissions.shell.programs.leading import may_begin_with

MARK = "@"
"""Begins the argument of a rule for a group."""
APART = frozenset(("processes",))
"""Groups whose commands are allowed one by one unless a person chooses the group."""
MANY = 2
"""The number of commands after which running code is allowed as a whole."""
_TABLES = os.path.join(os.path.dirname(__file__), "shell", "programs", "tables")


class Group(msgspec.Struct, frozen=True):
    """Commands, by their names or by the words they begin with, and what they are for."""

    title: str
    examples: str
    commands: tuple[str, ...]


class WholeProgram(msgspec.Struct, frozen=True):
    """The commands that a rule for a whole program leaves out, and how a person is told.

    `subcommands` are the words after the program; `words` are parts of words, wherever in the
    command they stand.
    """

    but: str
    subcommands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@lru_cache(1)
def load_groups() -> dict[str, Group]:
    """Return the groups by name."""
    with open(os.path.join(_TABLES, "groups.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Group])


@lru_cache(1)
def load_whole_programs() -> dict[str, WholeProgram]:
    """Return the programs of which a rule can cover all commands but some, by name."""
    with open(os.path.join(_TABLES, "whole_programs.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, WholeProgram])


def find_group(argument: str | None) -> Group | None:
    """Return the group that the argument of a rule names, if it names one."""
    if argument is None or not argument.startswith(MARK):
        return None
    name = argument.removeprefix(MARK)
    if program := load_whole_programs().get(name):
        title = f"every {name} command, but for {program.but}"
        return Group(title, f"every {name} command", ())
    return load_groups().get(name)


@lru_cache(128)
def find_members(argument: str, program: str) -> tuple[str, ...]:
    """Return the commands of a group that begin with a program."""
    group = find_group(argument)
    commands = group.commands if group else ()
    return tuple(name for name in commands if name.partition(" ")[0] == program)


def find_common(name: str, allowed: Iterable[str]) -> str:
    """Return the group of a command of which enough others are allowed already; empty if none is.

    Running code takes more of them than looking at something.
    """
    group = max(load_groups(), key=lambda group: len(find_member(MARK + group, name)))
    if group in APART or not find_member(MARK + group, name):
        return ""
    others = {other for other in allowed if other != name and find_member(MARK + group, other)}
    return MARK + group if len(others) >= (MANY if group == "code" else 1) else ""


def find_member(argument: str, name: str) -> str:
    """Return the longest command of a group with which a command begins; empty if none is."""
    members = find_members(argument, name.partition(" ")[0])
    return max((m for m in members if f"{name} ".startswith(f"{m} ")), key=len, default="")


def covers_program(argument: str, leading: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if a rule for a whole program covers a command.

    `leading` are the words it begins with, without options that change nothing; `words` are all
    that are known. What it is must be clear from the second word.
    """
    name = argument.removeprefix(MARK)
    program = load_whole_programs().get(name)
    if program is None or len(leading) < 2 or leading[0] != name or leading[1][:1] in "-+":
        return False
    if any(part in word.casefold() for part in program.words for word in words[1:]):
        return False
    left_out = ((name, *command.split()) for command in program.subcommands)
    return not any(may_begin_with(tuple(words), command) for command in left_out)
