"""Keeps git from starting programs in read-only commands, which run without a question."""

import os
from collections.abc import Mapping, Sequence

from trimtab.config.trust import find_root
from trimtab.workspace.git_settings import read_git_settings

_SAFE_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("safe.bareRepository", "explicit"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
)
_STARTS_PROGRAMS = {
    "diff": ("external", "textconv", "command"),
    "filter": ("clean", "smudge", "process"),
    "include": ("path",),
    "includeif": ("path",),
}
_MAX_SIZE = 1 << 20


def safe_git_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return variables that disable git's monitor and pagers, for commands without a question."""
    settings = _to_variables(env, _SAFE_SETTINGS)
    return {"GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat", **settings}


def own_git_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return variables by which git takes no committed files for a repository, with its hooks."""
    return _to_variables(env, [("safe.bareRepository", "explicit")])


def _to_variables(env: Mapping[str, str], settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    given = env.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isascii() and given.isdigit() and len(given) < 5 else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def find_git_programs(cwd: str) -> str:
    """Return the repository's setting that makes git start a program despite those variables.

    Only the repository's own file is read, since the person trusts their own settings. A cloned
    repository has no such setting; a repository from an archive may.
    """
    path = os.path.join(find_root(cwd), ".git", "config")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_MAX_SIZE)
    except OSError:
        return ""
    for section, name, value in read_git_settings(text):
        if name in _STARTS_PROGRAMS.get(section, ()) and "git-lfs" not in value:
            return f"{section}.{name}"
    return ""
