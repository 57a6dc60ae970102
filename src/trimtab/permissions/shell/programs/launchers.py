"""Programs whose words become a command line only in part, or elsewhere: launchers and aliases.

What they would start counts for rules that deny, and for destruction.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from trimtab.permissions.shell.grammar.words import Argument
from trimtab.permissions.shell.programs.carried import find_carried
from trimtab.permissions.shell.programs.carriers import is_carrier
from trimtab.permissions.shell.programs.identify import Name, identify
from trimtab.permissions.shell.programs.options import find_program
from trimtab.permissions.shell.programs.searchers import SEARCHERS

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.judge import Judge

MOST = 4
WINDOW = 12
"""So many words are enough to name a command."""
_VALUED = frozenset(
    (
        *("-p", "--package", "--with", "--from", "--python", "--extra", "--group", "-w"),
        *("--workspace", "-n", "--name", "-c", "--call", "--env-file", "--spec", "-f"),
        *("--project", "--directory"),
    )
)
"""Options of launchers with a value in a word of its own."""
_REMOTELY = frozenset(("run", "exec", "ssh", "debug", "shell", "enter"))
_VERSION = re.compile(r"(?<=[^@/])(?:@|==)[^/]*$")
_QUOTES = re.compile(r"['\"\\]")
_PROGRAM = re.compile(r"[\w/+@-](?:[\w./+@^~-]|==)*")


class _Table(msgspec.Struct):
    launchers: dict[str, tuple[str, ...]]
    """Programs that start another one, and the words before that; `_` is any word."""
    hosts: str
    """Programs whose first word says what they themselves are to do."""
    remotes: str
    """Programs that run command lines elsewhere, or as something else."""
    git: str
    """The subcommands of git itself; every other word may be an alias."""


@lru_cache(1)
def _table() -> _Table:
    path = os.path.join(os.path.dirname(__file__), "tables", "launchers.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=_Table)


def find_launched(program: str, arguments: Sequence[Argument]) -> Iterator[Sequence[Argument]]:
    """The command lines that a launcher may start, if it is one.

    Its options are not known: the word after one may be the option's value, or the command.
    """
    for pattern in _table().launchers.get(program, ()):
        words = arguments
        for expected in pattern.split():
            words = _skip_options(words)
            if not words or expected not in ("_", words[0].text):
                break
            words = words[1:]
        else:
            yield from _find_lines(words)


def measure_launcher(words: Sequence[str]) -> int:
    """Return how many words stand before the program that a launcher starts; 0 if it is none."""
    for pattern in _table().launchers.get("".join(words[:1]), ()):
        start = 1
        for expected in pattern.split():
            if start >= len(words) or expected not in ("_", words[start]):
                break
            start += 1
        else:
            while start < len(words) and words[start][:1] == "-":
                start += 2 if words[start] in _VALUED else 1
                if words[start - 1] == "--":
                    break
            return min(start, len(words))
    return 0


def _find_lines(words: Sequence[Argument]) -> Iterator[Sequence[Argument]]:
    for _ in range(MOST):
        rest = _skip_options(words)
        if not rest or not _PROGRAM.fullmatch(rest[0].text):
            return
        yield [drop_version(rest[0]), *rest[1:]]
        follows_option = len(rest) < len(words) and words[len(words) - len(rest) - 1].text != "--"
        if not follows_option:
            return
        words = rest[1:]


def drop_version(word: Argument) -> Argument:
    """A package as it is called, `npm` of `npm@latest`."""
    return Argument(_VERSION.sub("", word.text), word.pattern, word.many)


def _skip_options(words: Sequence[Argument]) -> Sequence[Argument]:
    start = 0
    while start < len(words) and words[start].text[:1] == "-":
        start += 1
    return words[start:]


def find_named(words: Sequence[str]) -> Iterator[Name]:
    """Yield what an unknown program may start: every word may begin a command line."""
    program = os.path.basename(words[0])
    remote = program in _table().remotes.split()
    if not remote and is_described(program):
        return
    start = 2 if program in _table().hosts.split() else 1
    given = _find_remote(program, words) if remote else words[start:]
    arguments = [Argument(word) for word in given]
    for index, word in enumerate(given):
        if _PROGRAM.fullmatch(word):
            yield identify(arguments[index : index + WINDOW])
        else:  # `--run='rm x'`, or `'r""m x'`
            for text in dict.fromkeys((word, _QUOTES.sub("", word))):
                yield from map(identify, find_carried(text))


def find_inner(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the rest of a program's words from each that may be the name of another one."""
    return (words[n:] for n, word in enumerate(words) if n and _PROGRAM.fullmatch(word))


def is_described(program: str) -> bool:
    """Return True for a program of which it is known what it starts."""
    table = find_program(program)
    described = table is not None and not table.partial
    return described or is_carrier(program) or program in SEARCHERS


def _find_remote(program: str, words: Sequence[str]) -> Sequence[str]:
    """The words that are, or hold, a command line for elsewhere."""
    places = [index for index, word in enumerate(words) if word in _REMOTELY]
    hosted = program in _table().hosts.split()
    start = places[0] + 1 if places else len(words) if hosted else 1
    return [part for word in words[start:] for part in word.split()]


def search_aliases(judge: "Judge", name: Name, arguments: Sequence[Argument]) -> None:
    """Judge what a subcommand of git stands for, as far as the command line says so."""
    leading, rest = arguments[1 : name.skipped], arguments[name.skipped + 1 :]
    for index, word in enumerate(leading):
        key, _, value = word.text.partition("=")
        if index and leading[index - 1].text == "-c" and _is_alias(key, name.subcommand):
            others = [*leading[: index - 1], *leading[index + 1 :]]
            _judge_alias(judge, value, [arguments[0], *others], rest)
    if name.subcommand == "config":
        operands = _skip_options(rest)
        if len(operands) > 1 and operands[0].text == "set":
            operands = _skip_options(operands[1:])
        if len(operands) > 1 and operands[0].text.lower().startswith("alias."):
            _judge_alias(judge, operands[1].text, arguments[:1], ())
    known = not name.subcommand or find_program(name.table) is not None
    if not known and name.subcommand not in _table().git.split():
        why = f"git {name.subcommand} may stand for something else"
        judge.into.conceals = judge.into.conceals or why


def _is_alias(key: str, subcommand: str) -> bool:
    return bool(subcommand) and key.lower() == f"alias.{subcommand}".lower()


def _judge_alias(
    judge: "Judge", value: str, git: Sequence[Argument], rest: Sequence[Argument]
) -> None:
    if value[:1] == "!":
        judge.read(value[1:])
        return
    try:
        words = [Argument(word) for word in shlex.split(value)]
    except ValueError:
        judge.into.dynamic.append("what an alias stands for is not known before it runs")
        return
    if words:
        judge.judge_words([*git, *words, *rest], shadow=True)
