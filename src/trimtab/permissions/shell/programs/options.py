"""A program's options by its table: which are harmless, which run or write something else."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The known options of a program. Lists are separated by spaces.

    `name=` needs a value, `name?` may have one attached. An option in no list is not known, and a
    call with one is not read-only.
    """

    like: str = ""
    """Another table that this one adds to."""
    reads: bool = False
    """True if it changes nothing if it is given harmless options only."""
    flags: str = ""
    """Harmless one-letter options."""
    valued: str = ""
    """Harmless one-letter options with a value."""
    long: str = ""
    """Harmless long options."""
    runs: str = ""
    """Options that run a program, or code in a file."""
    writes: str = ""
    """Options that write a file one does not expect to be written."""
    targets: str = ""
    """Options whose value is a file to write, as one expects."""
    changes: str = ""
    """Options that are known and make the call one that changes something."""
    operands: int = -1
    """So many operands at most; more are written to."""
    single: bool = False
    """True if long options begin with one dash."""
    numbers: bool = False
    """True if `-5` is an option."""
    first: int = 0
    """So many operands at the beginning are no paths."""
    free: bool = False
    """True if no option of the program does harm, so that unknown words are harmless, too."""
    launches: bool = False
    """True if it is there to run commands that its words do not name as such."""
    hazard: str = ""
    """Arguments that match this expression run something."""
    code: bool = False
    """True if that may stand anywhere in an argument: it is code for the program."""
    words: str = ""
    """If given, the first operand (empty if there is none) must match for it to be read-only."""
    tries: str = ""
    """If given and the first operand matches, or the first two with a blank between them, it seems
    to only read, though it may do more."""
    text: bool = False
    """True if its arguments are text: no options, no paths."""
    skip: int = 0
    """For one that starts another program: so many operands stand before that."""
    skipped: str = ""
    """The same: what these look like; a word that does not is the program that is started."""
    names: str = ""
    """The same: options whose value is the name of a variable that it sets."""
    assigns: bool = False
    """The same: variables may be set before it."""
    appends: bool = False
    """The same: it adds arguments of its own."""
    transparent: bool = False
    """The same: it changes nothing itself."""
    informs: str = ""
    """The only single argument with which it just says something about itself."""
    asks: str = ""
    """The same: letters with which nothing is started."""
    strings: str = ""
    """The same: options whose value is a script."""
    users: bool = False
    """The same: it starts the shell of a user, unless `-u` is given."""
    pipes: str = ""
    """The same: options whose value is a file, or a command after `|` or `!`."""
    joined: str = ""
    """The same: the words are a script, unless one of these options is given."""
    shell: str = ""
    """The same: without a command it starts a shell, if one of these options is given or `_`."""
    within: str = ""
    """The same: options whose value is the folder in which it starts what it runs."""
    partial: bool = False
    """True if only calls that read are described; any other may start what its words name."""
    bundled: bool = False
    """True if its first word may be letters of options without a dash, as in `tar czf`."""


class Reading(msgspec.Struct):
    """The arguments of one call, sorted into options and operands."""

    operands: list[Argument] = []
    values: dict[str, list[Argument | None]] = {}
    hazards: list[str] = []
    targets: list[Argument] = []
    strange: list[str] = []
    """Options that no table calls harmless."""
    uncertain: bool = False
    """True if an unknown word might be an option."""
    runs: bool = False
    """True if one of the hazards runs something that is not named as a command."""
    carried: list[str] = []
    """Texts that these hazards are about, and that may hold commands."""

    def has(self, *names: str) -> bool:
        return any(name in self.values for name in names)


class _Options(msgspec.Struct):
    kinds: dict[str, str]
    """Option → harmless, runs, writes, targets, strings, pipes or changes."""
    arities: dict[str, str]
    """Option → empty, `=` or `?`."""


