"""The variables that a script sets or unsets by other means than an assignment."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from trimtab.permissions.shell.grammar.arithmetic import names_unknown
from trimtab.permissions.shell.grammar.builtins import (
    find_builtin,
    has_pattern,
    join,
    join_bare,
    spell,
    unwrap,
)
from trimtab.permissions.shell.grammar.parts import DECLARATIONS
from trimtab.permissions.shell.grammar.syntax import Command, Piece, Script, Word
from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument, Variables
from trimtab.permissions.shell.programs.options import find_program, read_options
from trimtab.permissions.shell.programs.variables import (
    PATH_ITSELF,
    is_hazardous,
    is_program_folder,
)
from trimtab.permissions.shell.verdict.analysis import Analysis

SETTERS = frozenset(("read", "mapfile", "readarray", "getopts", "unset", "let", "printf", "wait"))
"""Builtins that set variables, or take their values away."""
TESTS = frozenset(("test", "[", "[["))
_READERS = frozenset(("read", "mapfile", "readarray", "getopts"))
"""Builtins whose operands name variables."""
_NAME_OPTIONS = {"printf": "-v", "wait": "-p"}
"""Builtins with the option that names one."""
_SETTING = re.compile(r"([A-Za-z_]\w*)(?:\[.*\])?(?:(\+?=)(.*))?", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_ATTACHED = re.compile(r"^-[A-Za-z]*[vpa](?=[A-Za-z_])")
"""An option with the name of a variable behind it."""
_EVALUATED = re.compile(r"(?:^|[\s;&|(])([A-Za-z_]\w*)=(?:'([^']*)'|\"([^\"]*)\"|([^\s;&|()'\"]*))")
_SETS_MORE = re.compile(
    r"\b(?:read|mapfile|readarray|getopts|printf\s+-|let|declare|typeset|local|export|readonly|unset"
    r"|for|select|coproc|eval|source|wait)\b|\(\(|\$\[|\$\{\w+:?="
)
"""Ways to set variables in a quoted script other than an assignment in front."""
_NEEDED = re.compile(r"PATH|HOME|GIT_(?:CONFIG|OPTIONAL|PAGER).*")
"""Variables that decide which programs and settings are used by being there."""
_ALTERING = re.compile(r"-\w*[luc]")
"""Options of declarations by which a variable does not keep what it is set to."""
_UNEXPORTING = re.compile(r"-\w*n|\+\w*x")
_ARRAY_OPTION = re.compile(r"-\w*[aA]")
_IN_FORMATS = re.compile(r"[^\w*?\[\]{},.~-]")
"""Characters of a format that cannot be in an option with the name of a variable."""
_VALUED = {"read": "dinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc"}
"""The letters of options whose value names no variable."""
UNNAMED = "a variable is set that is not named before it runs"


def find_hidden(command: Command, arguments: Sequence[Argument]) -> Iterator[str]:
    """Yield why a command is hazardous that turns out to set variables, but does not look it."""
    name = unwrap(arguments)[0].text
    if name in (*SETTERS, *DECLARATIONS) and name != find_builtin(command.words)[0]:
        yield UNNAMED


def check_names(into: Analysis, arguments: Sequence[Argument]) -> None:
    """Check the variables that a builtin sets or looks at by names which are not written out.

    Such a name may be PATH, or have a subscript that runs commands.
    """
    if names_unknown(arguments):
        into.add_hazards("a subscript that is not known is evaluated")
    program = arguments[0].text
    for name in (argument.text.partition("[")[0] for argument in _find_names(arguments)):
        if UNKNOWN in name:
            reason = f"{program} is given the name of a variable that is not known"
            into.doubts += [reason] if reason not in into.doubts else []
        elif program not in TESTS and is_hazardous(name, None):
            into.add_hazards(f"{name} decides what programs load or run")


def _find_names(arguments: Sequence[Argument]) -> Iterator[Argument]:
    """Yield the arguments of a builtin that name variables, as far as others do not set them."""
    program, rest = arguments[0].text, arguments[1:]
    if program in DECLARATIONS:
        yield from (word for word in rest if word.text[:1] == UNKNOWN)
    elif program in TESTS:
        yield from (after for before, after in pairwise(rest) if before.text in ("-v", "-R"))
    elif program in _NAME_OPTIONS:
        for word, after in pairwise([*rest, Argument("")]):
            if word.text == _NAME_OPTIONS[program]:
                yield after
            elif word.text.startswith(_NAME_OPTIONS[program]):
                yield Argument(word.text[2:])
    elif table := find_program(program if program in _READERS else ""):
        reading = read_options(table, rest)
        start = 1 if program == "getopts" else 0
        yield from reading.operands[start : start + 1 if start else None]
        yield from (value for value in reading.values.get("-a", ()) if value is not None)


def find_unknown_elements(arguments: Sequence[Argument], variables: Variables) -> Iterator[str]:
    """Yield why a declaration is hazardous: it evaluates text in parentheses, quoted or not."""
    arrays = any(_ARRAY_OPTION.match(argument.text) for argument in arguments)
    for argument in arguments[1:]:
        name, _, value = argument.text.partition("=")
        unknown = UNKNOWN in value[:1] or UNKNOWN in name
        if unknown and (arrays or variables.is_array(name.rstrip("+"))):
            yield "an array is given a text that is not known"


def note_settings(script: Script) -> Iterator[str]:
    """Add what builtins do to variables to a script; yield why that makes it hazardous."""
    for index, command in enumerate(script.commands):
        script.setting = index
        name, words = find_builtin(command.words)
        if name in ("eval", "trap"):
            _note_evaluated(script, words)
        elif name == "unset":
            yield from _note_unset(script, words)
        elif name in DECLARATIONS:
            lasts = name in ("export", "readonly") or not command.in_function
            hides = name not in ("export", "readonly")
            yield from _note_declared(script, words, lasts=lasts, hides=hides)
            hidden = command.words[0].bare != name and not all(map(_is_settled, words))
            if hidden:
                _unsettle(script)
                yield UNNAMED
        elif name in SETTERS:
            names = list(_list_names(name, words))
            _note_set(script, words if name in ("let", "wait") else names, name)
            unclear = [word for word in names if not _is_named(word)]
            if unclear:
                _unsettle(script)
            if any(map(has_pattern, unclear)) or (unclear and name in _NAME_OPTIONS):
                yield UNNAMED


def _unsettle(script: Script) -> None:
    """Take every variable for unknown: one of them is set."""
    for name in list(script.values):
        script.assign(name, None)


def _list_names(name: str, words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words of a builtin that name the variables it sets, and those that may do so."""
    match name:
        case "printf":
            yield from _list_printed(words)
        case "getopts":
            yield from words[1:2]
        case "wait" if len(words) > 1:
            yield from words  # the first may be `-p`
        case "let" | "wait":
            yield from (word for word in words if "{" in join_bare(word))
        case "read" | "mapfile" | "readarray":
            is_value = False
            for word in words:
                if not is_value:
                    yield word
                is_value = re.fullmatch(f"-[A-Za-z]*[{_VALUED[name]}]", join(word)) is not None


