"""The folders and files that the options of any program name: `--prefix /data`, `-v /a:/b`."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from trimtab.permissions.shell.grammar.words import Argument

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.judge import Judge

_FOLDER = re.compile(
    r"-[CDPo]|--?(?:[\w-]+-)?(?:dir|directory|prefix|chdir|cwd|out|output|outdir|dest|destination|target"
    r"|root|file|path|work-tree|git-dir|basedir|home|cache|store)"
)
"""Options whose value is a folder or a file."""
_FILE_URL = re.compile(r"file:(?://[^/\0]*)?/*(.*)", re.IGNORECASE | re.DOTALL)


def note_folders(judge: "Judge", arguments: Sequence[Argument], *, reads: bool) -> None:
    """Note the folders and files that options name in full: `--prefix /data`."""
    for before, after in pairwise(arguments):
        mounted, colon, _ = after.text.partition(":")
        if colon and before.text in ("-v", "--volume"):
            judge.note_places([Argument(mounted)], reads=False, certain=mounted[:1] == "/")
        elif _FOLDER.fullmatch(before.text) and after.text[:1] == "/" and after.text != "/":
            judge.note_places([after], reads=reads, certain=True)
    for argument in arguments:
        if match := _FILE_URL.fullmatch(argument.text):
            path = re.sub("%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), match[1])
            if re.search(r"[\[{]", path):
                judge.into.strays = judge.into.strays or "an address names several files"
            judge.note_places([Argument(f"/{path}")], reads=True, certain=True)
        option, _, value = argument.text.partition("=")
        if value[:1] == "/" and _FOLDER.fullmatch(option):
            judge.note_places([Argument(value, argument.pattern)], reads=reads, certain=True)
