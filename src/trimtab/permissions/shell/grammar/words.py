"""From words as written to the arguments a program would be given, as far as they can be known."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise, takewhile
from math import inf

import msgspec

from trimtab.permissions.shell.grammar.reader import COPIED, DEFAULTED, NUMERIC, TOP
from trimtab.permissions.shell.grammar.syntax import Command, Piece, Script, Span, Word
from trimtab.permissions.shell.grammar.top_folder import find_top

UNKNOWN = "\0"
"""Stands in an argument for text that is not known before run time."""
FRESH = f"/tmp/{UNKNOWN}"  # noqa: S108 - a name that is compared, never opened
"""Stands for a name that `mktemp` has made."""
MOST, MOST_NESTED = 64, 2
LONGEST = 10_000
_GLOB = re.compile(r"[*?]|\[.", re.DOTALL)
_SEQUENCE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(\.\.-?\d+)?")

_GIVEN = re.compile(r"[1-9]\d*|[@*]")
"""The words that a function or a script is given."""
_SPECIAL = re.compile(
    r"BASH\w*|S?RANDOM|SECONDS|LINENO|EPOCH\w+|HIST\w+|DIRSTACK|GROUPS|FUNCNAME|PIPESTATUS|E?UID|PPID"
    r"|SHELLOPTS|IFS|OPT\w+|REPLY|(?:OLD)?PWD|COMP_\w+|READLINE_\w+|COPROC|MAPFILE|_"
)
"""Variables that the shell itself sets, or that do not keep what they are set to."""
_SET_UNSEEN = re.compile(
    r"BASH(?:PID|_REMATCH|_COMMAND|_SUBSHELL|_LINENO|_SOURCE|_ARG\w+|_VERSINFO|OPTS)|S?RANDOM"
    r"|SECONDS|LINENO|E?UID|PPID|SHELLOPTS"
    r"|EPOCH\w+|HISTCMD|DIRSTACK|GROUPS|FUNCNAME|PIPESTATUS|OPTARG|OPTIND|REPLY|COPROC|MAPFILE|_"
)
"""Those of them that commands set without naming them, or that nobody can set."""
_BLANKS = re.compile(r"[ \t\n]+")
"""Blanks by which the shell separates words; others belong to words."""
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=", re.ASCII)
"""The beginning of a word that looks like an assignment."""
_NAMED = re.compile(r"[\w.-]+=|-[A-Za-z]")
"""The name of a value, in the same word: `if=`, `--directory=`, `-C`."""
_OPTIONS = re.compile(r"[-+][abeuxvo]+|errexit|nounset|pipefail|xtrace|verbose|allexport")
"""Words of `set` that leave all variables as they are."""
_CHANGING = frozenset(
    (
        *("unset", "eval", "source", ".", "trap", "shopt", "set", "alias", "builtin", "command"),
        *("enable", "exec", "declare", "typeset", "local", "export", "readonly", "let", "read"),
        *("mapfile", "readarray", "getopts", "wait", "coproc"),
    )
)
"""Commands that may change a variable in ways that are not seen as an assignment."""

Part = Piece | str
"""A piece, or one unquoted character."""


class Argument(msgspec.Struct, frozen=True):
    """One argument; `pattern` if file names may take its place, `many` if it may be several."""

    text: str
    pattern: bool = False
    many: bool = False

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text and not self.pattern

    @property
    def several(self) -> bool:
        """Return True if the program may be given more than one word in its place."""
        return self.many or self.pattern

    @property
    def may_be_option(self) -> bool:
        """Return True if it is not known how it begins."""
        return self.text[:1] == UNKNOWN or (self.pattern and self.text[:1] in "*?[")


class Variables:
    """The values variables can have: those the script itself gives them, and a few others."""

    def __init__(
        self,
        script: Script,
        surroundings: dict[str, str],
        *,
        separators: Sequence[str] | None = (),
        redefined: bool = False,
        folders: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """`folders` lists where the next command may run, if that may change."""
        self._script = script
        self.redefines = redefined or any(map(_may_redefine, script.commands))
        """True if programs may be replaced by functions that the script does not show."""
        self._surroundings = surroundings
        self._inherited = separators
        """Separators of words besides blanks, set by the script around; None if not known."""
        here = surroundings.get("PWD", "")
        self._list_folders = folders or (lambda: [here] if here else [])
        self._moves = any(map(_may_move, script.commands)) or [*self._list_folders()] != [here]
        self._resolving: set[str] = set()
        self._known: dict[str, list[str] | None] = {}
        self._settled: dict[str, Span] = {}
        changing = (n for n, command in enumerate(script.commands) if _may_change(command))
        first = next(changing, inf)
        self._changed_from = -1 if script.repeats and first < inf else first
        """The index of the first command that may change any variable, when it has run."""
        self.at: int | None = None
        """The index of the command whose words are expanded; None if it is in a function."""
        self._numbers: dict[str, bool] = {}

    def values(self, name: str) -> list[str] | None:
        """All values, or None if one is unknown."""
        if name == "PWD" and name not in self._script.values:
            empty = [""] if name in self._script.cleared or self._script.clears else []
            return [*self._list_folders(), *empty] or None
        if name not in self._known:
            self._known[name] = self._find_values(name)
        return self._known[name]

    def _find_values(self, name: str) -> list[str] | None:
        given = self._script.values.get(name)
        empty = [""] if name in self._script.cleared or self._script.clears else []
        if given is None:
            found = self._surroundings.get(name)
            return None if found is None else [found, *empty]
        if name in self._resolving or len(given) > MOST or _SET_UNSEEN.fullmatch(name):
            return None
        self._resolving.add(name)
        try:
            values = list(empty)
            for word, at in zip(given, self._script.set_at[name], strict=True):
                if word is not None and any(self._is_set_behind(p, at) for p in word.pieces):
                    return None
                arguments = [] if word is None else self.expand(word, assigned=True)
                texts = [argument.text for argument in arguments]
                if word is None or any(UNKNOWN in text and text != FRESH for text in texts):
                    return None
                values += texts
        finally:
            self._resolving.discard(name)
        return values if len(values) <= MOST else None

    def is_settled(self, name: str) -> bool:
        """Return True if a variable has, at the current command, the one value the script gives it.

        It is set once, unconditionally, before the command, and nothing else may change it.
        """
        if self.at is None or self._may_have_changed:
            return False
        span = self._find_settled(name)
        return span.start <= self.at < span.end

    @property
    def _may_have_changed(self) -> bool:
        """True if, before the current command, one ran that may change any variable."""
        return self.at is None or self.at > self._changed_from

    def _find_settled(self, name: str) -> Span:
        """Return for which commands a variable is settled; it begins nowhere if it never is."""
        if name not in self._settled:
            self._settled[name] = Span(inf)  # as long as it is being worked out
            self._settled[name] = self._settles(name)
        return self._settled[name]

    def _settles(self, name: str) -> Span:
        script, values = self._script, self._script.values.get(name, ())
        if _SPECIAL.fullmatch(name) or self._separates or name in script.computed:
            return Span(inf)
        if script.computes or len(values) != 1 or values[0] is None:
            return Span(inf)
        span = script.settled.get(name, Span(inf))
        # A value may come from variables that an earlier command settled.
        fixed = all(self._is_fixed(piece, span.start) for piece in values[0].pieces)
        return span if fixed else Span(inf)

    def _is_fixed(self, piece: Piece, before: float) -> bool:
        if piece.kind == "variable":
            given = piece.text in self._script.values
            span = self._find_settled(piece.text)
            return span.start < before <= span.end if given else self._is_given(piece.text)
        if piece.kind == "unknown":
            return self._prints_one(piece.text)
        # Braces mean themselves in an assignment.
        return piece.kind == "quoted" or (piece.kind == "bare" and "{" not in piece.text)

    def is_written_out(self, word: Word) -> bool:
        """Return True if it is certain what a word becomes at the current command."""
        return all(map(self._is_certain, word.pieces))

    def _is_certain(self, piece: Piece) -> bool:
        if piece.kind == "unknown":
            return self._prints_one(piece.text)
        if piece.kind != "variable":
            return True
        if piece.text not in self._script.values:
            return self._is_given(piece.text)
        return self.is_settled(piece.text) or self._is_repeated(piece.text)

    def _is_given(self, name: str) -> bool:
        """Return True for a variable that has its value from outside the script, and keeps it."""
        return name == "HOME" or (name == "PWD" and not self._moves)

    def _prints_one(self, program: str) -> bool:
        """Return True for a command that is known to print one text."""
        return program != "mktemp" and self._find_printed(program) is not None

    def _is_repeated(self, name: str) -> bool:
        """Return True if a variable has, at the current command, a word that a loop names."""
        at, script = self.at, self._script
        loops, values = script.loops.get(name, ()), script.values[name]
        if at is None or self._may_have_changed or self._separates or name in script.computed:
            return False
        if script.computes or sum(loop.words for loop in loops) < len(values):
            return False
        named = all(word is not None and _is_plain(word) for word in values)
        return named and any(loop.start <= at < loop.end for loop in loops)

    @property
    def _separates(self) -> bool:
        """True if words may be separated by other characters than blanks."""
        return self._inherited != () or "IFS" in self._script.values

    @property
    def separators(self) -> list[str] | None:
        """The characters that the script may have words separated by; None if not known."""
        own = self.values("IFS") if "IFS" in self._script.values else []
        return None if own is None or self._inherited is None else [*self._inherited, *own]

    def is_array(self, name: str) -> bool:
        """Return True if a variable may be an array: what it is set to is not one text."""
        return None in self._script.values.get(name, ())

    def gives_number(self, piece: Piece) -> bool:
        """Return True if what a piece becomes can only be a number."""
        name = piece.text.removeprefix(DEFAULTED)
        return piece.text in NUMERIC or (name != piece.text and self.is_number(name))

    def list_texts(self, name: str) -> list[str]:
        """Return what the script says that a variable is, known or in part."""
        words = [word for word in self._script.values.get(name, ()) if word is not None]
        parts = ["".join(piece.text for piece in word.pieces) for word in words]
        return [*parts, *((self.values(name) or ()) if words else ())]

    def is_number(self, name: str) -> bool:
        """Return True if a variable can only be a number, or what the script itself says."""
        if name not in self._numbers:
            self._numbers[name] = False  # as long as it is being worked out
            self._numbers[name] = self._is_number(name)
        return self._numbers[name]

    def _is_number(self, name: str) -> bool:
        if _GIVEN.fullmatch(name):  # what a function or a script is given
            return False
        for word in self._script.values.get(name, ()):
            if word is None:
                return False
            for piece in word.pieces:
                if piece.kind == "unknown" and not self.gives_number(piece):
                    return False
                if piece.kind == "variable" and piece.text != name:
                    known = piece.text in self._script.values or piece.text in "?#$!"
                    if not known or not self.is_number(piece.text):
                        return False
        return True

    def if_empty(self, word: Word, depth: int = 0) -> list[tuple[str, bool]]:
        """The paths a word is if the expansions at its beginning give nothing, also in values.

        With each goes whether that is likely: the script gives them no value.
        """
        found = [self._if_empty(word)]
        first = word.pieces[0] if word.pieces else Piece("quoted")
        values = self._script.values.get(first.text, ()) if first.kind == "variable" else ()
        if depth < MOST_NESTED and not self._is_certain(first):
            for value in (value for value in values[:MOST] if value is not None):
                found += self.if_empty(Word([*value.pieces, *word.pieces[1:]]), depth + 1)
        return found

    def _if_empty(self, word: Word) -> tuple[str, bool]:
        named = list(takewhile(lambda piece: piece.kind in ("bare", "quoted"), word.pieces))
        start = len(named) if _NAMED.fullmatch("".join(piece.text for piece in named)) else 0
        leading = list(takewhile(lambda piece: not _is_text(piece), word.pieces[start:]))
        expansions = [piece for piece in leading if piece.kind in ("variable", "unknown")]
        if not expansions or not all(map(self._may_be_empty, expansions)):
            return "", False
        literal = takewhile(
            lambda piece: piece.kind in ("bare", "quoted"), word.pieces[start + len(leading) :]
        )
        text = "".join(piece.text for piece in literal)
        likely = all(
            piece.kind == "variable" and self._is_unset(piece.text) for piece in expansions
        )
        return (text, likely) if text[:1] == "/" else ("", False)

    def _is_set_later(self, name: str) -> bool:
        """Return True if a script gives a variable its values only behind the current command."""
        return self.at is not None and self._is_set_behind(Piece("variable", name), self.at)

    def _is_set_behind(self, piece: Piece, at: int) -> bool:
        """Return True if a piece is a variable that has its values only behind a command."""
        indices = self._script.set_at.get(piece.text, ()) if piece.kind == "variable" else ()
        if not indices or at >= min(indices):
            return False
        return not any(span.start <= at < span.end for span in self._script.repeats)

    def _is_unset(self, name: str) -> bool:
        """Return True if a script gives a variable no value yet; functions have arguments."""
        if name.isidentifier():
            return name not in self._script.values or self._is_set_later(name)
        return self.at is not None and not self._may_have_changed

    def _may_be_empty(self, piece: Piece) -> bool:
        if piece.kind == "unknown":
            return piece.text not in NUMERIC and not piece.text.startswith((DEFAULTED, "mktemp"))
        if piece.text in ("?", "#", "$", "-", "0"):
            return False
        return self.values(piece.text) is None or not self._is_certain(piece)

    def expand(
        self, word: Word, *, strict: bool = False, assigned: bool = False, unset: bool = False
    ) -> list[Argument]:
        """The arguments a word becomes; one with several possible values becomes all of them.

        If `strict`, variables that the script sets are not known unless they are settled. With
        `unset`, those that are not certain may have no value, too.
        """
        arguments: list[Argument] = []
        for alternative in expand_braces(word.pieces):
            name = None
            if alternative[:1] == word.pieces[:1] and alternative and alternative[0].kind == "bare":
                name = _ASSIGNED.match(alternative[0].text)
            # Bash expands a tilde here, too, not only at the beginning of a word.
            behind = 0 if assigned else (name.end() if name else -1)
            arguments += self._expand_one(alternative, strict, behind, unset)
        return arguments

    def _expand_one(
        self, pieces: Sequence[Piece], strict: bool, behind: int, unset: bool
    ) -> list[Argument]:
        texts = [""]
        pattern = many = False
        for index, piece in enumerate(pieces):
            if piece.kind == "bare":
                tilde = self._expand_tildes(pieces, index, behind)
                texts = [text + tilde for text in texts]
                pattern = pattern or _GLOB.search(piece.text) is not None
            elif piece.kind == "quoted":
                texts = [text + piece.text for text in texts]
            else:
                unsettled = piece.text in self._script.values and not self.is_settled(piece.text)
                resolves = piece.kind == "variable" and not (
                    (strict and unsettled) or self._is_set_later(piece.text)
                )
                values = self.values(piece.text) if resolves else None
                if piece.kind == "unknown":
                    values = self._find_printed(piece.text)
                if values is None or _is_too_much(texts, values):
                    values, many = [UNKNOWN], many or piece.splits
                elif piece.splits and behind:  # a value that is assigned is not split
                    pattern = pattern or any(_GLOB.search(value) for value in values)
                    values = self._split(values, alone=len(pieces) == 1)
                    many = many or (self._separates and UNKNOWN in values)
                may_be_unset = unset and piece.kind == "variable"
                if may_be_unset and values != [UNKNOWN] and not self._is_certain(piece):
                    values = [*values, ""]
                texts = [text + value for text in texts for value in values]
        return [Argument(text, pattern, many) for text in texts]

    def _find_printed(self, program: str) -> list[str] | None:
        """Return the output of a command that stands for a piece of a word, if that is known."""
        name = program.partition(" ")[0]
        if self.redefines or any(body.function == name for body in self._script.bodies):
            return None
        if program == "mktemp" or program.startswith(COPIED):
            return [FRESH if program == "mktemp" else program.removeprefix(COPIED)]
        here = self._surroundings.get("PWD")
        if self._moves or "PWD" in self._script.values or not here:
            return None
        if program == "pwd":
            return [here]
        if program == TOP and not any(name.startswith("GIT_") for name in self._script.values):
            top = find_top(here)
            return [top] if top else None
        return None

    def _split(self, values: list[str], *, alone: bool) -> list[str]:
        if not self._separates:
            if alone:
                return [part for value in values for part in _BLANKS.split(value) if part]
            return [UNKNOWN if _BLANKS.search(value) else value for value in values]
        separators = self.separators
        if separators is None:
            return [text for value in values for text in (value, UNKNOWN)]
        # It may be changed before or after, so both readings count.
        edges = re.compile("[" + re.escape(" \t\n" + "".join(separators)) + "]+")
        parts = [part for value in values for part in (value, *edges.split(value))]
        if alone:
            return list(dict.fromkeys(part for part in parts if part))
        return [UNKNOWN if edges.search(value) else value for value in values]

    def _expand_tildes(self, pieces: Sequence[Piece], index: int, behind: int) -> str:
        """Return an unquoted piece with its tildes expanded.

        In a value, which begins `behind` so many characters, bash also expands those behind colons.
        """
        text, ends = pieces[index].text, index + 1 == len(pieces)
        if "~" not in text:
            return text
        start = 0 if index else max(behind, 0)
        parts = text[start:].split(":") if behind >= 0 else [text]
        last = len(parts) - 1
        expanded = [
            part if index and not number else self._expand_tilde(part, ends or number < last)
            for number, part in enumerate(parts)
        ]
        return text[:start] + ":".join(expanded)

    def _expand_tilde(self, text: str, alone: bool) -> str:
        if text[:1] != "~":
            return text
        name, slash, rest = text.partition("/")
        if name == "~+" and "PWD" not in self._script.values:
            folders = [] if self._moves else self._list_folders()
            return (folders[0] if len(folders) == 1 else UNKNOWN) + slash + rest
        home = self._surroundings.get("HOME")
        if name == "~" and home and "HOME" not in self._script.values and (slash or alone):
            return home + slash + rest
        if name != "~" and (folder := os.path.expanduser(name)) != name:
            return folder + slash + rest
        return UNKNOWN + slash + rest


def _is_plain(word: Word) -> bool:
    """Return True for a word without expansions and patterns."""
    kinds = all(piece.kind in ("bare", "quoted") for piece in word.pieces)
    return kinds and not any(
        piece.kind == "bare" and re.search(r"[*?\[{~]", piece.text) for piece in word.pieces
    )


def _is_text(piece: Piece) -> bool:
    return piece.kind in ("bare", "quoted") and piece.text != ""


def _may_move(command: Command) -> bool:
    """Return True for a command after which another directory may be the current one."""
    if not command.words:
        return False
    if command.in_function or _may_be_builtin(command.words[0]):
        return True
    name = "".join(piece.text for piece in command.words[0].pieces)
    return name in ("cd", "pushd", "popd", "builtin", "command", "eval", "source", ".", "trap")


def _may_be_builtin(word: Word) -> bool:
    """Return True for the name of a command that is not written out and may be any builtin.

    One that certainly has a slash is a file, whatever the variables in it are.
    """
    for piece in word.pieces:
        if piece.kind in ("bare", "quoted"):
            if piece.kind == "bare" and "{" in piece.text:
                return True
            if "/" in piece.text:
                return False
        elif piece.kind != "variable" or piece.splits or not piece.text.isidentifier():
            return True
    return any(piece.kind not in ("bare", "quoted") for piece in word.pieces)


def _may_redefine(command: Command) -> bool:
    """Return True for a command that may define functions which the script does not show."""
    pieces = command.words[0].pieces if command.words else []
    if pieces and _may_be_builtin(command.words[0]):
        return True
    return "".join(piece.text for piece in pieces) in ("eval", "source", ".", "trap", "builtin")


def _may_change(command: Command) -> bool:
    """Return True for a command that may change a variable, also one whose name is not fixed."""
    if not command.words:
        return False
    pieces = command.words[0].pieces
    fixed = all(piece.kind in ("bare", "quoted") for piece in pieces)
    if command.exported:
        return False
    if any(piece.kind == "bare" and "{" in piece.text for piece in pieces):
        return True
    name = "".join(piece.text for piece in pieces)
    if name == "set" and all(_OPTIONS.fullmatch(word.bare or "") for word in command.words[1:]):
        return False
    return fixed and name in _CHANGING


def _is_too_much(texts: Sequence[str], values: Sequence[str]) -> bool:
    if len(values) * len(texts) > MOST:
        return True
    return max(map(len, texts), default=0) + max(map(len, values), default=0) > LONGEST


def expand_braces(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """The words that `{a,b}` makes of one; a word that makes too many is unknown."""
    if not any(piece.kind == "bare" and "{" in piece.text for piece in pieces):
        yield list(pieces)
        return
    parts: list[Part] = []
    for piece in pieces:
        parts += piece.text if piece.kind == "bare" else [piece]
    crowded = parts.count("{") > MOST
    results = [] if crowded else list(islice(_alternatives(parts, [MOST * 4]), MOST + 1))
    if crowded or len(results) > MOST:
        yield [Piece("unknown", splits=True)]
        return
    for result in results:
        yield list(_joined(result))


def _joined(parts: Sequence[Part]) -> Iterator[Piece]:
    run = ""
    for part in parts:
        if isinstance(part, str):
            run += part
            continue
        if run:
            yield Piece("bare", run)
            run = ""
        yield part
    if run:
        yield Piece("bare", run)


def _alternatives(parts: Sequence[Part], left: list[int]) -> Iterator[list[Part]]:
    left[0] -= 1
    found = _find_braces(parts) if left[0] > 0 else None
    if found is None:
        yield list(parts)
        return
    start, end, commas = found
    tails = list(islice(_alternatives(parts[end + 1 :], left), MOST + 1))
    if commas:
        edges = [start, *commas, end]
        choices = [parts[a + 1 : b] for a, b in pairwise(edges)]
        middles = (middle for choice in choices for middle in _alternatives(choice, left))
        heads = list(islice(middles, MOST + 1))
    else:
        heads = [[Piece("unknown")]]
    for head in heads:
        for tail in tails:
            yield [*parts[:start], *head, *tail]


def _find_braces(parts: Sequence[Part]) -> tuple[int, int, list[int]] | None:
    """The first brace expression: where it opens and closes, and its commas."""
    for start, part in enumerate(parts):
        if part != "{":
            continue
        depth, commas = 0, []
        for index in range(start, len(parts)):
            character = parts[index]
            if character == "{":
                depth += 1
            elif character == "," and depth == 1:
                commas.append(index)
            elif character == "}":
                depth -= 1
                if depth == 0:
                    if commas or _is_sequence(parts[start + 1 : index]):
                        return start, index, commas
                    break
    return None


def _is_sequence(parts: Sequence[Part]) -> bool:
    """`{1..3}`; one with an expansion inside is taken for one as well."""
    text = "".join(part if isinstance(part, str) else part.text for part in parts)
    dynamic = any(not isinstance(part, str) for part in parts)
    return (dynamic and ".." in text) or _SEQUENCE.fullmatch(text) is not None
