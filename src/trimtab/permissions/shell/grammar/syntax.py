"""The parts of a script, as far as judging it needs to know."""

import re
from math import inf
from typing import Literal

import msgspec

PieceKind = Literal["bare", "quoted", "variable", "unknown"]
_READ_ONLY = frozenset(("UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO"))
"""Variables that nobody may set; to try skips the rest of the line."""
_EXPORTED = re.compile(r"([A-Za-z_]\w*)=")


class Unparsable(Exception):
    """Raised for a text that cannot be read with certainty; the message says why."""


class Effort:
    """The steps that reading one text may take. It counts steps, not time: a busy machine must
    not change the verdict."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self) -> None:
        """Count one step. Raises `Unparsable` when none is left."""
        self._left -= 1
        if self._left < 0:
            raise Unparsable("it takes too long to read")


class Piece(msgspec.Struct, frozen=True):
    """A part of a word. `text` is literal text or a variable's name; `splits` means that what it
    expands to may become several words, or none."""

    kind: PieceKind
    text: str = ""
    splits: bool = False


class Word(msgspec.Struct):
    """One word as written: quotes removed, expansions kept as pieces."""

    pieces: list[Piece]

    @property
    def bare(self) -> str | None:
        """Its text if nothing in it is quoted or expanded; only such words can be keywords."""
        if all(piece.kind == "bare" for piece in self.pieces):
            return "".join(piece.text for piece in self.pieces)
        return None


class Redirect(msgspec.Struct, frozen=True):
    """`body` is the text of a heredoc, or the word of a here-string."""

    operator: str
    target: Word
    body: Word | None = None


class Assignment(msgspec.Struct, frozen=True):
    """`value` is None when it is an array or comes from elsewhere (`read`, `for` over a list)."""

    name: str
    value: Word | None


class Command(msgspec.Struct):
    """A simple command, or the redirections of a compound one.

    `joint` is the operator before it; `group` is the same for commands of one list, so that `&&`
    between two commands of a group means that the first has succeeded.
    """

    words: list[Word] = []
    assignments: list[Assignment] = []
    redirects: list[Redirect] = []
    joint: str = ";"
    group: int = 0
    is_test: bool = False
    in_function: bool = False
    apart: bool = False
    """True if it is part of a pipe or negated, so that the next command may run although this one
    has failed, or has run in a shell of its own."""

    @property
    def exported(self) -> list[str]:
        """The variables that `export` sets, if it does nothing else and each is written out."""
        if not self.words or self.words[0].bare != "export" or self.assignments:
            return []
        first = [word.pieces[0] for word in self.words[1:] if word.pieces]
        found = [_EXPORTED.match(piece.text) for piece in first if piece.kind == "bare"]
        names = [match[1] for match in found if match]
        return names if len(names) == len(self.words) - 1 else []


class Body(msgspec.Struct, frozen=True):
    """The commands of a function, from `start` to before `end`."""

    function: str
    start: int
    end: int


class Span(msgspec.Struct):
    """The commands for which something holds, from `start` to before `end`."""

    start: float
    end: float = inf


class Loop(msgspec.Struct, frozen=True):
    """The commands that a `for` repeats, from `start` to before `end`, for so many words."""

    start: int
    end: int
    words: int


class Script(msgspec.Struct):
    """Everything found in a text, nested commands included, in the order they were read."""

    commands: list[Command] = []
    values: dict[str, list[Word | None]] = {}
    """The values that each variable is set to anywhere; None for one that is not known."""
    set_at: dict[str, list[int]] = {}
    """For each value, how many commands were read before it was set."""
    setting: int | None = None
    """The index of the command that sets what is assigned now; None for the one read last."""
    cleared: set[str] = set()
    """Variables that may have no value any more."""
    clears: bool = False
    """True if a variable that is not known may have none any more."""
    settled: dict[str, Span] = {}
    """Variables that are set for certain, and for which commands."""
    failing: int = 0
    """The number of places whose failure makes the shell skip the rest of their line."""
    repeats: list[Span] = []
    """The commands that run again after those behind them."""
    loops: dict[str, list[Loop]] = {}
    """The loops that set a variable to each of their words."""
    functions: dict[str, int] = {}
    """Functions that are there for certain, once so many commands have been read."""
    bodies: list[Body] = []
    """Every function that the script may define, in the order of their ends."""
    computed: set[str] = set()
    """Names used in arithmetic, where a value is evaluated as code."""
    computes: bool = False
    """True if something that is printed is used in arithmetic."""
    substitutes: bool = False
    """True if that may be something else than a number."""
    defaults: list[str] = []
    """Paths that stand for variables which have no value."""
    replacements: list[str] = []
    """Texts in expansions which may become paths."""
    hazards: list[str] = []
    unclear: list[str] = []
    """Why the reading of some part is not certain enough to be relied on."""

    def assign(self, name: str, value: Word | None) -> None:
        self.failing += name in _READ_ONLY
        at = len(self.commands) if self.setting is None else self.setting
        self.set_at.setdefault(name, []).append(at)
        self.values.setdefault(name, []).append(value)
