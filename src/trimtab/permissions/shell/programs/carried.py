"""Commands in a text that a program is given to run in a way of its own.

Only rules that deny look at them: such a text may be a script, a setting or code, and every place
at which a command may begin in one of these counts.
"""

import re
from collections.abc import Iterator
from itertools import islice

from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument

MOST = 200
_BEGINNING = re.compile(
    r"(?:^|[;&|\n(){`!=,:\"'%]|\b(?:do|then|else|exec|command|eval|env|sudo|xargs|nohup|time"
    r"|shell|system|spawn)\b|-[ce]\b)"
    r"(?=[ \t'\"]*([\w./+-][\w./+=:@-]*(?:[ \t]+[\w./+=:@-]+){0,3}))"
)


def find_carried(text: str) -> Iterator[list[Argument]]:
    """Yield the beginnings of what may be command lines, each once."""
    found = _BEGINNING.finditer(text.replace(UNKNOWN, " "))
    for line in dict.fromkeys(match[1] for match in islice(found, MOST)):
        yield [Argument(word) for word in line.split()]
