"""The identifier of a command: the word that rules are written for."""

import os
import re
from collections.abc import Sequence

import msgspec

from trimtab.permissions.shell.grammar.words import Argument
from trimtab.permissions.shell.programs.options import Reading, find_program, read_leading

_PACKAGERS = frozenset(("npm", "pnpm", "yarn"))
_VALUED = frozenset(
    (
        *("-C", "--prefix", "-w", "--workspace", "-F", "--filter", "--dir", "--cwd", "--registry"),
        *("--loglevel", "--cache", "--userconfig", "-R", "--repo", "--hostname"),
    )
)

_SHOWING = re.compile(r"-[a-z]*t|--show-t")
_TOKEN = (Argument("auth"), Argument("token"))
"""The identifier of `gh auth status --show-token`, which prints a secret."""
_HARMLESS = re.compile(
    r"(?i:color\.[\w.]+|core\.quotepath|column\.\w+|advice\.\w+|log\.(?:date|decorate)"
    r"|status\.\w+|diff\.(?:renames|algorithm|context))(?:=.*)?|core\.pager=cat"
    r"|(?i:(?:user|author|committer)\.(?:name|email)=.*|(?:commit|tag)\.gpgsign=false"
    r"|core\.(?:autocrlf|safecrlf|longpaths|filemode)=\w*|merge\.conflictstyle=\w+"
    r"|rebase\.auto(?:squash|stash)=\w+|pull\.(?:rebase|ff)=\w+|gc\.auto=0"
    r"|http\.postbuffer=\d+|init\.defaultbranch=[\w.-]+)"
    r"|(?i:core\.hookspath)=/dev/null|(?i:(?:core|sequence)\.editor)=(?:true|:)"
)
"""Settings of git that start nothing: how it prints, who commits, what it leaves out."""


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """`identifier` keeps folders, `base` does not. `table` is the key of the option table.

    `skipped` counts the arguments up to and including the subcommand.
    """

    identifier: str
    base: str
    program: str
    table: str
    skipped: int = 0
    subcommand: str = ""
    dynamic: bool = False
    hazards: tuple[str, ...] = ()


def identify(arguments: Sequence[Argument]) -> Name:
    """Name a command whose first word is known."""
    word = arguments[0].text
    program = os.path.basename(word) or word
    if program == "git":
        return _identify_git(word, arguments[1:])
    if program == "gh":
        name = _with_words(word, program, arguments[1:], 2)
        shows = name.base == "gh auth status" and any(_SHOWING.match(a.text) for a in arguments)
        return _with_words(word, program, _TOKEN, 2) if shows else name
    if program in _PACKAGERS:
        return _with_words(word, program, arguments[1:], 1)
    return Name(identifier=word, base=program, program=program, table=program)


def _identify_git(word: str, arguments: Sequence[Argument]) -> Name:
    table = find_program("git")
    assert table is not None
    reading, rest = read_leading(table, arguments)
    harmless = _starts_nothing(reading)
    hazards = tuple(
        f"git {hazard}" for hazard in reading.hazards if not (harmless and hazard.startswith("-c "))
    )
    if reading.strange or reading.uncertain:
        hazards += ("git is given options that are not known",)
    if not rest:
        return Name(identifier=word, base="git", program="git", table="git", hazards=hazards)
    first = rest[0]
    subcommand = first.text if first.known else ""
    suffix = f" {subcommand}" if subcommand else ""
    return Name(
        identifier=word if "/" in word else word + suffix,
        base="git" + suffix,
        program="git",
        table="git" + suffix,
        skipped=len(arguments) - len(rest) + 1,
        subcommand=subcommand,
        dynamic=not first.known or first.many,
        hazards=hazards,
    )


def _starts_nothing(reading: Reading) -> bool:
    """Return True if no setting that git is given makes it start something."""
    given = reading.values.get("-c", [])
    return bool(given) and all(
        value is not None and value.known and _HARMLESS.fullmatch(value.text) for value in given
    )


def _with_words(word: str, program: str, arguments: Sequence[Argument], count: int) -> Name:
    """Identifiers of two or three words, options between them left out."""
    found: list[str] = []
    index, dynamic = 0, False
    while index < len(arguments) and len(found) < count:
        argument = arguments[index]
        if not argument.known or argument.many:
            dynamic = True
            break
        if argument.text in _VALUED:
            index += 1
            dynamic = dynamic or any(value.several for value in arguments[index : index + 1])
        elif argument.text[:1] != "-":
            found.append(argument.text)
            if found == ["api"] and program == "gh":
                index += 1
                break
            if found in (["run"], ["run-script"]) and program in _PACKAGERS:
                count = 2
        index += 1
    suffix = "".join(f" {text}" for text in found)
    return Name(
        identifier=word if "/" in word else word + suffix,
        base=program + suffix,
        program=program,
        table=program,
        subcommand=found[0] if found else "",
        skipped=min(index, len(arguments)),
        dynamic=dynamic,
    )
