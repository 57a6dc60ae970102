"""Commands in a text that is too much to be read: words that stand where a command may begin.

Only rules that deny look at them.
"""

import re

from trimtab.permissions.shell.grammar.words import Argument
from trimtab.permissions.shell.programs.identify import identify
from trimtab.permissions.shell.verdict.analysis import Found

MOST = 5000
WORDS = 4
_BEGINNING = re.compile(
    r"(?:^|[;&|\n(){`!]|\b(?:do|then|else|exec|command|eval|env|sudo|xargs|nohup|time)\b|-c\b)"
    r"[ \t'\"]*"
    r"([\w./+-][\w./+=:@-]*(?:[ \t]+[\w./+=:@-]+){0,3})"
)


def skim(text: str) -> list[Found]:
    """Return what may be commands, each once."""
    lines: dict[str, None] = {}
    for match in _BEGINNING.finditer(text):
        lines.setdefault(match[1])
        if len(lines) >= MOST:
            break
    return [_name(line.split()[:WORDS]) for line in lines]


def _name(words: list[str]) -> Found:
    name = identify([Argument(word) for word in words])
    return Found(
        identifier=name.identifier,
        read_only=False,
        base=name.base,
        words=tuple(words),
        shadow=True,
    )