@lru_cache(8)
def load_table(name: str) -> dict[str, Program]:
    """One of the files in `tables`."""
    path = os.path.join(os.path.dirname(__file__), "tables", f"{name}.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Program])


@lru_cache(1)
def load_subcommands() -> dict[str, int]:
    """First words of commands → the number of words that name such a command."""
    path = os.path.join(os.path.dirname(__file__), "tables", "subcommands.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, int])


def find_carrier(name: str) -> Program | None:
    """The table of a program that starts another one."""
    return load_table("carriers").get(name)


@lru_cache(256)
def find_program(name: str) -> Program | None:
    """The table of a program, with what it takes over from another one."""
    program = load_table("git" if name.startswith("git") else "programs").get(name)
    if program is None or not program.like:
        return program
    origin = find_program(program.like)
    assert origin is not None
    merged: dict[str, Any] = {}
    for field in Program.__struct_fields__:
        own, other = getattr(program, field), getattr(origin, field)
        if field in ("long", "runs", "writes", "targets", "changes"):
            merged[field] = f"{other} {own}".strip()
        elif field in ("flags", "valued"):
            merged[field] = other + own
        else:
            merged[field] = own or other
    return Program(**merged)


@lru_cache(256)
def _options(program: Program) -> _Options:
    kinds: dict[str, str] = {}
    arities: dict[str, str] = {}
    for kind in ("long", "changes", "targets", "strings", "pipes", "writes", "runs"):
        for item in getattr(program, kind).split():
            name = item.rstrip("=?")
            kinds[name] = "harmless" if kind == "long" else kind
            arities[name] = item[len(name) :]
    for letters, arity in ((program.flags, ""), (program.valued, "=")):
        for letter in letters:
            kinds.setdefault(f"-{letter}", "harmless")
            arities.setdefault(f"-{letter}", arity)
    return _Options(kinds, arities)


def read_leading(program: Program, arguments: Sequence[Argument]) -> tuple[Reading, list[Argument]]:
    """The options at the beginning, and everything from the first operand on."""
    reading = Reading()
    reader = _ArgumentReader(program, arguments, reading)
    while reader.rest and not reading.operands:
        if reader.rest[-1].text == "--":
            reader.rest.pop()
            break
        reader.step()
    return reading, [*reading.operands, *reversed(reader.rest)]


def read_options(program: Program, arguments: Sequence[Argument]) -> Reading:
    """Sort arguments into options and operands, as GNU programs do: options may stand anywhere."""
    reading = Reading()
    if program.text:
        reading.operands += arguments
        return reading
    reader = _ArgumentReader(program, arguments, reading)
    if program.bundled and arguments and arguments[0].text[:1] != "-":
        reader.step_bundle()
    while reader.rest:
        reader.step()
    if program.hazard:
        expression = re.compile(program.hazard, re.IGNORECASE)
        ended = False
        for argument in arguments:
            ended = ended or argument.text == "--"
            if expression.search(argument.text):
                reading.hazards.append(f"{argument.text.replace(UNKNOWN, '…')!r} runs something")
                reading.runs = True
                reading.carried.append(argument.text)
            elif program.code or argument in reading.operands or argument.text[:1] == "-":
                unsure = _may_match(program, argument.text, ended=ended)
                reading.uncertain = reading.uncertain or unsure
    return reading


def _may_match(program: Program, text: str, *, ended: bool) -> bool:
    """Return True if a word that is known in part may turn out to match the hazard.

    Behind `--`, which `ended` the options, only code may.
    """
    if UNKNOWN not in text or program.code:
        return UNKNOWN in text
    if ended:
        return False
    known = text.partition(UNKNOWN)[0].lstrip("-").lower()
    names = re.findall(r"[a-z_.]{2,}", program.hazard.lower())
    return any(name.startswith(known) for name in names)


class _ArgumentReader:
    def __init__(self, program: Program, arguments: Sequence[Argument], into: Reading) -> None:
        self._program = program
        self._options = _options(program)
        self._into = into
        self.rest = list(reversed(arguments))

    def step(self) -> None:
        argument = self.rest.pop()
        text = argument.text
        if argument.may_be_option or argument.many:
            self._into.uncertain = True
        if text == "--":
            self._into.operands += reversed(self.rest)
            self.rest.clear()
        elif text[:1] != "-" or text == "-":
            self._into.operands.append(argument)
        elif self._program.numbers and re.fullmatch(r"-\d+", text):
            pass
        elif text.startswith("--") or self._program.single:
            self._read_long(argument)
        else:
            self._read_cluster(text[1:], argument)

    def step_bundle(self) -> None:
        """Letters of options in a word of their own; their values follow in the same order."""
        argument = self.rest.pop()
        self._into.uncertain = argument.several or UNKNOWN in argument.text
        for letter in argument.text:
            self._read_cluster(letter, Argument(f"-{letter}"))

    def _read_long(self, argument: Argument) -> None:
        name, equals, value = argument.text.partition("=")
        if self._program.single:
            name = "-" + name.lstrip("-")
        known = self._resolve(name)
        given = Argument(value, argument.pattern, argument.many) if equals else None
        if known is None:
            self._into.strange.append(name)
            return
        if given is None and self._options.arities[known] == "=":
            given = self._take_value()
        self._record(known, given)

    def _resolve(self, name: str) -> str | None:
        """The option that a name means, also when it is shortened; of several the worst."""
        kinds = self._options.kinds
        if name in kinds:
            return name
        beginning = name.partition(UNKNOWN)[0]
        if len(beginning) < 3 or self._program.single:
            return self._worst(kinds) if UNKNOWN in name else None
        candidates = [known for known in kinds if known.startswith(beginning)]
        return self._worst(candidates)

    def _worst(self, names: Sequence[str] | dict[str, str]) -> str | None:
        ranks = ("runs", "writes", "targets", "strings", "pipes", "changes", "harmless")
        chosen = sorted(names, key=lambda name: ranks.index(self._options.kinds[name]))
        return chosen[0] if chosen else None

    def _read_cluster(self, letters: str, argument: Argument) -> None:
        for index, letter in enumerate(letters):
            name = f"-{letter}"
            kind = self._options.kinds.get(name)
            if kind is None:
                self._into.strange.append(name)
                self._into.uncertain = self._into.uncertain or UNKNOWN in letters[index:]
                continue
            arity = self._options.arities[name]
            if not arity:
                self._record(name, None)
                continue
            attached = letters[index + 1 :]
            value: Argument | None = None
            if attached:
                value = Argument(attached, argument.pattern, argument.many)
            elif arity == "=":
                value = self._take_value()
            self._record(name, value)
            return

    def _take_value(self) -> Argument | None:
        """Take the next word as an option's value; words that come with it may be options."""
        if not self.rest:
            return None
        value = self.rest.pop()
        self._into.uncertain = self._into.uncertain or value.several
        return value

    def _record(self, name: str, value: Argument | None) -> None:
        self._into.values.setdefault(name, []).append(value)
        match self._options.kinds[name]:
            case "runs":
                self._into.hazards.append(f"{name} runs something else")
                self._into.runs = True
                self._into.carried += [] if value is None else [value.text]
            case "writes":
                self._into.hazards.append(f"{name} writes a file")
            case "changes":
                self._into.strange.append(name)
            case "targets" if value is not None:
                self._into.targets.append(value)
            case _:
                pass
