"""Git that runs unasked: which variables keep it from starting programs, and where none can."""

import os
from collections.abc import Mapping

from trimtab.config.trust import find_root

_CAUTIOUS = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("safe.bareRepository", "explicit"),
)
_STARTS_PROGRAMS = {
    "diff": ("external", "textconv", "command"),
    "filter": ("clean", "smudge", "process"),
    "include": ("path",),
    "includeif": ("path",),
}
_LARGEST = 1 << 20


def cautious_variables(env: Mapping[str, str]) -> dict[str, str]:
    """What a command gets that nobody was asked about. The text that runs stays as it is."""
    given = env.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isascii() and given.isdigit() and len(given) < 5 else 0
    variables = {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "GIT_CONFIG_COUNT": str(first + len(_CAUTIOUS)),
    }
    for number, (key, value) in enumerate(_CAUTIOUS, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def find_git_programs(cwd: str) -> str:
    """Which setting of the repository makes git start a program that no variable prevents.

    Only the repository's own file counts: the person's is the person's. A repository that was
    cloned has no such setting; one that came in an archive may.
    """
    path = os.path.join(find_root(cwd), ".git", "config")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(_LARGEST).split("\n")
    except OSError:
        return ""
    section = ""
    for line in map(str.strip, lines):
        setting = line
        if line.startswith("["):
            head, _, setting = line[1:].partition("]")
            section = head.replace(".", " ").split(maxsplit=1)[0].lower() if head.strip() else ""
        name, _, value = setting.partition("=")
        name = name.strip().lower()
        if name in _STARTS_PROGRAMS.get(section, ()) and "git-lfs" not in value:
            return f"{section}.{name}"
    return ""
