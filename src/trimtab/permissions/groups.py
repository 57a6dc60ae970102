"""Groups of commands that belong together: the rule `shell(@git)` covers those of the group."""

import os
from functools import lru_cache

import msgspec

MARK = "@"
"""Begins the argument of a rule for a group."""


class Group(msgspec.Struct, frozen=True):
    """Commands, by their names or by the words they begin with, and what they are for."""

    title: str
    examples: str
    commands: tuple[str, ...]


@lru_cache(1)
def load_groups() -> dict[str, Group]:
    """Return the groups by name."""
    folder = os.path.join(os.path.dirname(__file__), "shell", "programs", "tables")
    with open(os.path.join(folder, "groups.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Group])


def find_group(argument: str | None) -> Group | None:
    """Return the group that the argument of a rule names, if it names one."""
    if argument is None or not argument.startswith(MARK):
        return None
    return load_groups().get(argument.removeprefix(MARK))


@lru_cache(128)
def find_members(argument: str, program: str) -> tuple[str, ...]:
    """Return the commands of a group that begin with a program."""
    group = find_group(argument)
    commands = group.commands if group else ()
    return tuple(name for name in commands if name.partition(" ")[0] == program)
