"""Commands that are harmless as they are written, on machines where no fence works.

Nothing in such a command is expanded: no variable, pattern, substitution or redirection, so no file
name can become an option and no file's content can become code. Its programs only print.
"""

import re

from trimtab.permissions.shell.verdict.analysis import Analysis, Found

PROGRAMS = frozenset(
    (
        *(
            "arch",
            "basename",
            "cat",
            "cksum",
            "cmp",
            "comm",
            "cut",
            "date",
            "df",
            "diff",
            "dirname",
        ),
        *(
            "du",
            "echo",
            "egrep",
            "expand",
            "false",
            "fgrep",
            "file",
            "fmt",
            "fold",
            "grep",
            "groups",
        ),
        *(
            "head",
            "hexdump",
            "hostname",
            "id",
            "join",
            "ls",
            "md5sum",
            "nl",
            "nproc",
            "od",
            "paste",
        ),
        *("printenv", "pwd", "readlink", "realpath", "rev", "sha1sum", "sha256sum", "sha512sum"),
        *(
            "sleep",
            "stat",
            "strings",
            "sum",
            "tac",
            "tail",
            "tr",
            "true",
            "tty",
            "uname",
            "unexpand",
        ),
        *("uniq", "uptime", "wc", "whereis", "which", "whoami", ":"),
    )
)
LITERAL = re.compile(r"""(?:[A-Za-z0-9_./=,:@%+\-\s|;&]|'[^']*'|"[^"$`\\!]*")*""")
"""Plain characters, and what stands in quotes that expand nothing."""
RECURSIVE = re.compile(r"-\w*[rRd]\w*|--(?:rec|d)\S*")
FILE_OPTIONS = {
    **dict.fromkeys(("egrep", "fgrep", "grep", "hexdump"), "f"),
    "date": "fr",
    "diff": "X",
    "du": "X",
}
"""The letters of options whose value, written without a space, is the name of a file to read."""
ASSIGNMENT = re.compile(r"(?:^|[\s;&|])[A-Za-z_]\w*\+?=")


def is_literal(text: str) -> bool:
    """Return True if nothing in a command is expanded or assigned."""
    return LITERAL.fullmatch(text) is not None and not ASSIGNMENT.search(text)


def find_plain_programs(text: str, analysis: Analysis) -> frozenset[str] | None:
    """Return the programs of a command that is harmless as it is written, None for any other."""
    if not is_literal(text) or not analysis.read_only or analysis.strays:
        return None
    if any(_reads_folders(found) or _names_file_in_option(found) for found in analysis.commands):
        return None
    bases = frozenset(found.base for found in analysis.commands)
    identifiers = frozenset(found.identifier for found in analysis.commands)
    return bases if bases == identifiers and bases <= PROGRAMS else None


def _reads_folders(found: Found) -> bool:
    """Return True for a command that reads whole folders, in which links may lead outside."""
    searches = found.base.endswith("grep") or found.base == "diff"
    return searches and any(map(RECURSIVE.fullmatch, found.words[1:]))


def _names_file_in_option(found: Found) -> bool:
    """Return True for a command such as `grep -flist`, whose file may be a link."""
    letters = FILE_OPTIONS.get(found.base)
    if not letters:
        return False
    option = re.compile(rf"-[^-]*?[{letters}].+")
    return any(map(option.fullmatch, found.words[1:]))
