"""Words that bash evaluates as arithmetic although they do not look like it.

There a value is code: `a[$(rm x)]` as the value of a variable runs `rm` when it is compared.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from trimtab.permissions.shell.grammar.builtins import find_builtin, join
from trimtab.permissions.shell.grammar.parts import DECLARATIONS
from trimtab.permissions.shell.grammar.syntax import Command, Word
from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument, Variables

_COMPARISONS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_NAME = re.compile(r"[A-Za-z_]\w*")
_SUBSCRIPT = re.compile(rf"[A-Za-z_]\w*\[[^\]]*{UNKNOWN}")
_ELEMENT = re.compile(r"(?:-\w*?[vpa])?[A-Za-z_]\w*(?:\[(.*)\]|\+?=(\(.*\[.*))", re.DOTALL)
"""An element of an array, perhaps behind an option; or a whole array with subscripts."""
_OPENING = re.compile(r"\w\[")
_RUNNING = re.compile(r"\$\(|`|\$\{|<\(")
_TESTS = frozenset(("test", "[", "[["))
_NAMING = frozenset(("read", "mapfile", "readarray", "unset", "getopts", *DECLARATIONS))


def runs_if_evaluated(text: str) -> bool:
    """Return True if a text has a command in a subscript, which arithmetic would run."""
    for part in text.split("]"):
        if (start := _OPENING.search(part)) and _RUNNING.search(part, start.end()):
            return True
    return False


def find_unknown(command: Command, variables: Variables) -> Iterator[str]:
    """Return the reasons why an evaluated text is not known."""
    name, rest = find_builtin(command.words)
    words = command.words
    if name == "let":
        yield from (reason for word in rest for reason in _evaluate(word, variables))
    elif words and join(words[0]) == "[[":
        for index, word in enumerate(words):
            if word.bare in _COMPARISONS:
                for operand in (*words[index - 1 : index], *words[index + 1 : index + 2]):
                    yield from _evaluate(operand, variables)


def name_evaluated(texts: Iterable[str], variables: Variables) -> set[str]:
    """Return the names in texts that are arithmetic, and those in the values of such names."""
    found: set[str] = set()
    waiting = list(texts)
    for text in waiting:  # grows on the way
        for name in set(_NAME.findall(text)) - found:
            found.add(name)
            waiting += variables.list_texts(name)
    return found


def find_subscripts(arguments: Sequence[Argument]) -> list[str]:
    """Return what builtins evaluate in the names they are given: subscripts, all of `let`."""
    texts = [argument.text for argument in arguments[1:]]
    if arguments[0].text == "let":
        return texts
    return [match[1] or match[2] for text in texts if (match := _ELEMENT.match(text))]


def names_unknown(arguments: Sequence[Argument]) -> bool:
    """Return True if a builtin is given an element of an array by a subscript that is not known."""
    name = arguments[0].text
    given = arguments[1:] if name in _NAMING else ()
    if name in (*_TESTS, "printf", "wait"):
        options = ("-v", "-R") if name in _TESTS else ("-v", "-p")
        given = [after for before, after in pairwise(arguments) if before.text in options]
    return any(_SUBSCRIPT.match(argument.text) for argument in given)


def _evaluate(word: Word, variables: Variables) -> Iterator[str]:
    for piece in word.pieces:
        if piece.kind == "unknown":
            if not variables.gives_number(piece):
                yield "arithmetic evaluates what is not known"
            continue
        names = [piece.text] if piece.kind == "variable" else _NAME.findall(piece.text)
        for name in names:
            if not variables.is_number(name):
                yield f"arithmetic evaluates {name}, which is not known"
