"""The arguments the commands about customizations have in common."""

import os

import msgspec

from trimtab.contracts.errors import UsageError


class Given(msgspec.Struct):
    """Words and flags of a command line. A flag that may be repeated is in `lists`."""

    words: list[str] = []
    json: bool = False
    cwd: str = ""
    values: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    switches: set[str] = set()


def read_arguments(
    argv: list[str],
    usage: str,
    *,
    values: tuple[str, ...] = (),
    lists: tuple[str, ...] = (),
    switches: tuple[str, ...] = (),
) -> Given:
    """Sort the words of a command line; after `--` everything is a word."""
    given = Given(cwd=os.getcwd())
    words = iter(argv)
    for word in words:
        if word == "--":
            given.words += words
        elif word == "--json":
            given.json = True
        elif word in switches:
            given.switches.add(word)
        elif (name := word.partition("=")[0]) in (*values, *lists, "-C", "--cwd"):
            value = word.partition("=")[2] if "=" in word else next(words, None)
            if value is None:
                raise UsageError(f"{name} needs a value.\n{usage}")
            _take(given, name, value, lists)
        elif word.startswith("-") and word != "-":
            raise UsageError(f"The flag {word} is not known.\n{usage}")
        else:
            given.words.append(word)
    return given


def _take(given: Given, name: str, value: str, lists: tuple[str, ...]) -> None:
    if name in ("-C", "--cwd"):
        given.cwd = os.path.abspath(value)
        if not os.path.isdir(given.cwd):
            raise UsageError(f"-C {value} is no directory; name one that exists.")
    elif name in lists:
        given.lists.setdefault(name, []).append(value)
    else:
        given.values[name] = value