def _list_printed(words: Sequence[Word]) -> Iterator[Word]:
    """Yield what may name variables for `printf`: nothing that stands behind the format."""
    before: str | None = None
    for index, word in enumerate(words):
        text = spell(word)
        if before == "-v" or (text is not None and text.startswith("-v")):
            yield word
        elif text is not None or _IN_FORMATS.search(_join_literal(word)):
            return
        elif has_pattern(word):
            yield word
        else:  # may be `-v`
            few = len(words) <= index + 2 or bool(_join_literal(word))
            yield from (one for one in words[index + 1 :] if not few or spell(one) is not None)
            return
        before = text


def _is_named(word: Word) -> bool:
    """Return True if a word names a variable, or is an option, as it is written."""
    return spell(word) is not None


def _is_settled(word: Word) -> bool:
    return names_variable(word) or _is_named(word)


def names_variable(word: Word) -> bool:
    """Return True if a word of a declaration shows which variable it sets."""
    literal = takewhile(lambda piece: piece.kind in ("bare", "quoted"), word.pieces)
    return re.match(r"[A-Za-z_]\w*(?:\+?=|\[)", "".join(p.text for p in literal)) is not None


def is_assignment(word: Word) -> bool:
    """Return True if a shell knows a word of a declaration for an assignment as it is written."""
    return word.pieces[0].kind == "bare" and _ASSIGNED.match(word.pieces[0].text) is not None


