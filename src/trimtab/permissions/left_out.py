"""Commands that no rule for a group or a whole program covers: they reach others, or destroy.

A rule that names a command covers it whatever its arguments; a group is ours to define.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

import msgspec

from trimtab.permissions.groups import load_whole_programs
from trimtab.permissions.shell.grammar.words import Argument
from trimtab.permissions.shell.programs.identify import identify
from trimtab.permissions.shell.programs.launchers import drop_version, find_launched
from trimtab.permissions.shell.programs.leading import TARGETED, may_begin_with, split_modules

_TABLES = os.path.join(os.path.dirname(__file__), "shell", "programs", "tables")
_DEEPEST = 4
_SCRIPT = re.compile(r"(?:^|[+:/_-])(?:(?:un)?publish|deploy|upload)(?![a-z])|^release(?![a-z.])")
"""Names of scripts and targets that reach other people."""
_INSTALLED = re.compile(r"(?:[\w.@/~-]*/)?node_modules/(?:\.bin/)?((?:@[\w.-]+/)?[\w.-]+)[\w./-]*")
_PARTS = re.compile(r"[;\s]+")
"""The separators of targets in one word, as sbt takes them."""
_FETCHED = re.compile(r"https?://|(?:npm|jsr|gh|git):|[\w.-]+\.[a-z]+/[\w./-]+@")
"""The name of code that a program fetches from elsewhere and runs."""
_FETCHING = frozenset(("deno", "bun", "go"))
_SCRIPTED = frozenset(("npm", "pnpm", "yarn", "bun"))
_TARGETED = TARGETED | {"nx", "sbt"}
_NPM_RUN = re.compile(r"rum|urn|run-(?:s(?:c(?:r(?:ip?)?)?)?)?")
"""Other names by which npm runs a script; it takes the beginning of one, too."""
_RUNNING = frozenset(("run", "run-script", "task", "xtask", "make"))
_RUNNERS = frozenset(
    ("cargo", "composer", "deno", "hatch", "pdm", "pipenv", "pixi", "poetry", "rye", "uv")
)
"""Programs that run the scripts of a project by a subcommand."""


class _Table(msgspec.Struct):
    commands: dict[str, str]
    """First words of commands → words of which any one makes a command be left out; none: all."""
    programs: str
    """Programs that reach other people's machines, or this person's accounts."""


@lru_cache(1)
def _load() -> tuple[dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]], frozenset[str]]:
    with open(os.path.join(_TABLES, "left_out.json"), "rb") as file:
        table = msgspec.json.decode(file.read(), type=_Table)
    commands: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for names, marks in table.commands.items():
        programs, _, rest = names.partition(" ")
        for program in programs.split("|"):
            commands.setdefault(program, []).append(((program, *rest.split()), (*marks.split(),)))
    return commands, frozenset(table.programs.split())


def reaches_far(word: str) -> bool:
    """Return True for a program that reaches other people's machines, or a person's accounts."""
    return name_package(word) in _load()[1]


def name_package(word: str) -> str:
    """Return the name of a program that is named by a path, or as a package: `npm:x@1` is `x`."""
    package = drop_version(Argument(word.removeprefix("npm:"))).text
    return package if package.startswith("@") else os.path.basename(package)


def is_left_out(words: Sequence[str], *, unclear: bool = False, depth: int = 0) -> bool:
    """Return True for a command that no rule for a group or a whole program covers.

    With `unclear`, words that are not known may be options besides.
    """
    commands, _ = _load()
    program = name_package(words[0])
    given = (program, *words[1:])
    named = depth == 0 and words[0] == program  # the group names it itself
    if (reaches_far(program) and not named) or _runs_reaching_script(given):
        return True
    if given[0] in _FETCHING and given[1:2] == ("run",) and any(map(_FETCHED.match, given[2:])):
        return True
    for names, marks in commands.get(program, ()):
        if may_begin_with(given, names) and (
            not marks or unclear or any(_has(given, mark) for mark in marks)
        ):
            return True
    whole = None if named else load_whole_programs().get(program)
    for command in whole.subcommands if whole else ():
        if may_begin_with(given, (program, *command.split())):
            return True
    launched = find_started(given) if depth < _DEEPEST else ()
    return any(is_left_out(line, unclear=unclear, depth=depth + 1) for line in launched)


def _has(words: Sequence[str], mark: str) -> bool:
    """Return True if a word, an option, or an option with a value is among words."""
    if mark[:1] != "-":
        return mark in words
    option, equals, wanted = mark.partition("=")
    for word, following in zip(words, (*words[1:], ""), strict=True):
        name, attached, value = word.partition("=")
        if not equals and _is_letter(option, word):
            return True
        if _means(name, option) and value.casefold() not in ("false", "0"):
            given = (value if attached else following).casefold().removeprefix("cap_")
            if not equals or wanted in given.split(","):
                return True
    return False


def _means(given: str, option: str) -> bool:
    """Return True for an option, or for the beginning of a long one: many programs take that."""
    return given == option or (given[:2] == "--" != given and option.startswith(given))


def _is_letter(option: str, word: str) -> bool:
    """Return True if a word holds the letter of an option: `-fv`."""
    return len(option) == len("-x") and re.match(f"-[A-Za-z]*{option[1]}", word) is not None


def _runs_reaching_script(words: Sequence[str]) -> bool:
    """Return True for `npm run deploy`, `make publish` and the like."""
    targeted = words[0] in _TARGETED  # there `--` only ends the options
    own = [*words] if targeted else list(takewhile(lambda word: word != "--", words))
    given = [part for word in own[1:] for part in (_PARTS.split(word) if targeted else [word])]
    program, names = own[0], [word for word in given if word[:1] != "-" and "=" not in word]
    if program in _SCRIPTED:
        identifier = identify([Argument(word) for word in own]).identifier
        runs = program == "npm" and names[:1] and _NPM_RUN.fullmatch(names[0])
        if not runs:
            names = identifier.split()[1:] if program != "bun" else names[:2]
        return any(map(reaches_far, names)) or any(map(_SCRIPT.search, names))
    if program in _RUNNERS:
        names = names[1:2] if names[:1] and names[0] in _RUNNING else []
    elif program not in _TARGETED:
        return False
    return any(map(_SCRIPT.search, names))


def find_started(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the command lines that a launcher, or Python for a module, may start."""
    arguments = [Argument(word) for word in words[1:]]
    for line in find_launched(words[0], arguments):
        yield [argument.text for argument in line]
    if words[0].startswith("python") and "-m" in (given := [*split_modules(words[1:])])[:-1]:
        yield given[given.index("-m") + 1 :]
    for index, word in enumerate(words[1:] if words[0] in ("node", "bun") else (), 1):
        if match := _INSTALLED.fullmatch(word):
            yield match[1], *words[index + 1 :]
    if words[0] in ("deno", "bun"):
        places = (index for index, word in enumerate(words) if word.startswith("npm:"))
        yield from (words[place:] for place in places)