def extends_path(words: Sequence[Word | None], home: str) -> bool:
    """Return True if PATH only gets folders of installed programs, before or after what it has."""
    for word in words:
        parts = _join_path(word, home).split(":") if word else []
        if PATH_ITSELF not in parts or not all(is_program_folder(part, home) for part in parts):
            return False
    return True


def _join_path(word: Word, home: str) -> str:
    """Return a value with a mark for PATH itself; empty if it is not known."""
    known = {"PATH": PATH_ITSELF, "HOME": home}
    joined = ""
    for piece in word.pieces:
        is_text = piece.kind in ("bare", "quoted") and PATH_ITSELF not in piece.text
        is_known = piece.kind == "variable" and known.get(piece.text)
        if not is_text and not is_known:
            return ""
        joined += piece.text if is_text else known[piece.text]
    return joined


def _note_set(script: Script, words: Sequence[Word], name: str) -> None:
    """Note `read NAME`, `printf -vNAME`, `let NAME=1`: the values count as not known."""
    for word in words:
        if match := _SETTING.match(_ATTACHED.sub("", join(word))):
            value = Word([Piece("unknown", "((")]) if name == "let" else None
            script.assign(match[1], value)


def _note_declared(
    script: Script, words: Sequence[Word], *, lasts: bool, hides: bool
) -> Iterator[str]:
    """Note the variables of a declaration; one in a function is gone behind it.

    There, a new variable `hides` one of the same name, and may leave programs without that.
    """
    alters = any(_ALTERING.match(join(word)) for word in words)
    hides = hides or any(_UNEXPORTING.match(join(word)) for word in words)
    if not lasts and not all(map(_is_settled, words)):
        yield UNNAMED
    for word in words:
        match = _SETTING.match(join(word))
        bare = word.pieces[0].text if word.pieces else ""
        if match is None:
            continue
        if alters:
            script.assign(match[1], None)
        elif bare.startswith(f"{match[1]}="):
            value = Piece("bare", bare[len(match[1]) + 1 :])
            script.assign(match[1], Word([value, *word.pieces[1:]]))
        elif match[2]:
            script.assign(match[1], None)
        elif not lasts:
            script.cleared.add(match[1])  # it is another variable of the same name
        if hides and not match[2]:
            yield from _find_needed(match[1])


def _note_unset(script: Script, words: Sequence[Word]) -> Iterator[str]:
    for word in words:
        text = join(word).partition("[")[0]
        yield from _find_needed(text)
        if not _is_named(word):
            yield "a variable that is not known is unset"
            script.clears = True
        script.cleared.add(text)


def _find_needed(name: str) -> Iterator[str]:
    if _NEEDED.fullmatch(name):
        yield f"without {name} other programs or settings are used"


def _note_evaluated(script: Script, words: Sequence[Word]) -> None:
    """Note the variables that a script in quotes sets in the same shell."""
    text = " ".join(map(join, words))
    if _SETS_MORE.search(text):
        _unsettle(script)
        for name in script.computed:
            script.assign(name, None)
    for match in _EVALUATED.finditer(text):
        value = Word([Piece("quoted", match[2] or match[3] or match[4] or "")])
        script.assign(match[1], value if match[1] in script.values else None)


def _join_literal(word: Word) -> str:
    return "".join(piece.text for piece in word.pieces if piece.kind in ("bare", "quoted"))
